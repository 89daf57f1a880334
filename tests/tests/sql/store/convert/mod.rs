//! Rows of an older version of their kind, converted on every database: what they get, what they keep, who wins
//! against whom, and what is left of a run that ends early.

mod trials;

mod history;
mod killed;
mod overlap;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kindex_maintenance::convert::{Mode, Options, PAGES_AT_ONCE, convert, drop_kept, refused_rows};
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::progress::{NoProgress, Progress};
use kindex_store::{
    Address, CONVERT_PROGRESS, Gone, MetadataStorage, RowConversion, RowConverted, RowImage, RowWrite, StoreError,
};
use kindex_tests::kinds::trial::KIND;
use kindex_tests::trials::PLATFORM;
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::trials::{OLD, as_written, image, in_v2, project, run, store_as, today, trial};
use super::backend::Backend;
use super::widget::at;

scenarios!(
    a_converted_row_is_what_the_writer_would_have_written,
    a_live_row_is_left_to_the_cluster,
    a_row_that_is_written_meanwhile_is_left_to_the_writer,
    a_writer_beside_a_conversion_always_wins,
    a_row_that_does_not_convert_is_named_and_stops_no_other,
    a_row_that_the_database_refuses_stops_no_other_and_nothing_is_noted_before_it_is_written,
    a_run_that_is_cut_off_anywhere_is_gone_on_with,
    texts_before_go_with_their_version_and_with_their_row,
    a_text_that_names_no_version_is_in_that_of_its_row,
);

/// The parts of a row that a conversion must leave alone.
fn times(image: &RowImage) -> impl PartialEq + std::fmt::Debug {
    let RowImage {
        create_time,
        update_time,
        delete_time,
        evicted_time,
        res_version,
        ..
    } = image;
    (*create_time, *update_time, *delete_time, *evicted_time, *res_version)
}

/// The same with the times of another row.
fn with_times_of(image: RowImage, other: &RowImage) -> RowImage {
    RowImage {
        create_time: other.create_time,
        update_time: other.update_time,
        delete_time: other.delete_time,
        evicted_time: other.evicted_time,
        ..image
    }
}

async fn a_converted_row_is_what_the_writer_would_have_written(backend: Backend) {
    let store = today(&backend).await;
    let plain = |uid: &str| {
        let mut object = trial(uid, 7);
        object["spec"] = json!({"method": "plain", "hours": 1});
        object["metadata"]["annotations"] = json!({});
        object
    };
    let objects = [
        (trial("evicted", 5), Life::Archived),
        (trial("deleted", 6), Life::Deleted),
        (plain("both"), Life::Archived),
    ];
    store_as(store.as_ref(), &OLD, &objects, at(10)).await;
    store_as(store.as_ref(), &OLD, &[(plain("both"), Life::Deleted)], at(20)).await;
    let mut before = Vec::new();
    for (object, _) in &objects {
        before.push(image(store.as_ref(), object["metadata"]["uid"].as_str().expect("text")).await);
    }
    assert_eq!(before[2].evicted_time, Some(at(10)));
    assert_eq!(before[2].delete_time, Some(at(20)));
    let done = run(&store, 500).await;
    assert_eq!((done.rows, done.converted, done.refused), (3, 3, 0));
    for held in &before {
        let now = image(store.as_ref(), &held.uid).await;
        assert_eq!(times(&now), times(held), "{}", held.uid);
        let written = as_written(&in_v2(&held.text), held.life()).await;
        assert_eq!(now, with_times_of(written, held), "{}", held.uid);
        assert_eq!(now.group_ver, "traps.dev/v2");
        let kept = store
            .kept_texts(&KIND, &Uid::from(held.uid.as_str()))
            .await
            .expect("read");
        let kept: Vec<(&str, &str)> = kept.iter().map(|it| (&*it.group_ver, &*it.text)).collect();
        assert_eq!(kept, [("traps.dev/v1", &*held.text)]);
    }
    let carried = image(store.as_ref(), "evicted").await;
    let mut annotations = carried.annotations.iter();
    assert!(annotations.any(|(key, _)| key == PLATFORM.conversion_data));
    let again = run(&store, 500).await;
    assert_eq!((again.rows, again.converted, again.refused), (3, 0, 0));
    assert_eq!(image(store.as_ref(), "evicted").await, carried);
    assert_eq!(store.state(&KIND, CONVERT_PROGRESS).await.expect("read"), None);
}

