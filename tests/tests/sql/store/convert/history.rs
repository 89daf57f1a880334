//! A history beside converted rows: it keeps what was seen, as it was.

use kindex_maintenance::convert::{Options, convert};
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::progress::NoProgress;
use kindex_store::{Address, HistoryVersion};
use kindex_tests::kinds::trial::KIND;
use kindex_tests::trials::PLATFORM;

use super::trials::{OLD, image, in_v2, store_as, today, trial};
use crate::store::backend::Backend;
use crate::store::widget::at;

scenarios!(the_history_stays_as_it_was);

/// The kinds of both programs, with a history.
static PAST_OLD: Kind = Kind { history: true, ..OLD };
static PAST: Kind = Kind { history: true, ..KIND };

const MYSQL: &str = "CREATE TABLE trial_history (obj_uid VARCHAR(64) NOT NULL, branch BIGINT NOT NULL, \
                     res_version BIGINT UNSIGNED NOT NULL, seen_time DATETIME(6) NOT NULL, encoding TINYINT NOT NULL, \
                     payload LONGBLOB NOT NULL, PRIMARY KEY (obj_uid, branch, res_version)) COLLATE=utf8mb4_bin";
const SQLITE: &str = "CREATE TABLE trial_history (obj_uid TEXT NOT NULL, branch INTEGER NOT NULL, \
                      res_version INTEGER NOT NULL, seen_time TEXT NOT NULL, encoding INTEGER NOT NULL, \
                      payload BLOB NOT NULL, PRIMARY KEY (obj_uid, branch, res_version)) STRICT";

async fn the_history_stays_as_it_was(backend: Backend) {
    let table = match backend.address {
        Address::Sqlite(_) => SQLITE,
        Address::MySql(_) => MYSQL,
    };
    if backend.rows(table).await.is_none() {
        return;
    }
    let shared = today(&backend).await;
    let store = shared.as_ref();
    store_as(store, &PAST_OLD, &[(trial("a", 5), Life::Live)], at(0)).await;
    store_as(store, &PAST_OLD, &[(trial("a", 6), Life::Archived)], at(1)).await;
    let texts = async || -> Vec<String> {
        let kept = store.history(&PAST, &Uid::from("a"), None, 10).await.expect("read");
        kept.iter()
            .map(|past: &HistoryVersion| past.object.text().to_owned())
            .collect()
    };
    let before = texts().await;
    assert_eq!(before, [trial("a", 6).to_string(), trial("a", 5).to_string()]);
    let done = convert(&shared, &PLATFORM, &PAST, &Options::default(), &NoProgress).await;
    assert_eq!(done.expect("converted").converted, 1);
    assert_eq!(texts().await, before);
    assert_eq!(image(store, "a").await.text, in_v2(&before[0]));
}
