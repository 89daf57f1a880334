//! An outbox in memory, as the store keeps it: one row an object, marks at the ends of transactions.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_store::{Mark, Outbox, OutboxEntry, Position, StoreError};

#[derive(Clone, Default)]
struct Rows {
    stamps: u64,
    marks: Vec<Mark>,
    entries: BTreeMap<String, OutboxEntry>,
}

/// A database whose transactions change one object each.
#[derive(Default)]
pub(crate) struct Board {
    rows: Mutex<Rows>,
    /// A page of a replay with so many objects or fewer fails.
    reads: Option<usize>,
}

/// A backup of it.
pub(crate) struct Backup(Rows);

impl Board {
    /// Its transactions draw the numbers after this one.
    pub(crate) fn drawing_after(stamp: u64) -> Self {
        let rows = Rows {
            stamps: stamp,
            ..Rows::default()
        };
        Self {
            rows: Mutex::new(rows),
            reads: None,
        }
    }

    /// It fails where a page of a replay has so many objects or fewer.
    pub(crate) fn failing_at(reads: usize) -> Self {
        Self {
            reads: Some(reads),
            ..Self::default()
        }
    }

    pub(crate) fn create(&self, name: &str) -> Uid {
        let uid = Uid::from(format!("uid-{name}").as_str());
        let entry = OutboxEntry {
            uid: uid.clone(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            position: Position(0),
            deletion_timestamp: None,
            erased: false,
        };
        self.write(entry);
        uid
    }

    pub(crate) fn delete(&self, name: &str) {
        self.change(name, |entry| {
            entry.deletion_timestamp = "2026-11-24T12:00:00Z".parse::<Timestamp>().ok();
        });
    }

    pub(crate) fn erase(&self, name: &str) {
        self.change(name, |entry| entry.erased = true);
    }

    pub(crate) fn backup(&self) -> Backup {
        Backup(self.rows.lock().expect("no panic").clone())
    }

    /// What happens from now on has other stamps than it had after the backup.
    pub(crate) fn restore(&self, backup: &Backup) {
        let mut rows = self.rows.lock().expect("no panic");
        let stamps = rows.stamps + 1_000;
        *rows = backup.0.clone();
        rows.stamps = stamps;
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut OutboxEntry)) {
        let mut entry = self.rows.lock().expect("no panic").entries[&format!("uid-{name}")].clone();
        change(&mut entry);
        self.write(entry);
    }

    fn write(&self, entry: OutboxEntry) {
        let mut rows = self.rows.lock().expect("no panic");
        let last = rows.marks.last().copied().unwrap_or_default();
        let position = Position(last.position.0 + 1);
        rows.stamps += 1;
        let stamp = rows.stamps;
        rows.marks.push(Mark { position, stamp });
        rows.entries
            .insert(entry.uid.0.to_string(), OutboxEntry { position, ..entry });
    }
}

#[async_trait]
impl Outbox for Board {
    async fn head(&self, _: &Kind) -> Result<Mark, StoreError> {
        Ok(self
            .rows
            .lock()
            .expect("no panic")
            .marks
            .last()
            .copied()
            .unwrap_or_default())
    }

    async fn replay(&self, _: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<OutboxEntry>, StoreError> {
        let rows = self.rows.lock().expect("no panic");
        let later = rows
            .entries
            .values()
            .filter(|entry| after.is_none_or(|after| entry.uid.0 > after.0));
        let page: Vec<OutboxEntry> = later.take(limit as usize).cloned().collect();
        match self.reads {
            Some(reads) if page.len() <= reads => Err(StoreError::Schema("the table is gone".to_owned())),
            _ => Ok(page),
        }
    }

    async fn since(&self, _: &Kind, after: Mark, limit: u32) -> Result<Option<(Vec<OutboxEntry>, Mark)>, StoreError> {
        let rows = self.rows.lock().expect("no panic");
        if after != Mark::default() && !rows.marks.contains(&after) {
            return Ok(None);
        }
        let later = rows.marks.iter().filter(|mark| mark.position > after.position);
        let Some(end) = later.take(limit as usize).last().copied() else {
            return Ok(Some((Vec::new(), after)));
        };
        let is_in = |entry: &&OutboxEntry| entry.position > after.position && entry.position <= end.position;
        let mut entries: Vec<OutboxEntry> = rows.entries.values().filter(is_in).cloned().collect();
        entries.sort_by_key(|entry| entry.position);
        Ok(Some((entries, end)))
    }
}