async fn a_live_row_is_left_to_the_cluster(backend: Backend) {
    let store = today(&backend).await;
    let objects = [(trial("live", 5), Life::Live), (trial("gone", 6), Life::Deleted)];
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let before = [image(store.as_ref(), "live").await, image(store.as_ref(), "gone").await];
    let options = Options {
        mode: Mode::DryRun,
        ..Options::default()
    };
    let would = convert(&store, &PLATFORM, &KIND, &options, &NoProgress).await;
    assert_eq!(would.expect("counted").converted, 1);
    let after = [image(store.as_ref(), "live").await, image(store.as_ref(), "gone").await];
    assert_eq!(after, before, "a dry run writes nothing");
    assert_eq!(run(&store, 1).await.converted, 1);
    assert_eq!(image(store.as_ref(), "live").await, before[0]);
}

/// What a page of the whole table would be converted to.
async fn planned(store: &dyn MetadataStorage) -> Vec<RowConversion> {
    let page = store.rows_of_other_versions(&KIND, None, None, 500).await;
    let conversion = |row: kindex_store::OtherVersionRow| {
        let version = project(&KIND, &in_v2(&row.text));
        RowConversion::new(row, version)
    };
    page.expect("read").rows.into_iter().map(conversion).collect()
}

async fn a_row_that_is_written_meanwhile_is_left_to_the_writer(backend: Backend) {
    let store = today(&backend).await;
    let uids = ["newer", "revived", "closed", "other-text", "removed", "same"];
    let objects: Vec<(Value, Life)> = uids.iter().map(|uid| (trial(uid, 5), Life::Archived)).collect();
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let read = planned(store.as_ref()).await;

    let newer: Value = serde_json::from_str(&in_v2(&trial("newer", 9).to_string())).expect("JSON");
    store_as(store.as_ref(), &KIND, &[(newer, Life::Archived)], at(1)).await;
    store_as(store.as_ref(), &OLD, &[(trial("revived", 5), Life::Live)], at(1)).await;
    let mut other = trial("other-text", 5);
    other["spec"]["rate"] = json!(0.5);
    store_as(store.as_ref(), &OLD, &[(other, Life::Archived)], at(1)).await;
    let soft_delete = RowWrite::SoftDelete {
        uid: Uid::from("closed"),
    };
    store.write(&KIND, &[soft_delete], at(2)).await.expect("written");
    let gone = Gone {
        archived: true,
        deleted: true,
        ..Gone::default()
    };
    let removed = store.remove(&KIND, &gone, &[Uid::from("removed")], at(9)).await;
    assert_eq!(removed.expect("removed").len(), 1);

    let mut before = Vec::new();
    for uid in ["newer", "revived", "other-text"] {
        before.push(image(store.as_ref(), uid).await);
    }
    let became = store
        .convert_rows(&KIND, &read, Some("7"), at(3))
        .await
        .expect("written");
    let converted: Vec<&str> = read
        .iter()
        .zip(&became)
        .filter(|(_, became)| **became == RowConverted::Converted)
        .map(|(one, _)| &*one.row().uid.0)
        .collect();
    assert_eq!(converted, ["closed", "same"]);
    for held in before {
        assert_eq!(image(store.as_ref(), &held.uid).await, held);
        let kept = store.kept_texts(&KIND, &Uid::from(held.uid.as_str())).await;
        assert_eq!(kept.expect("read"), []);
    }
    let closed = image(store.as_ref(), "closed").await;
    assert_eq!((closed.evicted_time, closed.delete_time), (Some(at(0)), Some(at(2))));
    assert_eq!(
        store.state(&KIND, CONVERT_PROGRESS).await.expect("read").as_deref(),
        Some("7")
    );
}

async fn a_writer_beside_a_conversion_always_wins(backend: Backend) {
    const ROWS: u64 = 60;
    let store = today(&backend).await;
    let uid = |row: u64| format!("u{row:03}");
    let objects: Vec<(Value, Life)> = (0..ROWS).map(|row| (trial(&uid(row), 5), Life::Archived)).collect();
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let writer = store.clone();
    let written = tokio::spawn(async move {
        for row in (0..ROWS).rev().step_by(2) {
            let text = in_v2(&trial(&format!("u{row:03}"), 9).to_string());
            let newer: Value = serde_json::from_str(&text).expect("JSON");
            store_as(writer.as_ref(), &KIND, &[(newer, Life::Archived)], at(1)).await;
        }
    });
    while !written.is_finished() {
        run(&store, 4).await;
    }
    written.await.expect("the writer ends");
    run(&store, 4).await;
    for row in 0..ROWS {
        let image = image(store.as_ref(), &uid(row)).await;
        let version = if row % 2 == 1 { 9 } else { 5 };
        assert_eq!(image.res_version, version, "{row}");
        let expected = in_v2(&trial(&uid(row), version.unsigned_abs()).to_string());
        let [held, expected] = [&image.text, &expected].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        assert_eq!(held, expected);
    }
}

