//! A database with the store's contract: atomic batches, a guard by version, refusal
//! of poison, and every row's history for the checks. Small enough to be obviously right.

use std::collections::BTreeMap;

use kindex_runtime::ingester::message::{Outcome, PlannedWrite, Saved, StoreFailure};
use kindex_runtime::kind::Kind;
use kindex_runtime::object::{Object, ResourceVersion, Uid};
use kindex_runtime::projection::Version;
use kindex_runtime::store::{Life, RowState, Written};

use super::POISON;

#[derive(Clone, Debug)]
pub struct SimRow {
    pub object: Object,
    pub version: ResourceVersion,
    pub life: Life,
    hash: Option<kindex_runtime::projection::ContentHash>,
}

/// A change of a row that the checks look at.
#[derive(Clone, Debug)]
pub struct Transition {
    pub uid: Uid,
    pub before: Option<(ResourceVersion, Life)>,
    pub after: (ResourceVersion, Life),
}

#[derive(Clone, Debug, Default)]
pub struct SimDatabase {
    pub rows: BTreeMap<Uid, SimRow>,
    pub checkpoint: Option<ResourceVersion>,
    pub quarantine: BTreeMap<Uid, String>,
    pub transitions: Vec<Transition>,
    pub rewound: std::collections::BTreeSet<Uid>,
}

pub fn away(cause: &'static str) -> StoreFailure {
    StoreFailure {
        retryable: true,
        cause,
        message: format!("simulated {cause}"),
    }
}

impl SimDatabase {
    fn state(&self, uid: &Uid) -> Option<(ResourceVersion, Life)> {
        self.rows.get(uid).map(|row| (row.version, row.life))
    }

    pub fn row_states(&self, uids: &[Uid]) -> Vec<RowState> {
        uids.iter()
            .filter_map(|uid| self.rows.get_key_value(uid))
            .map(row_state)
            .collect()
    }

    pub fn scan(&self, after: Option<&Uid>, limit: usize) -> Vec<RowState> {
        let rows = self
            .rows
            .iter()
            .filter(|(uid, _)| after.is_none_or(|after| *uid > after));
        rows.take(limit).map(row_state).collect()
    }

    /// One transaction.
    pub fn write(&mut self, kind: &Kind, batch: &[PlannedWrite]) -> Result<Vec<Outcome>, StoreFailure> {
        let poisoned = batch.iter().any(|write| match write {
            PlannedWrite::Store { object, .. } => object.text().contains(POISON),
            PlannedWrite::SoftDelete(_) | PlannedWrite::Record { .. } => false,
        });
        if poisoned {
            let message = "simulated refusal".to_owned();
            return Err(StoreFailure {
                retryable: false,
                cause: "refused",
                message,
            });
        }
        Ok(batch.iter().map(|write| self.apply(kind, write)).collect())
    }

    fn apply(&mut self, kind: &Kind, write: &PlannedWrite) -> Outcome {
        match write {
            PlannedWrite::SoftDelete(uid) => {
                let before = self.state(uid);
                let written = match self.rows.get_mut(uid) {
                    Some(row) if row.life != Life::Deleted => {
                        row.life = Life::Deleted;
                        Written::Updated
                    }
                    Some(_) | None => Written::Unchanged,
                };
                self.note(uid, before);
                Outcome {
                    written,
                    problems: Vec::new(),
                }
            }
            PlannedWrite::Record { .. } => unreachable!("things keep no history"),
            PlannedWrite::Store { object, life, revive } => {
                let version = Version::project(kind, object.clone());
                let written = self.store(&version, *life, *revive);
                Outcome {
                    written,
                    problems: version.problems.clone(),
                }
            }
        }
    }

    fn store(&mut self, version: &Version, life: Life, revive: bool) -> Written {
        let metadata = &version.object.metadata;
        let uid = &metadata.uid;
        let before = self.state(uid);
        let new = SimRow {
            object: version.object.clone(),
            version: metadata.resource_version,
            life,
            hash: Some(version.hash),
        };
        let written = match self.rows.get(uid) {
            None => {
                self.close_namesakes(&new);
                Written::Inserted
            }
            Some(row) if row.version > new.version => {
                return Written::Superseded;
            }
            Some(row) if row.life == Life::Deleted && life != Life::Deleted && !revive => {
                return Written::Superseded;
            }
            Some(row) if row.life == life && row.hash == new.hash => return Written::Unchanged,
            Some(_) => Written::Updated,
        };
        self.rows.insert(uid.clone(), new);
        self.note(uid, before);
        written
    }

    /// A recreated object is a new row, and the old one is closed.
    fn close_namesakes(&mut self, new: &SimRow) {
        if new.life != Life::Live {
            return;
        }
        let name = &new.object.metadata.name;
        let old: Vec<Uid> = self
            .rows
            .iter()
            .filter(|(_, row)| row.life == Life::Live && row.object.metadata.name == *name && row.version < new.version)
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in old {
            let before = self.state(&uid);
            self.rows.get_mut(&uid).expect("found").life = Life::Deleted;
            self.note(&uid, before);
        }
    }

    fn note(&mut self, uid: &Uid, before: Option<(ResourceVersion, Life)>) {
        if let Some(after) = self.state(uid)
            && before != Some(after)
        {
            self.transitions.push(Transition {
                uid: uid.clone(),
                before,
                after,
            });
        }
    }

    pub fn load(&self) -> Saved {
        Saved {
            position: self.checkpoint,
            quarantined: self.quarantine.clone().into_iter().collect(),
        }
    }

    pub fn rewind(&mut self, uid: &Uid) {
        if let Some(row) = self.rows.get_mut(uid) {
            row.version = ResourceVersion(0);
            self.rewound.insert(uid.clone());
        }
    }
}

fn row_state((uid, row): (&Uid, &SimRow)) -> RowState {
    RowState {
        uid: uid.clone(),
        namespace: row.object.metadata.namespace.clone(),
        name: row.object.metadata.name.clone(),
        res_version: row.version,
        hash: row.hash,
        life: row.life,
    }
}
