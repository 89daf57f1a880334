//! Deletions of archived objects in the world of the simulation, and the rules by which they are judged.

use std::collections::BTreeMap;

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::archive::Row;
use super::{Stored, World};
use crate::archive::{Holder, is_deleted_with};
use crate::decide::Seen;
use crate::object::{DeletionState, Edge, Key};

impl World {
    /// The uids of a service's tombstones.
    pub(in super::super) fn tombstones(&self, group: &str) -> Vec<String> {
        let rows = self.archives.rows.values().filter(|row| is_tombstone(row));
        let own = rows.filter(|row| row.object.key.kind.group == group);
        own.map(|row| row.object.uid.clone()).collect()
    }

    /// One of them, as it is now.
    pub(in super::super) fn tombstone(&self, uid: &str) -> Option<&Stored> {
        let row = self.archives.rows.get(uid).filter(|row| is_tombstone(row));
        row.map(|row| &row.object)
    }

    /// Whether no other object has taken the name of an archived one.
    pub(in super::super) fn has_its_name(&self, key: &Key, uid: &str) -> bool {
        let archived = self.archives.rows.values().filter(|row| !row.deleted);
        let mut of_name = archived.map(|row| &row.object).filter(|object| object.key == *key);
        let born = self.archives.rows.get(uid).map_or(0, |row| row.object.born);
        !self.servers.objects.contains_key(key) && of_name.all(|object| object.born <= born)
    }

    /// Who waits for an object, as far as SQL knows: the tombstones that it holds, and the deleted objects of the
    /// cluster that it holds out of the archive.
    pub(in super::super) fn waiting_for(&mut self, holder: &Seen) -> Vec<Seen> {
        let tombstones = self.archives.rows.values().filter(|row| is_tombstone(row));
        let live = self
            .servers
            .objects
            .values()
            .filter(|object| object.terminating && object.asked);
        let deleted = tombstones.map(|row| &row.object).chain(live).map(|object| Seen {
            key: object.key.clone(),
            uid: object.uid.clone(),
        });
        let mut deleted: Vec<_> = deleted.collect();
        deleted.retain(|target| {
            let mut holders = self.row_holders(&target.key, &target.uid).into_iter();
            holders.any(|other| other.uid == holder.uid)
        });
        deleted
    }

    /// The live objects that hold an archived one by rows, or name it.
    pub(in super::super) fn live_holders(&self, target: &Key, uid: &str) -> Vec<Holder> {
        let on_it = self.archives.references.iter().filter(|(held, _)| held == uid);
        let rows: BTreeMap<&str, &ReferenceName> = on_it.map(|(_, name)| (name.uid(), name)).collect();
        let live = self.servers.objects.values();
        let own = live.filter(|object| object.key.kind.group == target.kind.group);
        let referring = own.filter(|object| Self::names(object, target) || rows.contains_key(&*object.uid));
        let holders = referring.map(|object| Holder {
            key: Some(object.key.clone()),
            uid: object.uid.clone(),
            reference: rows.get(&*object.uid).map(|name| (*name).clone()),
            version: None,
            edges: self.services.edges(object),
        });
        holders.collect()
    }

    /// Of the rows on an object, those whose holders nobody has any more, neither live nor archived, and those of
    /// other services.
    pub(in super::super) fn orphaned_holders(&self, uid: &str) -> Vec<Holder> {
        let on_it = self.archives.references.iter().filter(|(held, _)| held == uid);
        let is_nowhere = |uid: &str| self.servers.of_uid(uid).is_none() && !self.archives.rows.contains_key(uid);
        let orphaned = on_it.filter(|(held, name)| is_nowhere(name.uid()) || self.is_of_another(held, name));
        let holders = orphaned.map(|(_, name)| Holder {
            key: None,
            uid: name.uid().to_owned(),
            reference: Some(name.clone()),
            version: None,
            edges: Vec::new(),
        });
        holders.collect()
    }

    /// All that hold a tombstone or are deleted with it: where another object has taken its name, only those with rows.
    pub(in super::super) fn tombstone_holders(&mut self, key: &Key, uid: &str, is_named: bool) -> Vec<Holder> {
        let mut holders = self.archived_holders(key, uid);
        holders.extend(self.live_holders(key, uid));
        holders.extend(self.orphaned_holders(uid));
        holders.retain(|holder| {
            let goes = || is_deleted_with(&holder.edges, key, Some(Phase::Finalizing));
            let matters = holder.reference.is_some() || (is_named && (holder.version.is_some() || goes()));
            matters && holder.uid != uid
        });
        holders
    }