async fn a_row_that_does_not_convert_is_named_and_stops_no_other(backend: Backend) {
    let store = today(&backend).await;
    let mut bad = trial("bad", 5);
    bad["spec"]["hours"] = json!("two");
    let mut unknown = trial("unknown", 5);
    unknown["apiVersion"] = json!("traps.dev/v0");
    let objects = [
        (bad, Life::Archived),
        (unknown, Life::Deleted),
        (trial("good", 5), Life::Archived),
    ];
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let before = [
        image(store.as_ref(), "bad").await,
        image(store.as_ref(), "unknown").await,
    ];
    for _ in 0..2 {
        let done = run(&store, 1).await;
        assert_eq!(done.refused, 2);
        let named: Vec<(&str, &str, &str)> = done
            .refusals
            .iter()
            .map(|it| (&*it.name, &*it.path, &*it.reason))
            .collect();
        let version = "apiVersion \"traps.dev/v0\" is not a version of this kind";
        assert_eq!(
            named,
            [
                ("name-bad", "spec.seconds", "not a number of hours"),
                ("name-unknown", "apiVersion", version)
            ]
        );
    }
    let refused = || async { refused_rows(store.as_ref(), &KIND).await.expect("read") };
    let of_each = [("traps.dev/v0", 1), ("traps.dev/v1", 1)].map(|(version, rows)| (version.to_owned(), rows));
    assert_eq!(refused().await, of_each.into());
    let after = [
        image(store.as_ref(), "bad").await,
        image(store.as_ref(), "unknown").await,
    ];
    assert_eq!(after, before);
    assert_eq!(image(store.as_ref(), "good").await.group_ver, "traps.dev/v2");
    let gone = Gone {
        archived: true,
        deleted: true,
        ..Gone::default()
    };
    let uids = ["bad", "unknown"].map(Uid::from);
    let removed = store.remove(&KIND, &gone, &uids, at(9)).await;
    assert_eq!(removed.expect("removed").len(), 2);
    run(&store, 1).await;
    assert_eq!(refused().await, BTreeMap::new());
}

async fn a_row_that_the_database_refuses_stops_no_other_and_nothing_is_noted_before_it_is_written(backend: Backend) {
    let store = today(&backend).await;
    let objects: Vec<(Value, Life)> = ["a", "b", "poison", "d", "e"]
        .iter()
        .map(|uid| (trial(uid, 5), Life::Deleted))
        .collect();
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let refuse = match &backend.address {
        Address::Sqlite(_) => {
            "CREATE TRIGGER poison BEFORE INSERT ON trial WHEN NEW.uid = 'poison' AND NEW.group_ver = 'traps.dev/v2' \
             BEGIN SELECT RAISE(ABORT, 'poisonous'); END"
        }
        Address::MySql(_) => {
            "ALTER TABLE trial ADD CONSTRAINT poison CHECK (NOT (uid = 'poison' AND group_ver = 'traps.dev/v2'))"
        }
    };
    if backend.rows(refuse).await.is_none() {
        return;
    }
    let refused = store
        .convert_rows(&KIND, &planned(store.as_ref()).await, Some("7"), at(1))
        .await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    assert_eq!(store.state(&KIND, CONVERT_PROGRESS).await.expect("read"), None);
    let kept = store.kept_texts(&KIND, &Uid::from("a")).await.expect("read");
    assert_eq!(
        (image(store.as_ref(), "a").await.group_ver.as_str(), kept.len()),
        ("traps.dev/v1", 0)
    );
    let done = run(&store, 500).await;
    assert_eq!((done.converted, done.refused), (4, 1));
    assert_eq!(done.refusals[0].uid, "poison");
    assert!(
        done.refusals[0].reason.contains("the database refuses"),
        "{:?}",
        done.refusals
    );
    assert_eq!(image(store.as_ref(), "poison").await.group_ver, "traps.dev/v1");
}

/// Says when so many pages are done.
struct Pages {
    left: AtomicU64,
    reached: Notify,
}

impl Progress for Pages {
    fn begin(&self, _: &str, _: Option<u64>) {}

    fn advance(&self, _: u64) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.reached.notify_one();
        }
    }

    fn note(&self, _: &str) {}
    fn end(&self) {}
}

