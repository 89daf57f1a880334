//! A model of the database: atomic batches, a version check, one open row per name, and rejected objects. Written
//! from the contract of `IngesterStorage` and not from its code; tests compare the real stores with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive, Stored};
use kindex_store::{Arrival, CheckpointOutcome, RowState, RowWrite, Written};

use super::owned::OwnedElsewhere;
use super::past::SimHistory;
use super::thing::{FINALIZER, REFERENCES, is_poison};

/// One row of the main table with its side rows.
#[derive(Clone, Debug)]
pub struct SimRow {
    /// Its `seq`.
    pub arrival: Arrival,
    /// What is stored.
    pub content: Arc<Version>,
    /// `res_version`; 0 after a rewind.
    pub version: ResourceVersion,
    /// Last change of the row.
    pub update_time: Timestamp,
    /// When it was deleted.
    pub delete_time: Option<Timestamp>,
    /// When it was evicted.
    pub evicted_time: Option<Timestamp>,
    /// How often labels and annotations were written; no more often than they changed.
    pub sides_written: [u32; 2],
    /// How an SQL client sees it. Computed on first use.
    pub(crate) line: OnceLock<String>,
}

impl SimRow {
    /// The stored text.
    pub fn object(&self) -> &Object {
        &self.content.object
    }

    /// Live, archived or deleted.
    pub fn life(&self) -> Life {
        match (self.delete_time, self.evicted_time) {
            (Some(_), _) => Life::Deleted,
            (None, Some(_)) => Life::Archived,
            (None, None) => Life::Live,
        }
    }

    fn put_into(&mut self, life: Life, now: Timestamp) {
        self.line = OnceLock::new();
        self.update_time = now;
        match life {
            Life::Live => (self.delete_time, self.evicted_time) = (None, None),
            Life::Archived => (self.delete_time, self.evicted_time) = (None, Some(now)),
            Life::Deleted => self.delete_time = Some(now),
        }
    }

    fn name(&self) -> (&str, &str) {
        let metadata = &self.object().metadata;
        (&metadata.namespace, &metadata.name)
    }

    fn state(&self, uid: &Uid) -> RowState {
        let (namespace, name) = self.name();
        RowState {
            arrival: self.arrival,
            uid: uid.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            res_version: RowVersion::Cluster(self.version),
            hash: Some(self.content.hash),
            life: self.life(),
        }
    }
}

/// A change of a row that the checks look at.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The row.
    pub uid: Uid,
    /// Its version and life, where there was a row.
    pub before: Option<(ResourceVersion, Life)>,
    /// Its version and life since.
    pub after: (ResourceVersion, Life),
    /// Whether its text was written.
    pub stored: bool,
}

/// A batch was rejected because of one of its rows. Nothing of it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal;

/// The `seq` of a row that is being inserted.
const UNNUMBERED: Arrival = Arrival(0);

/// The database.
#[derive(Clone, Debug, Default)]
pub struct SimDatabase {
    /// The rows.
    pub rows: BTreeMap<Uid, SimRow>,
    /// The saved position.
    pub checkpoint: Option<Checkpoint>,
    /// Recorded objects with their reasons.
    pub quarantine: BTreeMap<Uid, (Object, String)>,
    /// Changes since the last check.
    pub transitions: Vec<Transition>,
    /// Rows that were rewound.
    pub rewound: BTreeSet<Uid>,
    /// Rows changed so far, at most one for a row and batch.
    pub changes: u64,
    /// Every version, if the kind keeps a history.
    pub history: Option<SimHistory>,
    /// The references of archived objects.
    pub references: BTreeMap<Uid, BTreeSet<String>>,
    /// What objects own of another kind.
    pub owned: OwnedElsewhere,
}

impl SimDatabase {
    fn state(&self, uid: &Uid) -> Option<(ResourceVersion, Life)> {
        self.rows.get(uid).map(|row| (row.version, row.life()))
    }

    /// The rows of these uids.
    pub fn row_states(&self, uids: &[Uid]) -> Vec<RowState> {
        let found = uids.iter().filter_map(|uid| Some(self.rows.get(uid)?.state(uid)));
        found.collect()
    }

    /// All rows of a name.
    pub fn rows_of_name(&self, namespace: &str, name: &str) -> Vec<Stored> {
        let rows = self.rows.values().filter(|row| row.name() == (namespace, name));
        let stored = |row: &SimRow| Stored {
            object: row.object().clone(),
            life: row.life(),
            update_time: Some(row.update_time),
            delete_time: row.delete_time,
            evicted_time: row.evicted_time,
            replaced_by: None,
        };
        rows.map(stored).collect()
    }

