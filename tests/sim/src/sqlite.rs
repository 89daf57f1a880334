//! The production store on SQLite in memory, and a second connection that compares its tables with the model after
//! every change: texts, columns, times, labels and annotations, checkpoint and quarantine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::value::Value;
use kindex_store::{Address, MetadataStorage, PoolConfig, SqliteLocation};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Row as _};
use tokio::sync::Mutex;

use super::database::{SimDatabase, SimRow};
use super::subscriber::Subscriber;
use super::thing::REGISTRY;

/// Everything in three texts and one statement, so that little crosses between threads: all rows;
/// what the tables say that hold no objects, and how many side rows there are; and the ids of
/// side rows, by which a row that was written again is known.
const EVERYTHING: &str = "
    SELECT
        (SELECT coalesce(group_concat(line, char(10)), '') FROM (
            SELECT uid || '|' || group_ver || '|' || namespace || '|' || name || '|' || res_version
                || '|' || create_time || '|' || update_time || '|' || coalesce(delete_time, '-')
                || '|' || coalesce(evicted_time, '-') || '|' || coalesce(value, '-')
                || '|' || lower(hex(content_hash)) || '|' || json
                || '|' || (SELECT coalesce(group_concat(pair, ','), '') FROM (
                    SELECT key || '=' || value AS pair FROM thing_labels WHERE obj_uid = uid ORDER BY key))
                || '|' || (SELECT coalesce(group_concat(pair, ','), '') FROM (
                    SELECT key || '=' || value AS pair FROM thing_annotations WHERE obj_uid = uid ORDER BY key))
                AS line
            FROM thing ORDER BY uid)),
        (SELECT coalesce(max(res_version), '-') FROM kindex_checkpoint)
            || '|' || (SELECT coalesce(group_concat(record, ','), '') FROM (
                SELECT uid || '@' || res_version || ':' || json AS record FROM kindex_quarantine ORDER BY uid))
            || '|' || (SELECT coalesce(group_concat(line, ','), '') FROM (
                SELECT uid || '=' || name AS line FROM kindex_reference ORDER BY uid, name))
            || '|' || (SELECT count(*) FROM thing_labels) || '|' || (SELECT count(*) FROM thing_annotations),
        (SELECT coalesce(group_concat(line, ';'), '') FROM (
            SELECT 'l' || obj_uid || '=' || group_concat(id, ',') AS line FROM thing_labels GROUP BY obj_uid
            UNION ALL
            SELECT 'a' || obj_uid || '=' || group_concat(id, ',') FROM thing_annotations GROUP BY obj_uid))";

const TABLES: [&str; 14] = [
    "DELETE FROM thing",
    "DELETE FROM thing_labels",
    "DELETE FROM thing_annotations",
    "DELETE FROM thing_history",
    "DELETE FROM kindex_checkpoint",
    "DELETE FROM kindex_quarantine",
    "DELETE FROM kindex_state",
    "DELETE FROM kindex_feed",
    "DELETE FROM kindex_changes",
    "DELETE FROM kindex_reference",
    "DELETE FROM kindex_tombstone",
    "DELETE FROM kindex_outbox",
    "DELETE FROM kindex_outbox_mark",
    "DELETE FROM kindex_outbox_counter",
];

/// Ids of side rows by table and uid, with how often the model had written them then.
type Ids = BTreeMap<String, (String, u32)>;

/// The production store on SQLite.
pub struct RealStore {
    pub(crate) store: Arc<dyn MetadataStorage>,
    observer: Mutex<(SqliteConnection, Ids)>,
    subscriber: Mutex<Subscriber>,
}

