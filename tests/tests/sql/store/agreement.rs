//! The simulated database is a model of the store's contract. Random sequences of batches leave
//! the same on the model and on every real database: outcomes, versions, lives, times, texts,
//! columns, labels and annotations.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::value::Value;
use kindex_query::{Life, Revive};
use kindex_sim::database::{SimDatabase, SimRow};
use kindex_sim::past::SimHistory;
use kindex_store::{Arrival, RowState, RowWrite};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::backend::Backend;
use super::widget::{KEEPSAKE, WIDGET, at, soft_delete, widget};

scenarios!(
    random_sequences_leave_what_the_model_says,
    random_sequences_keep_the_versions_that_the_model_keeps,
);

const SEQUENCES: u64 = 24;
const BATCHES: usize = 25;
/// Few of each, so that versions, uids and names meet.
const UIDS: u32 = 9;
const NAMES: u32 = 4;
const VERSIONS: u64 = 12;

/// One sequence and the rows that it has touched.
struct Sequence {
    seed: u64,
    random: StdRng,
    model: SimDatabase,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: StdRng::seed_from_u64(seed),
            model: SimDatabase::default(),
        }
    }

    fn uid(&self, number: u32) -> String {
        format!("s{}-u{number}", self.seed)
    }

    fn batch(&mut self) -> Vec<RowWrite> {
        let mut uids: Vec<u32> = (0..UIDS).collect();
        let rows = self.random.random_range(1..=4);
        (0..rows)
            .map(|_| {
                let number = uids.swap_remove(self.random.random_range(0..uids.len()));
                self.write(number)
            })
            .collect()
    }

    fn write(&mut self, number: u32) -> RowWrite {
        let uid = self.uid(number);
        if self.random.random_ratio(1, 5) {
            return soft_delete(&uid);
        }
        let version = self.random.random_range(1..=VERSIONS);
        let name = format!("s{}-n{}", self.seed, number % NAMES);
        let mut object = widget(&uid, &name, version);
        // A resource version has one content, which side rows share with their neighbors.
        let mut content = StdRng::seed_from_u64(version);
        for key in ["a", "A", "a "] {
            if content.random() {
                object = object.label(key, &(version / 4).to_string());
            }
            if content.random() {
                object = object.annotation(key, &(version / 6).to_string());
            }
        }
        object = object
            .spec(json!({"group": format!("g{version}"), "order": version, "key": (version * 1_000_003).to_string()}))
            .status(json!({"ready": version % 2 == 0, "endTime": at(i64::try_from(version).unwrap()).to_string()}));
        if self.random.random_ratio(1, 4) {
            object.api_version = "test.kindex/v2";
        }
        let life = match self.random.random_range(0..6) {
            0 => Life::Deleted,
            1 => Life::Archived,
            _ => Life::Live,
        };
        let revive = match self.random.random_range(0..9) {
            0 => Revive::FromAny,
            1 => Revive::From(Life::Archived),
            2 => Revive::From(Life::Deleted),
            _ => Revive::Never,
        };
        object.store(life, revive)
    }

    /// A clock that mostly goes on, stands still at times and jumps back at others.
    fn moment(&mut self, step: usize) -> Timestamp {
        let second = i64::try_from(step).expect("small") * 10;
        at(second - [0, 0, 0, 10, 35][self.random.random_range(0..5)])
    }
}

async fn random_sequences_leave_what_the_model_says(backend: Backend) {
    for seed in 0..SEQUENCES {
        let mut sequence = Sequence::new(seed);
        for step in 0..BATCHES {
            if sequence.random.random_ratio(1, 12) {
                let number = sequence.random.random_range(0..UIDS);
                let uid = Uid::from(sequence.uid(number).as_str());
                sequence.model.rewind(&uid, at(2_000));
                backend.store.rewind(&WIDGET, &[uid], at(2_000)).await.expect("rewound");
            }
            let batch = sequence.batch();
            let now = sequence.moment(step);
            let wanted = sequence.model.write(&batch, now).expect("no widget is poison");
            let written = backend.write_all(&batch, now).await;
            let story: Vec<String> = batch.iter().map(reported).collect();
            assert_eq!(written, wanted, "seed {seed}, step {step}: {story:#?}");
            expect_states(&backend, &sequence, &story).await;
        }
        expect_rows(&backend, &sequence).await;
    }
}