    /// A page of rows in order of arrival.
    pub fn scan(&self, after: Option<Arrival>, limit: usize) -> Vec<RowState> {
        let later = |row: &SimRow| after.is_none_or(|after| row.arrival > after);
        let rows = self.rows.iter().filter(|(_, row)| later(row));
        let mut states: Vec<RowState> = rows.map(|(uid, row)| row.state(uid)).collect();
        states.sort_unstable_by_key(|state| state.arrival);
        states.truncate(limit);
        states
    }

    /// One transaction.
    ///
    /// # Errors
    /// Where a row that it would write is poison.
    pub fn write(&mut self, batch: &[RowWrite], now: Timestamp) -> Result<Vec<Written>, Refusal> {
        let mut after = self.clone_for_batch();
        let mut arrived = BTreeSet::new();
        let mut written = Vec::with_capacity(batch.len());
        for write in batch {
            written.push(after.apply(write, now, &mut arrived)?);
        }
        for (namespace, name) in arrived {
            let by = after.close_namesakes((&namespace, &name), now);
            let took = |write: &RowWrite| !matches!(write, RowWrite::Record { .. }) && Some(write.uid()) == by.as_ref();
            let place = batch.iter().position(took);
            if let Some(place) = place.filter(|place| matches!(written[*place], Written::Inserted | Written::Updated)) {
                written[place] = Written::Replacing;
            }
        }
        after.number_arrivals();
        self.note(&after.rows);
        self.rows = after.rows;
        self.history = after.history;
        self.references = after.references;
        Ok(written)
    }

    /// New rows follow all others, in order of uid among themselves: so the writer inserts them.
    fn number_arrivals(&mut self) {
        let mut last = self.rows.values().map(|row| row.arrival).max().unwrap_or(UNNUMBERED);
        for row in self.rows.values_mut().filter(|row| row.arrival == UNNUMBERED) {
            last = Arrival(last.0 + 1);
            row.arrival = last;
        }
    }

    fn clone_for_batch(&self) -> Self {
        Self {
            rows: self.rows.clone(),
            history: self.history.clone(),
            references: self.references.clone(),
            ..Self::default()
        }
    }

    fn apply(
        &mut self,
        write: &RowWrite,
        now: Timestamp,
        arrived: &mut BTreeSet<(String, String)>,
    ) -> Result<Written, Refusal> {
        match write {
            RowWrite::SoftDelete { uid } => Ok(match self.rows.get_mut(uid) {
                Some(row) if row.life() != Life::Deleted => {
                    row.put_into(Life::Deleted, now);
                    Written::Updated
                }
                Some(_) | None => Written::Unchanged,
            }),
            RowWrite::Record { object, .. } => {
                self.history.iter_mut().for_each(|history| history.keep(object));
                Ok(Written::Unchanged)
            }
            RowWrite::Store { version, life, revive } => {
                let uid = &version.object.metadata.uid;
                let before = self.rows.get(uid).map(SimRow::life);
                let replaced = self.rows.get(uid).cloned();
                let written = self.store(version, *life, *revive, now)?;
                if let Some(history) = &mut self.history {
                    keep(
                        history,
                        replaced.filter(|_| written == Written::Updated).as_ref(),
                        version,
                        now,
                    );
                }
                let changed = matches!(written, Written::Inserted | Written::Updated);
                if written != Written::Superseded {
                    self.carry_references(version, *life, before);
                }
                let was_open = before.is_some_and(|life| life != Life::Deleted);
                if changed && !was_open && *life != Life::Deleted {
                    let metadata = &version.object.metadata;
                    arrived.insert((metadata.namespace.clone(), metadata.name.clone()));
                }
                Ok(written)
            }
        }
    }

    /// An archived row has the references that the object had while our finalizer held it; a live one has none.
    fn carry_references(&mut self, version: &Version, life: Life, before: Option<Life>) {
        let metadata = &version.object.metadata;
        let names = metadata
            .finalizers
            .iter()
            .filter(|name| REFERENCES.contains(&name.as_str()));
        let names: BTreeSet<String> = names.cloned().collect();
        match life {
            Life::Archived => {
                let is_whole =
                    metadata.deletion_timestamp.is_none() || metadata.finalizers.iter().any(|f| f == FINALIZER);
                let known = self.references.entry(metadata.uid.clone()).or_default();
                match is_whole {
                    true => *known = names,
                    false => known.extend(names),
                }
            }
            Life::Live if before != Some(Life::Live) => {
                self.references.remove(&metadata.uid);
            }
            Life::Live | Life::Deleted => {}
        }
    }