impl RealStore {
    /// A prepared store over an empty database of its own.
    pub(crate) async fn open() -> Arc<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // This file system of SQLite's own keeps a named database in memory for a whole process.
        let path = PathBuf::from(format!("file:/kindex-sim-{number}?vfs=memdb"));
        let observer = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let observer = observer.connect().await.expect("a database in memory opens");
        let address = Address::Sqlite(SqliteLocation::File(path));
        let store =
            kindex_store::open(&address, REGISTRY, &PoolConfig::default()).expect("the address names a database");
        store.prepare().await.expect("an empty database is prepared");
        Arc::new(Self {
            store,
            observer: Mutex::new((observer, Ids::new())),
            subscriber: Mutex::default(),
        })
    }

    /// Empties the database for another history.
    pub(crate) async fn clear(&self) {
        let mut observer = self.observer.lock().await;
        for statement in TABLES {
            let emptied = sqlx::query(statement).execute(&mut observer.0).await;
            emptied.expect("tables can be emptied");
        }
        observer.1.clear();
        *self.subscriber.lock().await = Subscriber::default();
    }

    /// What a subscriber knows who follows the outbox, where that is not what exists.
    pub(crate) async fn misunderstanding(&self, kind: &Kind, model: &SimDatabase) -> Option<String> {
        let mut subscriber = self.subscriber.lock().await;
        subscriber.follow(&*self.store, kind, model).await
    }

    /// Every difference between the database and its model; `None` where they agree.
    pub(crate) async fn difference(&self, model: &SimDatabase) -> Option<String> {
        let mut observer = self.observer.lock().await;
        let (connection, ids) = &mut *observer;
        let found = sqlx::query(EVERYTHING).fetch_one(connection).await;
        let found = found.expect("the tables are there");
        let [rows, rest, found_ids]: [String; 3] = [0, 1, 2].map(|index| found.get_unchecked(index));
        differing_lines(&rows, &rows_of(model))
            .or_else(|| differing_lines(&rest, &rest_of(model)))
            .or_else(|| rewritten(ids, &found_ids, model))
    }
}

fn differing_lines(found: &str, expected: &str) -> Option<String> {
    if found == expected {
        return None;
    }
    let (found, expected): (Vec<&str>, Vec<&str>) = (found.lines().collect(), expected.lines().collect());
    let extra = found.iter().filter(|line| !expected.contains(line));
    let missing = expected.iter().filter(|line| !found.contains(line));
    let extra = extra.map(|line| format!("SQL holds:     {line}"));
    let missing = missing.map(|line| format!("it should be:  {line}"));
    Some(missing.chain(extra).collect::<Vec<_>>().join("\n"))
}

/// A side row that was written again though nothing of it changed.
fn rewritten(known: &mut Ids, found: &str, model: &SimDatabase) -> Option<String> {
    let mut wrong = None;
    let mut now = Ids::new();
    for line in found.split(';').filter(|line| !line.is_empty()) {
        let (key, ids) = line.split_once('=').expect("as the query says");
        let side = usize::from(key.starts_with('a'));
        let row = model.rows.iter().find(|(uid, _)| *uid.0 == key[1..]);
        let written = row.map_or(0, |(_, row)| row.sides_written[side]);
        if known
            .get(key)
            .is_some_and(|(before, then)| *then == written && before != ids)
        {
            wrong = Some(format!("side rows of {key} were written again and had not changed"));
        }
        now.insert(key.to_owned(), (ids.to_owned(), written));
    }
    *known = now;
    wrong
}

fn rows_of(model: &SimDatabase) -> String {
    let lines: Vec<&str> = model
        .rows
        .values()
        .map(|row| row.line.get_or_init(|| row_line(row)).as_str())
        .collect();
    lines.join("\n")
}

fn row_line(row: &SimRow) -> String {
    let object = row.object();
    let metadata = &object.metadata;
    let Value::Int(value) = row.content.columns[0] else {
        unreachable!("every simulated object has a number");
    };
    let hash = row.content.hash.to_bytes().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes any text");
        hex
    });
    format!(
        "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{hash}|{}|{}|{}",
        metadata.uid,
        metadata.api_version,
        metadata.namespace,
        metadata.name,
        row.version,
        time(metadata.creation_timestamp),
        time(Some(row.update_time)),
        time(row.delete_time),
        time(row.evicted_time),
        value,
        object.text(),
        pairs(&metadata.labels),
        pairs(&metadata.annotations),
    )
}

fn time(time: Option<Timestamp>) -> String {
    time.map_or("-".to_owned(), |time| {
        time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    })
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

fn rest_of(model: &SimDatabase) -> String {
    let checkpoint = model
        .checkpoint
        .map_or("-".to_owned(), |saved| saved.pack().to_string());
    let records: Vec<String> = model
        .quarantine
        .iter()
        .map(|(uid, (object, _))| format!("{uid}@{}:{}", object.metadata.resource_version, object.text()))
        .collect();
    let sides = |count: fn(&SimRow) -> usize| model.rows.values().map(count).sum::<usize>();
    let references = model.references.iter();
    let references = references.flat_map(|(uid, names)| names.iter().map(move |name| format!("{uid}={name}")));
    let references: Vec<String> = references.collect();
    format!(
        "{checkpoint}|{}|{}|{}|{}",
        records.join(","),
        references.join(","),
        sides(|row| row.object().metadata.labels.len()),
        sides(|row| row.object().metadata.annotations.len()),
    )
}
