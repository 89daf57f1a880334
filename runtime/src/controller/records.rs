//! Versions that wait to be written to a history. For a row only the newest event of a uid counts, but the history
//! needs every version. So each is kept here from its event until a batch with it is committed, independent of the
//! entries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_store::RowWrite;

use super::entry::Observation;
use super::environment::Environment;
use crate::message::StoreFailure;

/// One version of one object.
type Key = (ResourceVersion, Uid);

/// The versions of a batch.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Those that its rows hold after the commit.
    of_rows: Vec<Key>,
    others: Vec<Key>,
}

impl Taken {
    fn all(&self) -> impl Iterator<Item = &Key> {
        self.of_rows.iter().chain(&self.others)
    }

    /// Whether the batch holds more than its rows.
    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }
}

/// See the module. Always empty for a kind without a history.
#[derive(Debug, Default)]
pub(super) struct Records {
    held: BTreeMap<Key, Record>,
    /// Set after a batch with records was rejected: records are written alone, at most so many at a time.
    alone: Option<usize>,
}

#[derive(Debug)]
struct Record {
    object: Object,
    seen: Timestamp,
    in_a_batch: bool,
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The oldest version that is not written yet: a watch must not resume after it.
    pub(super) fn oldest(&self) -> Option<ResourceVersion> {
        self.held.first_key_value().map(|((version, _), _)| *version)
    }

    /// Whether a version waits for a batch.
    pub(super) fn pending(&self) -> bool {
        self.held.values().any(|record| !record.in_a_batch)
    }

    /// Takes those of these versions that wait, and others, oldest first, up to `most`. `rows`: the batch also changes
    /// rows.
    fn take(&mut self, stored: &[Key], most: usize, rows: bool) -> Taken {
        let others = match self.alone {
            Some(_) if rows => 0,
            Some(few) => few,
            None => most,
        };
        let mut taken = Taken::default();
        for key in stored {
            if let Some(record) = self.held.get_mut(key) {
                record.in_a_batch = true;
                taken.of_rows.push(key.clone());
            }
        }
        let pending = self.held.iter_mut().filter(|(_, record)| !record.in_a_batch);
        for (key, record) in pending.take(others) {
            record.in_a_batch = true;
            taken.others.push(key.clone());
        }
        taken
    }

    fn write(&self, key: &Key) -> RowWrite<Object> {
        let record = &self.held[key];
        RowWrite::Record {
            object: record.object.clone(),
            seen: record.seen,
        }
    }

    /// The batch with these is committed.
    pub(super) fn on_committed(&mut self, taken: &Taken, rows: bool) {
        for key in taken.all() {
            self.held.remove(key);
        }
        if !rows {
            self.alone = None;
        }
    }

    /// The batch with these failed, and may succeed later.
    fn on_failed(&mut self, taken: &Taken) {
        for key in taken.all() {
            if let Some(record) = self.held.get_mut(key) {
                record.in_a_batch = false;
            }
        }
    }

    /// The batch with these was rejected. Smaller batches of records alone find the rejected version, which is dropped
    /// and returned.
    fn on_refused(&mut self, taken: &Taken, rows: bool) -> Option<Object> {
        self.on_failed(taken);
        match taken.others.as_slice() {
            [] => None,
            [key] if !rows => {
                self.alone = None;
                self.held.remove(key).map(|record| record.object)
            }
            others => {
                self.alone = Some(if rows { others.len() } else { others.len() / 2 });
                None
            }
        }
    }
}

impl Records {
    /// Keeps the version of an event. The echo of our own effect is not a version of its own: the row shows the result
    /// of the effect, and `removed` is the version up to which others may have written.
    pub(super) fn hold(
        &mut self,
        env: &Environment,
        uid: &Uid,
        observation: &Observation,
        removed: Option<ResourceVersion>,
    ) {
        let Some(object) = observation.object().filter(|_| env.kind.history) else {
            return;
        };
        let version = object.metadata.resource_version;
        if removed.is_some_and(|stored| version >= stored) {
            return;
        }
        self.held.entry((version, uid.clone())).or_insert_with(|| Record {
            object: object.clone(),
            seen: env.now.wall,
            in_a_batch: false,
        });
    }

    /// Adds records to the writes of a batch: of what it stores, and of others as there is room.
    pub(super) fn join(&mut self, writes: &mut Vec<RowWrite<Object>>, most: usize) -> Taken {
        if self.len() == 0 {
            return Taken::default();
        }
        let stored: Vec<Key> = writes
            .iter()
            .filter_map(|write| match write {
                RowWrite::Store { version, .. } => {
                    Some((version.metadata.resource_version, version.metadata.uid.clone()))
                }
                RowWrite::SoftDelete { .. } | RowWrite::Record { .. } => None,
            })
            .collect();
        let taken = self.take(&stored, most, !writes.is_empty());
        writes.extend(taken.all().map(|key| self.write(key)));
        taken
    }

    /// Handles the versions of a batch that failed.
    pub(super) fn on_failure(&mut self, env: &mut Environment, taken: &Taken, rows: bool, failure: &StoreFailure) {
        if failure.retryable {
            return self.on_failed(taken);
        }
        if let Some(object) = self.on_refused(taken, rows) {
            let reason = &failure.message;
            tracing::error!(kind = env.kind.name, ?object, "not kept in the history: {reason}");
            env.last_error = Some(format!("history of {object:?}: {reason}"));
        }
    }
}