    /// A live holder as it is, if it uses an object no more and holds what it uses instead.
    pub(in super::super) fn former(&self, holder: &Holder, target: &Key) -> Option<Holder> {
        let (Some(key), Some(_), None) = (&holder.key, &holder.reference, holder.version) else {
            return None;
        };
        let found = self.servers.objects.get(key).filter(|found| found.uid == holder.uid)?;
        let read = self.read(found, true);
        let reference = found.reference();
        let holds = |edge: &Edge| match self.servers.objects.get(&edge.target) {
            Some(live) => live.has_finalizer(&reference),
            None => edge.target.kind.group == key.kind.group && self.has_row_of(&edge.target, &reference),
        };
        let stays =
            read.state == DeletionState::Live && read.has_deletion_finalizer && !self.servers.is_down(&key.kind.group);
        let is_former = stays && read.edges.iter().all(|edge| edge.target != *target && holds(edge));
        is_former.then(|| Holder {
            version: Some(read.version),
            ..holder.clone()
        })
    }

    /// A live object, if it goes with a tombstone in this phase that does not hold it.
    pub(in super::super) fn unheld(&self, holder: &Holder, target: &Key, phase: Option<Phase>) -> Option<&Stored> {
        let found = holder.key.as_ref().and_then(|key| self.servers.objects.get(key));
        let found = found.filter(|found| found.uid == holder.uid && !found.terminating && !found.requested)?;
        let is_unheld = holder.version.is_none() && holder.reference.is_none();
        (is_unheld && is_deleted_with(&self.services.edges(found), target, phase)).then_some(found)
    }

    /// The row of a live holder is released.
    pub(in super::super) fn judge_row(&mut self, holder: &str, target: &Key) {
        let holder = self.servers.of_uid(holder);
        if let Some(holder) = holder.filter(|holder| Self::names(holder, target)) {
            let broken = format!("{} is released from {target}, which its field names", holder.key);
            self.judge.broken(broken);
        }
    }

    /// A user lets a live object hold an archived one that one of its fields names.
    pub(in super::super) fn hold_archived(&mut self, choice: usize) {
        let mut found = Vec::new();
        for row in self.archives.rows.values().filter(|row| !row.deleted && !row.tombstone) {
            let Stored { key, uid, .. } = &row.object;
            let holders = self.live_holders(key, uid).into_iter();
            found.extend(holders.map(|holder| (uid.clone(), holder.uid)));
        }
        let Some(at) = choice.checked_rem(found.len()) else {
            return;
        };
        let (target, holder) = &found[at];
        let Some(holder) = self.servers.of_uid(holder).filter(|holder| !holder.terminating) else {
            return;
        };
        if let Some(name) = ReferenceName::of_finalizer(&holder.reference()) {
            // Nobody releases it for a holder that goes before it has the deletion finalizer.
            let has_deletion_finalizer = holder.has_finalizer(&super::names(&holder.key.kind.group).finalizer);
            let excused = (!has_deletion_finalizer).then(|| (holder.uid.clone(), target.clone()));
            self.judge.excused.extend(excused);
            self.servers.version += 1;
            self.archives.references.insert((target.clone(), name));
        }
    }

    /// Records the phase of a tombstone that is as it was read.
    pub(in super::super) fn record_tombstone(&mut self, uid: &str, version: Option<u64>, phase: Phase) {
        let Some(found) = self.tombstone(uid).cloned() else {
            return;
        };
        if version.is_some_and(|version| version != found.version) {
            return;
        }
        if found.phase > Some(phase) {
            self.judge
                .broken(format!("{}: {phase} is recorded after {:?}", found.key, found.phase));
        }
        let mut rows = self.archives.references.iter().filter(|(held, _)| held == uid);
        let waits = rows.find(|(_, name)| match phase {
            Phase::Deleting => false,
            Phase::Draining => !matches!(name.kind(), "tree" | "server"),
            Phase::Finalizing => true,
        });
        if let Some((_, name)) = waits {
            self.judge
                .broken(format!("{} is in {phase}, and {name} holds it", found.key));
        }
        if phase == Phase::Finalizing {
            self.judge_outside(&found);
        }
        self.servers.version += 1;
        let version = self.servers.version;
        let row = self.archives.rows.get_mut(uid).expect("it is there");
        (row.object.phase, row.object.version) = (Some(phase), version);
        self.log_archived(&found.key);
        // What it holds elsewhere is released from now on.
        if self.archives.across && phase == Phase::Finalizing {
            self.judge.through(uid);
        }
    }