async fn a_run_that_is_cut_off_anywhere_is_gone_on_with(backend: Backend) {
    // A run begins with pages that the one before had written and not come to, and a place is saved with a later page.
    const PAGES: u64 = 5 * PAGES_AT_ONCE as u64;
    const PAGE_ROWS: u32 = 3;
    const ROWS: u64 = 4 * PAGES * PAGE_ROWS as u64;
    let store = today(&backend).await;
    let uid = |row: u64| format!("u{row:03}");
    let mut objects: Vec<(Value, Life)> = (0..ROWS).map(|row| (trial(&uid(row), 5), Life::Archived)).collect();
    objects[0].0["spec"]["hours"] = json!("two");
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let options = Options {
        page_rows: PAGE_ROWS,
        ..Options::default()
    };
    let mut places = Vec::new();
    for _ in 0..3 {
        let pages = Arc::new(Pages {
            left: AtomicU64::new(PAGES),
            reached: Notify::new(),
        });
        tokio::select! {
            biased;
            () = pages.reached.notified() => {}
            done = convert(&store, &PLATFORM, &KIND, &options, pages.as_ref()) => panic!("{done:?} is early"),
        }
        let saved = store
            .state(&KIND, CONVERT_PROGRESS)
            .await
            .expect("read")
            .expect("a place");
        let saved: Value = serde_json::from_str(&saved).expect("JSON");
        places.push(saved["after"].as_i64().expect("a number"));
    }
    assert!(places.is_sorted_by(|a, b| a < b), "each run went on: {places:?}");
    let done = run(&store, PAGE_ROWS).await;
    assert_eq!(
        (done.rows, done.refused),
        (ROWS, 1),
        "the refused row is before the place, and named all the same"
    );
    for row in 1..ROWS {
        let image = image(store.as_ref(), &uid(row)).await;
        assert_eq!(image.text, in_v2(&trial(&uid(row), 5).to_string()), "{row}");
        let kept = store
            .kept_texts(&KIND, &Uid::from(uid(row).as_str()))
            .await
            .expect("read");
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].text, trial(&uid(row), 5).to_string());
    }
    assert_eq!(store.state(&KIND, CONVERT_PROGRESS).await.expect("read"), None);
}

async fn a_text_that_names_no_version_is_in_that_of_its_row(backend: Backend) {
    let store = today(&backend).await;
    let named = trial("a", 5);
    let mut unnamed = named.clone();
    unnamed.as_object_mut().expect("an object").remove("apiVersion");
    store_as(store.as_ref(), &OLD, &[(unnamed, Life::Archived)], at(0)).await;
    let uid = Uid::from("a");
    let own = async || {
        let stored = store.get_by_id(&KIND, &uid).await.expect("read").expect("stored");
        let own = kindex_convert::object_in(&PLATFORM, &KIND, &stored.object, KIND.version);
        serde_json::from_str::<Value>(own.expect("it converts").text()).expect("JSON")
    };
    let expected: Value = serde_json::from_str(&in_v2(&named.to_string())).expect("JSON");
    assert_eq!(own().await, expected);
    assert_eq!(run(&store, 10).await.converted, 1);
    assert_eq!(own().await, expected);
}

/// The kind once all its other versions are dropped.
static LAST: Kind = Kind { versions: &[], ..KIND };

async fn texts_before_go_with_their_version_and_with_their_row(backend: Backend) {
    let store = today(&backend).await;
    let mut beta = trial("beta", 5);
    beta["apiVersion"] = json!("traps.dev/v2beta1");
    beta["spec"] = json!({"algorithm": "boost"});
    let mut objects: Vec<(Value, Life)> = (0..5)
        .map(|row| (trial(&format!("u{row}"), 5), Life::Deleted))
        .collect();
    objects.push((beta, Life::Archived));
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    assert_eq!(run(&store, 4).await.converted, 6);
    let kept = async |uid: &str| store.kept_texts(&KIND, &Uid::from(uid)).await.expect("read").len();
    let gone = Gone {
        deleted: true,
        ..Gone::default()
    };
    let [u1, u3] = ["u1", "u3"].map(|uid| [Uid::from(uid)]);
    let removed = store.remove(&KIND, &gone, &u1, at(9)).await.expect("removed");
    assert_eq!((removed.len(), kept("u1").await, kept("u2").await), (1, 0, 1));
    let removed = store.remove(&LAST, &gone, &u3, at(9)).await.expect("removed");
    let left = (removed.len(), kept("u3").await);
    assert_eq!(left, (1, 0), "also where no other version is left");
    let options = Options {
        page_rows: 2,
        ..Options::default()
    };
    let drop = async |version| {
        drop_kept(store.as_ref(), &LAST, version, &options, &NoProgress)
            .await
            .expect("dropped")
    };
    assert_eq!((drop("v1").await, kept("u2").await, kept("beta").await), (3, 0, 1));
    assert_eq!((drop("v1").await, drop("v2beta1").await, kept("beta").await), (0, 1, 0));
    assert_eq!(
        image(store.as_ref(), "u2").await.group_ver,
        "traps.dev/v2",
        "rows stay as they are"
    );
}