    fn store(
        &mut self,
        content: &Arc<Version>,
        life: Life,
        revive: Revive,
        now: Timestamp,
    ) -> Result<Written, Refusal> {
        let metadata = &content.object.metadata;
        let version = metadata.resource_version;
        let Some(row) = self.rows.get_mut(&metadata.uid) else {
            let row = SimRow {
                arrival: UNNUMBERED,
                content: content.clone(),
                version,
                update_time: now,
                delete_time: (life == Life::Deleted).then_some(now),
                evicted_time: (life == Life::Archived).then_some(now),
                sides_written: [1, 1],
                line: OnceLock::new(),
            };
            refuse_poison(content)?;
            self.rows.insert(metadata.uid.clone(), row);
            return Ok(Written::Inserted);
        };
        let revived = row.life() == Life::Deleted && life != Life::Deleted;
        let reopened = row.life() == Life::Archived && life == Life::Live && version == row.version;
        if version < row.version || ((revived || reopened) && !revive.is_from(row.life())) {
            return Ok(Written::Superseded);
        }
        if version == row.version && content.hash == row.content.hash {
            if row.life() == life {
                return Ok(Written::Unchanged);
            }
            row.put_into(life, now);
            return Ok(Written::Updated);
        }
        refuse_poison(content)?;
        row.replace(content, life, revived, now);
        Ok(Written::Updated)
    }

    /// Of the rows of one name that are not deleted only the newest stays so: its uid, where it replaced one that was
    /// evicted.
    fn close_namesakes(&mut self, name: (&str, &str), now: Timestamp) -> Option<Uid> {
        let open = |row: &SimRow| row.life() != Life::Deleted && row.name() == name;
        let mut rows: Vec<(&Uid, &mut SimRow)> = self.rows.iter_mut().filter(|(_, row)| open(row)).collect();
        rows.sort_by_key(|(uid, row)| (row.version, (*uid).clone()));
        let newest = rows.pop().map(|(uid, _)| uid.clone());
        let replaces = rows.iter().any(|(_, row)| row.life() == Life::Archived);
        for (_, row) in rows {
            row.put_into(Life::Deleted, now);
        }
        newest.filter(|_| replaces)
    }

    fn note(&mut self, after: &BTreeMap<Uid, SimRow>) {
        for (uid, row) in after {
            let before = self.rows.get(uid);
            if before.is_some_and(|before| before.update_time == row.update_time && same(before, row)) {
                continue;
            }
            self.changes += 1;
            self.transitions.push(Transition {
                uid: uid.clone(),
                before: self.state(uid),
                after: (row.version, row.life()),
                stored: before.is_none_or(|before| !Arc::ptr_eq(&before.content, &row.content)),
            });
        }
    }

    /// Saves a position, but not over a mark that is not the known one.
    pub fn save_checkpoint(
        &mut self,
        checkpoint: Checkpoint,
        known_mark: Option<ResourceVersion>,
    ) -> CheckpointOutcome {
        match self.checkpoint {
            Some(saved @ Checkpoint::Restoring(mark)) if known_mark != Some(mark) => CheckpointOutcome::Refused(saved),
            Some(_) | None => {
                self.checkpoint = Some(checkpoint);
                CheckpointOutcome::Done
            }
        }
    }

    /// Resets the version of a row.
    pub fn rewind(&mut self, uid: &Uid, now: Timestamp) {
        self.history.iter_mut().for_each(|history| history.branch_off(uid, now));
        if let Some(row) = self.rows.get_mut(uid) {
            row.version = ResourceVersion(0);
            row.line = OnceLock::new();
            self.rewound.insert(uid.clone());
        }
    }
}

fn same(a: &SimRow, b: &SimRow) -> bool {
    a.version == b.version && a.life() == b.life() && a.sides_written == b.sides_written
}

/// Keeps a version in the history, and before it the version that the row held. Of two texts of one version, the
/// cluster has lost the first, unless they are in different versions of the kind.
fn keep(history: &mut SimHistory, replaced: Option<&SimRow>, stored: &Version, now: Timestamp) {
    if let Some(row) = replaced.filter(|row| row.version.0 > 0) {
        history.keep(row.object());
        let metadata = &stored.object.metadata;
        let is_repeated = row.content.hash != stored.hash && row.object().metadata.api_version == metadata.api_version;
        if row.version == metadata.resource_version && is_repeated {
            history.branch_off(&metadata.uid, now);
        }
    }
    history.keep(&stored.object);
}

fn refuse_poison(content: &Version) -> Result<(), Refusal> {
    if is_poison(&content.object) {
        Err(Refusal)
    } else {
        Ok(())
    }
}

impl SimRow {
    fn replace(&mut self, content: &Arc<Version>, life: Life, revived: bool, now: Timestamp) {
        let archived_before = self.evicted_time.filter(|_| !revived);
        (self.delete_time, self.evicted_time) = match life {
            Life::Live => (None, None),
            Life::Archived => (None, archived_before.or(Some(now))),
            Life::Deleted => (self.delete_time.or(Some(now)), self.evicted_time),
        };
        let (old, new) = (self.content.hash, content.hash);
        self.sides_written[0] += u32::from(old.labels != new.labels);
        self.sides_written[1] += u32::from(old.annotations != new.annotations);
        self.line = OnceLock::new();
        self.content = content.clone();
        self.version = content.object.metadata.resource_version;
        self.update_time = now;
    }
}