    /// Ends a tombstone that is as it was read, unless something holds it.
    pub(in super::super) fn end_tombstone(&mut self, uid: &str, version: u64, though_held: bool) {
        let found = self.tombstone(uid).filter(|found| found.version == version);
        if let Some(found) = found.cloned() {
            self.judge_left_elsewhere(&found);
            self.erase_unless_held(&found, though_held);
        }
    }

    /// A controller deletes an object, or asks for it.
    pub(in super::super) fn judge_deletion(&mut self, object: &Stored) {
        let reached = self.services.edges(object).iter().any(|edge| {
            let target = self.servers.objects.get(&edge.target);
            let live = target.filter(|target| target.terminating && target.asked);
            // It may have gone since the archive was asked who holds it.
            let gone = self.erased.get(&edge.target);
            let gone = gone.filter(|target| target.version > object.version);
            let mut targets = live.into_iter().chain(gone);
            targets.any(|target| takes(target, edge)) || self.is_reached_from_archive(object, edge)
        });
        if !reached && !object.asked {
            self.judge.broken(format!("{} is deleted out of reach", object.key));
        }
    }

    /// Whether a field goes with a tombstone. It was written before another object took that name, and before the
    /// tombstone went, which another controller or the release of the last reference may have ended meanwhile.
    fn is_reached_from_archive(&self, object: &Stored, edge: &Edge) -> bool {
        let rows = self.archives.rows.values().filter(|row| row.object.key == edge.target);
        let was_there = |row: &&Row| !row.deleted || row.object.version > object.version;
        let mut tombstones = rows.clone().filter(|row| row.tombstone).filter(was_there);
        tombstones.any(|row| {
            let live = self.servers.objects.get(&edge.target).into_iter();
            let archived = rows.clone().filter(|other| !other.deleted).map(|other| &other.object);
            let mut later = live.chain(archived).filter(|other| other.born > row.object.born);
            takes(&row.object, edge) && later.all(|other| other.born > object.version)
        })
    }

    /// What is wrong with the tombstones once everybody rests.
    pub(in super::super) fn tombstones_rest(&mut self) -> Result<(), String> {
        let rows = self.archives.rows.values().filter(|row| is_tombstone(row));
        let left: Vec<Stored> = rows.map(|row| row.object.clone()).collect();
        for tombstone in left {
            let Stored { key, uid, phase, .. } = &tombstone;
            let (is_named, phase) = (self.has_its_name(key, uid), *phase);
            let mut holders = self.tombstone_holders(key, uid, is_named);
            let stays = |holder: &Holder| {
                let unheld = self.unheld(holder, key, phase);
                unheld.is_some_and(|live| self.has_former(live))
            };
            let is_released =
                |holder: &Holder| self.former(holder, key).is_some() || self.is_left_by(holder, &tombstone);
            holders.retain(|holder| !is_released(holder) && !stays(holder));
            if holders.is_empty() {
                return Err(format!("{key} could go out of the archive: {phase:?}"));
            }
            if phase.is_none() {
                return Err(format!("{key} waits in the archive without a phase"));
            }
            let mut late = holders.iter().filter(|holder| {
                let stays = match self.servers.of_uid(&holder.uid) {
                    Some(live) => !live.terminating && !live.requested,
                    None => !self.archives.waits(&holder.uid),
                };
                is_named && stays && is_deleted_with(&holder.edges, key, phase)
            });
            if let Some(holder) = late.next() {
                return Err(format!("{holder} outlives {key}, which is deleted in the archive"));
            }
        }
        Ok(())
    }
}

fn is_tombstone(row: &Row) -> bool {
    row.tombstone && !row.deleted
}

/// Whether a field goes with a target in the phase of that.
fn takes(target: &Stored, edge: &Edge) -> bool {
    is_deleted_with(std::slice::from_ref(edge), &target.key, target.phase)
}
