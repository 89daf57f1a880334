//! Objects that the database rejects: which of them are in quarantine, and which of them even their record is rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_model::object::{ResourceVersion, Uid};
use kindex_store::QuarantineRecord;

use super::entry::{Entry, Observation};
use super::environment::Environment;
use crate::message::{Output, StoreFailure};

/// No column holds a later version.
pub(super) const VERSION_MAX: ResourceVersion = ResourceVersion(i64::MAX.cast_unsigned());

#[derive(Debug, Default)]
pub(super) struct Quarantine {
    records: BTreeMap<Uid, QuarantineRecord>,
    /// Objects of which the database rejects even the record. They stay pending and are retried alone.
    unrecorded: BTreeSet<Uid>,
    /// Records that are being removed. Until they are, the checkpoint stays before their objects: after a crash,
    /// nothing else would lead to them.
    releasing: BTreeMap<Uid, Releasing>,
    /// When removals that failed are tried again.
    again: Option<Duration>,
    /// Whether a restoration is not settled, so that versions of records cannot be compared.
    restored: bool,
}

/// The removal of a record.
#[derive(Debug)]
struct Releasing {
    /// What the row holds: a record of a later version stays.
    stored: ResourceVersion,
    /// That of the object.
    version: ResourceVersion,
    failed: bool,
}

impl Quarantine {
    /// Takes the records of an earlier run.
    pub(super) fn load(&mut self, records: Vec<QuarantineRecord>) {
        let records = records.into_iter();
        self.records = records.map(|record| (record.uid.clone(), record)).collect();
    }

    pub(super) fn set_restored(&mut self, restored: bool) {
        self.restored = restored;
    }

    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.records.contains_key(uid)
    }

    pub(super) fn is_unrecorded(&self, uid: &Uid) -> bool {
        self.unrecorded.contains(uid)
    }

    pub(super) fn unrecorded(&self) -> usize {
        self.unrecorded.len()
    }

    pub(super) fn reasons(&self) -> BTreeMap<Uid, String> {
        let records = self.records.values();
        records
            .map(|record| (record.uid.clone(), record.reason.clone()))
            .collect()
    }

    /// The database rejects the current state of an object.
    pub(super) fn refuse(&mut self, env: &Environment, uid: &Uid, entry: &Entry, reason: &str) {
        if !self.is_unrecorded(uid) {
            tracing::error!(kind = env.kind.name, object = %entry.name, %uid, "quarantined: {reason}");
        }
        let record = QuarantineRecord {
            uid: uid.clone(),
            version: entry.newest().version().unwrap_or_default(),
            reason: reason.to_owned(),
        };
        self.records.insert(uid.clone(), record);
    }

    /// The database has neither the object nor its record: it stays pending, and the checkpoint stays before it.
    pub(super) fn on_unrecorded(&mut self, env: &mut Environment, uid: &Uid, entry: &Entry, message: &str) {
        let name = &entry.name;
        if self.unrecorded.insert(uid.clone()) {
            let period = env.settings.requeue_period;
            tracing::error!(kind = env.kind.name, object = %name, %uid,
                "The database refuses both this object and a quarantine record of it; retrying every {period:?}, which \
                 is not logged again: {message}");
        }
        env.last_error = Some(format!("{name}: neither stored nor recorded: {message}"));
    }

    /// The database has accepted the object or its record.
    pub(super) fn on_recorded(&mut self, env: &Environment, uid: &Uid) {
        if self.unrecorded.remove(uid) {
            tracing::info!(kind = env.kind.name, %uid, "The database has taken the object, or its record");
        }
    }

    /// Removes the record if the row holds the rejected version or a newer one. The record of an object that is gone
    /// stays, because it is the only copy of the last text.
    pub(super) fn release(&mut self, env: &mut Environment, uid: &Uid, entry: &Entry) {
        let (Observation::Present(object), Some(row)) = (entry.newest(), entry.row.flatten()) else {
            return;
        };
        let current = row.cluster_version() >= object.metadata.resource_version;
        let stored = if current && self.restored {
            VERSION_MAX
        } else {
            row.cluster_version()
        };
        let over = self.records.get(uid).is_some_and(|record| record.version <= stored);
        if over {
            self.records.remove(uid);
            let releasing = Releasing {
                stored,
                version: object.metadata.resource_version,
                failed: false,
            };
            self.releasing.insert(uid.clone(), releasing);
            env.emit(Output::ReleaseQuarantine(uid.clone(), stored));
        }
    }

    /// Whether a record of this version could go with the one whose removal is under way: after a restoration, an
    /// object has lower versions than before.
    pub(super) fn would_remove(&self, uid: &Uid, version: ResourceVersion) -> bool {
        self.releasing.get(uid).is_some_and(|found| found.stored >= version)
    }

    pub(super) fn on_released(
        &mut self,
        env: &mut Environment,
        uid: Uid,
        stored: ResourceVersion,
        answer: Result<(), StoreFailure>,
    ) {
        let Some(releasing) = self.releasing.get_mut(&uid).filter(|found| found.stored == stored) else {
            return;
        };
        match answer {
            Ok(()) => {
                self.releasing.remove(&uid);
            }
            Err(failure) => {
                releasing.failed = true;
                self.again = Some(env.now.elapsed + env.settings.checkpoint_period);
                env.note_store_failure("release from quarantine", &failure);
            }
        }
    }

    /// Tries again what failed, once it is due.
    pub(super) fn release_again(&mut self, env: &mut Environment) {
        if self.again.is_none_or(|again| again > env.now.elapsed) {
            return;
        }
        self.again = None;
        for (uid, releasing) in self.releasing.iter_mut().filter(|(_, releasing)| releasing.failed) {
            releasing.failed = false;
            env.emit(Output::ReleaseQuarantine(uid.clone(), releasing.stored));
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.again
    }

    /// Of the objects whose records are being removed, the oldest version.
    pub(super) fn oldest_releasing(&self) -> Option<ResourceVersion> {
        self.releasing.values().map(|releasing| releasing.version).min()
    }

    /// The object needs nothing more until it changes.
    pub(super) fn settle(&mut self, uid: &Uid) {
        self.unrecorded.remove(uid);
    }

    /// Drops everything but the records: the cluster was restored.
    pub(super) fn clear(&mut self) {
        self.unrecorded.clear();
    }
}