/// The same kind of sequences where every version is kept, late ones too, and numbers come twice.
async fn random_sequences_keep_the_versions_that_the_model_keeps(backend: Backend) {
    for seed in 0..SEQUENCES {
        let mut sequence = Sequence::new(seed);
        sequence.model.history = Some(SimHistory::default());
        for step in 0..BATCHES {
            // No two branches of an object are lost at once.
            let now = at(i64::try_from(step).expect("small") * 10);
            let mut batch = sequence.batch();
            let number = sequence.random.random_range(0..UIDS);
            let uid = Uid::from(sequence.uid(number).as_str());
            if let RowWrite::Store { version, .. } = sequence.write(number) {
                let object = version.object.clone();
                batch.push(RowWrite::Record { object, seen: now });
            }
            sequence.model.write(&batch, now).expect("no widget is poison");
            backend.store.write(&KEEPSAKE, &batch, now).await.expect("written");
            let lost = at(i64::try_from(step).expect("small") * 10 + 5);
            match sequence.random.random_range(0..20) {
                0 => {
                    sequence.model.rewind(&uid, lost);
                    backend.store.rewind(&KEEPSAKE, &[uid], lost).await.expect("rewound");
                }
                1 => {
                    let beyond = ResourceVersion(VERSIONS / 2);
                    sequence
                        .model
                        .history
                        .iter_mut()
                        .for_each(|history| history.branch_off_beyond(beyond, lost));
                    backend
                        .store
                        .branch_off_beyond(&KEEPSAKE, beyond, lost)
                        .await
                        .expect("moved to a branch");
                }
                _ => {}
            }
        }
        expect_history(&backend, &sequence).await;
        // The next sequence has other uids, and `branch_off_beyond` means all.
        backend
            .store
            .branch_off_beyond(&KEEPSAKE, ResourceVersion(0), at(5_000))
            .await
            .expect("moved to a branch");
    }
}

async fn expect_history(backend: &Backend, sequence: &Sequence) {
    let model = sequence.model.history.as_ref().expect("the model keeps one");
    for number in 0..UIDS {
        let uid = Uid::from(sequence.uid(number).as_str());
        let kept = backend
            .store
            .history(&KEEPSAKE, &uid, None, 1_000)
            .await
            .expect("readable");
        let kept: Vec<&str> = kept.iter().map(|past| past.object.text()).collect();
        let wanted: Vec<&str> = model.versions(&uid).map(Object::text).collect();
        assert_eq!(kept, wanted, "seed {}: {uid}", sequence.seed);
    }
}

/// A write in a line.
fn reported(write: &RowWrite) -> String {
    match write {
        RowWrite::Store { version, life, revive } => {
            let metadata = &version.object.metadata;
            let (uid, name, version) = (&metadata.uid, &metadata.name, metadata.resource_version);
            let api_version = &metadata.api_version;
            format!("store {uid} {name} @{version} of {api_version} {life:?}, revive {revive:?}")
        }
        RowWrite::SoftDelete { uid } => format!("soft-delete {uid}"),
        RowWrite::Record { object, .. } => format!("record {object:?}"),
    }
}

async fn expect_states(backend: &Backend, sequence: &Sequence, story: &[String]) {
    let uids: Vec<Uid> = (0..UIDS).map(|n| Uid::from(sequence.uid(n).as_str())).collect();
    let states = backend.store.row_states(&WIDGET, &uids).await.expect("read");
    let expected = sequence.model.row_states(&uids);
    assert_eq!(
        ranked(states),
        ranked(expected),
        "seed {} after {story:#?}",
        sequence.seed
    );
}

/// In order of arrival, which is the same wherever the numbers begin: sequences share a database.
fn ranked(mut states: Vec<RowState>) -> Vec<RowState> {
    states.sort_by_key(|state| state.arrival);
    for (rank, state) in (0..).zip(&mut states) {
        state.arrival = Arrival(rank);
    }
    states
}

async fn expect_rows(backend: &Backend, sequence: &Sequence) {
    for (uid, row) in &sequence.model.rows {
        let stored = backend.store.get_by_id(&WIDGET, uid).await.expect("readable");
        let stored = stored.expect("stored");
        assert_eq!(stored.object.text(), row.object().text(), "{uid}");
        assert_eq!(
            [stored.update_time, stored.delete_time, stored.evicted_time],
            [Some(row.update_time), row.delete_time, row.evicted_time],
            "{uid}"
        );
        expect_columns(backend, uid, row).await;
        let metadata = &row.object().metadata;
        expect_side(backend, "labels", uid, &metadata.labels).await;
        expect_side(backend, "annotations", uid, &metadata.annotations).await;
    }
}

async fn expect_columns(backend: &Backend, uid: &Uid, row: &SimRow) {
    let sql = format!(
        "SELECT `group`, `order`, `key`, `rank`, `ready`, replace(replace(end_time, 'T', ' '), 'Z', ''), \
         size FROM widget WHERE uid = '{uid}'"
    );
    let Some(found) = backend.rows(&sql).await else {
        return;
    };
    let wanted: Vec<Option<String>> = row.content.columns.iter().map(shown).collect();
    assert_eq!(found, [wanted], "{uid}");
}

fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(u8::from(*flag).to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::Time(time) => Some(time.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()),
    }
}

async fn expect_side(backend: &Backend, side: &str, uid: &Uid, map: &BTreeMap<String, String>) {
    let sql = format!("SELECT `key`, `value` FROM widget_{side} WHERE obj_uid = '{uid}'");
    let Some(mut found) = backend.rows(&sql).await else {
        return;
    };
    found.sort();
    let wanted: Vec<Vec<Option<String>>> = map
        .iter()
        .map(|(key, value)| vec![Some(key.clone()), Some(value.clone())])
        .collect();
    assert_eq!(found, wanted, "{side} of {uid}");
}
