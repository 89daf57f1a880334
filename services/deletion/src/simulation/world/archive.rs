//! The archives of the services: objects that were archived, and the rows of references. What controllers do there is
//! judged by the same rules as what they do in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;

use super::{Refusal, Stored, World, has_cleanup};
use crate::archive::{Holder, HolderAction, HolderState, PlacementOutcome, action_on};
use crate::decide::{FoundHolder, Seen};
use crate::object::Key;
use crate::simulation::bug::Bug;

/// An object that left the cluster.
#[derive(Clone, Debug)]
pub(in super::super) struct Row {
    pub(in super::super) object: Stored,
    /// It is deleted, and goes once nothing holds it.
    pub(in super::super) tombstone: bool,
    pub(in super::super) deleted: bool,
}

/// All archives together: a service reads its own.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Archives {
    /// By uid.
    pub(in super::super) rows: BTreeMap<String, Row>,
    /// The uid of the object that is held, and the reference.
    pub(in super::super) references: BTreeSet<(String, ReferenceName)>,
    /// Whether what is archived holds objects of other services, and is held from there.
    pub(in super::super) across: bool,
    /// By the uids of holder and target, references of archived holders that may be lacking: a move died that was about
    /// to place them again.
    pub(in super::super) may_lack: BTreeSet<(String, String)>,
}

impl Archives {
    pub(in super::super) fn add(&mut self, object: Stored) {
        let row = Row {
            object,
            tombstone: false,
            deleted: false,
        };
        self.rows.insert(row.object.uid.clone(), row);
    }

    /// What is archived, of a service.
    pub(super) fn archived(&self, group: &str) -> impl Iterator<Item = &Row> {
        let rows = self.rows.values();
        rows.filter(move |row| !row.deleted && row.object.key.kind.group == group)
    }

    pub(in super::super) fn is_archived(&self, uid: &str) -> bool {
        self.rows.get(uid).is_some_and(|row| !row.deleted)
    }

    /// Whether a reference on an object is a row: the ingester takes it off before the object leaves.
    pub(super) fn has_row(&self, target: &Stored, reference: &str) -> bool {
        let mut rows = self.references.iter().filter(|(held, _)| *held == target.uid);
        rows.any(|(_, name)| name.to_string() == reference)
    }

    /// Whether an archived object waits for others before it goes, and is judged by itself.
    pub(super) fn waits(&self, uid: &str) -> bool {
        self.is_held(uid) || self.rows.get(uid).is_some_and(|row| row.tombstone && !row.deleted)
    }

    pub(in super::super) fn is_held(&self, uid: &str) -> bool {
        self.references.iter().any(|(held, _)| held == uid)
    }
}

impl World {
    /// Where the holder of a reference is, live or archived, by its own service.
    pub(in super::super) fn find_holder(&self, name: &ReferenceName) -> Result<Option<FoundHolder>, Refusal> {
        if self.servers.is_down(name.group()) {
            return Err(Refusal::Down);
        }
        let archived = self.archives.rows.get(name.uid()).filter(|row| !row.deleted);
        let found = self.servers.of_uid(name.uid()).or(archived.map(|row| &row.object));
        Ok(found.map(|found| FoundHolder {
            key: found.key.clone(),
            is_leaving: found.terminating && found.asked,
            held_by: found.references().collect(),
        }))
    }

    /// Keeps references of a service's archived objects on one of its objects as rows.
    pub(in super::super) fn keep(
        &mut self,
        target: &str,
        group: &str,
        names: &[ReferenceName],
        writes: bool,
    ) -> Vec<HolderState> {
        let mut places = Vec::new();
        for name in names {
            let row = self.archives.rows.get(name.uid());
            let row = row.filter(|row| row.object.key.kind.group == group);
            let place = match row {
                Some(row) if row.deleted => HolderState::Deleted,
                Some(_) => HolderState::Archived,
                None => HolderState::Unknown,
            };
            if place == HolderState::Archived && writes {
                self.servers.version += 1;
                self.archives.references.insert((target.to_owned(), name.clone()));
            }
            places.push(place);
        }
        places
    }

    /// A controller takes references off an object that become rows.
    pub(in super::super) fn judge_kept(&mut self, target: &Key, uid: &str, names: &[String]) {
        let lost = names.iter().find(|name| {
            let name = ReferenceName::of_finalizer(name).expect("a reference");
            let row = (uid.to_owned(), name.clone());
            // Another controller may have released the row since.
            let is_kept = self.archives.references.contains(&row) || self.was_moved(name.uid(), target);
            self.archives.is_archived(name.uid()) && !is_kept
        });
        if let Some(name) = lost {
            self.judge
                .broken(format!("{target} loses {name}, and nothing holds it instead"));
        }
    }

    /// Places a reference on what is archived under a name.
    pub(in super::super) fn place_row(&mut self, target: &Key, reference: &ReferenceName) -> PlacementOutcome {
        let archived = self.archives.rows.values().filter(|row| !row.deleted);
        let of_name = archived.filter(|row| row.object.key == *target);
        let Some(row) = of_name.max_by_key(|row| row.object.born) else {
            return PlacementOutcome::Absent;
        };
        let target = Seen {
            key: target.clone(),
            uid: row.object.uid.clone(),
        };
        let place = (target.uid.clone(), reference.clone());
        if row.tombstone && !self.archives.references.contains(&place) {
            return PlacementOutcome::Leaving;
        }
        let is_new = self.archives.references.insert(place);
        self.servers.version += u64::from(is_new);
        PlacementOutcome::By { target, is_new }
    }

    /// Whether what is archived under a name has a reference.
    pub(in super::super) fn has_row_of(&self, target: &Key, reference: &str) -> bool {
        let archived = self.archives.rows.values().filter(|row| !row.deleted);
        let of_name = archived.filter(|row| row.object.key == *target);
        let named = of_name.max_by_key(|row| row.object.born);
        named.is_some_and(|row| self.archives.has_row(&row.object, reference))
    }

    /// Whether a live object names an archived one that does not have its reference.
    pub(in super::super) fn lacks_row(&self, holder: &Stored, target: &Key) -> bool {
        let is_own = target.kind.group == holder.key.kind.group || self.archives.across;
        let archived = self.archives.rows.values().filter(|row| !row.deleted);
        let of_name = archived.filter(|row| row.object.key == *target);
        let named = of_name.max_by_key(|row| row.object.born);
        let named = named.filter(|row| is_own && !row.tombstone && !self.servers.objects.contains_key(target));
        named.is_some_and(|row| !self.archives.has_row(&row.object, &holder.reference()))
    }

    /// The rows on archived objects whose holders are not archived, and never were, with the uids of these objects.
    pub(in super::super) fn orphaned_rows(&self) -> Vec<(String, ReferenceName)> {
        let rows = self
            .archives
            .references
            .iter()
            .filter(|(held, _)| self.archives.is_archived(held));
        let orphaned = rows.filter(|(_, name)| !self.archives.rows.contains_key(name.uid()));
        orphaned.cloned().collect()
    }

    /// Who holds an object out of the archive of its service. Rows of what was deleted there are released.
    pub(in super::super) fn archived_holders(&mut self, target: &Key, uid: &str) -> Vec<Holder> {
        let rows = &self.archives.rows;
        let is_over = |name: &ReferenceName| rows.get(name.uid()).is_some_and(|row| row.deleted);
        let on_it = self.archives.references.iter().filter(|(held, _)| held == uid);
        let over = on_it.filter(|(held, name)| is_over(name) && !self.is_of_another(held, name));
        for row in over.cloned().collect::<Vec<_>>() {
            self.archives.references.remove(&row);
        }
        let on_it = self.archives.references.iter().filter(|(held, _)| held == uid);
        let by_row: BTreeMap<&str, &ReferenceName> = on_it.map(|(_, name)| (name.uid(), name)).collect();
        let archived = self.archives.archived(&target.kind.group).map(|row| &row.object);
        let referring = archived.filter(|object| by_row.contains_key(&*object.uid) || Self::names(object, target));
        let holders = referring.map(|object| Holder {
            key: Some(object.key.clone()),
            uid: object.uid.clone(),
            reference: by_row.get(&*object.uid).map(|name| (*name).clone()),
            version: Some(ResourceVersion(object.version)),
            edges: self.services.edges(object),
        });
        holders.collect()
    }

    /// Whoever holds an object of the cluster out of the archive of its service, and whoever else has a row on it.
    pub(in super::super) fn row_holders(&mut self, target: &Key, uid: &str) -> Vec<Holder> {
        let mut holders = self.archived_holders(target, uid);
        let mut rows = self.archives.references.iter().filter(|(held, _)| held == uid);
        if rows.any(|(held, name)| !self.archives.rows.contains_key(name.uid()) || self.is_of_another(held, name)) {
            let live = self.live_holders(target, uid).into_iter();
            holders.extend(live.filter(|holder| holder.reference.is_some()));
            holders.extend(self.orphaned_holders(uid));
        }
        holders
    }

    /// Deletes an archived object that goes with another one and is as it was read. One that something holds
    /// gets a tombstone instead. Whether it is gone.
    pub(in super::super) fn delete_archived(
        &mut self,
        with: &str,
        holder: &Holder,
        any_version: bool,
        bug: Bug,
    ) -> bool {
        let read = holder.version.map(|version| version.0);
        let row = self.archives.rows.get(&holder.uid).filter(|row| !row.deleted);
        let Some(row) = row.filter(|row| any_version || Some(row.object.version) == read) else {
            return false;
        };
        let object = row.object.clone();
        if bug == Bug::SpareUnplaced && holder.reference.is_none() && self.archives.is_held(&holder.uid) {
            return false;
        }
        if !row.tombstone {
            self.judge_deletion(&object);
        }
        let though_held = bug == Bug::DeleteHeldRow;
        let is_cleaned_up = has_cleanup(&object.key.kind.kind) && bug != Bug::TakeUncleaned;
        let waits = is_cleaned_up || !self.named_elsewhere(&object).is_empty();
        if waits || (!though_held && self.is_named_by_others(&object, with)) {
            self.make_tombstone(&object.uid);
            return false;
        }
        self.erase_unless_held(&object, though_held)
    }

    pub(super) fn erase_unless_held(&mut self, object: &Stored, though_held: bool) -> bool {
        let is_held = self.archives.is_held(&object.uid);
        if is_held && !though_held {
            self.make_tombstone(&object.uid);
            return false;
        }
        if is_held {
            self.judge.broken(format!(
                "{} is deleted in the archive, and something holds it",
                object.key
            ));
        }
        self.erase(&object.uid);
        true
    }

    /// Whether others of its service name an archived object, with a reference or without, but for the one with which
    /// it goes.
    fn is_named_by_others(&self, object: &Stored, with: &str) -> bool {
        let archived = self.archives.archived(&object.key.kind.group).map(|row| &row.object);
        let live = self.servers.objects.values();
        let own = live.filter(|other| other.key.kind.group == object.key.kind.group);
        let mut others = archived
            .chain(own)
            .filter(|other| other.uid != object.uid && other.uid != with);
        others.any(|other| Self::names(other, &object.key))
    }

    fn make_tombstone(&mut self, uid: &str) {
        let row = self.archives.rows.get_mut(uid).expect("it is there");
        if !row.tombstone {
            row.tombstone = true;
            self.servers.version += 1;
            let key = row.object.key.clone();
            self.log_archived(&key);
        }
    }

    /// A user changes what an archived object names.
    pub(in super::super) fn change_archived(&mut self, choice: usize, named: BTreeMap<&'static str, String>) {
        self.servers.version += 1;
        let version = self.servers.version;
        if let Some(row) = self.any_archived(choice) {
            (row.object.named, row.object.version) = (named, version);
            let changed = row.object.clone();
            self.judge.history.note_fields(&self.services, &changed);
            self.excuse_unnamed(&changed);
        }
    }

    /// A user deletes an archived object.
    pub(in super::super) fn drop_archived(&mut self, choice: usize) {
        let archived = self.archives.rows.values().filter(|row| !row.deleted);
        let uids: Vec<_> = archived.map(|row| row.object.uid.clone()).collect();
        if let Some(at) = choice.checked_rem(uids.len()) {
            self.judge.history.deleted_by_user(&uids[at]);
            self.drop_row(&uids[at]);
        }
    }

    /// A user deletes this one. What it holds is released by whoever finds its rows.
    pub(in super::super) fn drop_row(&mut self, uid: &str) {
        let row = self.archives.rows.get(uid);
        if self.archives.is_held(uid) || row.is_some_and(|row| self.ends_by_walk(&row.object.key.kind)) {
            return self.make_tombstone(uid);
        }
        self.mark_deleted(uid);
    }

    fn mark_deleted(&mut self, uid: &str) {
        self.servers.version += 1;
        let row = self.archives.rows.get_mut(uid).expect("it is there");
        (row.deleted, row.object.version) = (true, self.servers.version);
        let object = row.object.clone();
        self.judge_outside(&object);
        self.judge.through(uid);
        self.log_archived(&object.key);
    }

    /// One of those that nothing owns: who looks at what it owns may see it change.
    fn any_archived(&mut self, choice: usize) -> Option<&mut Row> {
        let archived = self.archives.rows.values_mut().filter(|row| !row.deleted);
        let archived = archived.filter(|row| !matches!(&*row.object.key.kind.kind, "Tree" | "Server"));
        let mut archived: Vec<_> = archived.collect();
        let at = choice.checked_rem(archived.len())?;
        Some(archived.swap_remove(at))
    }

    fn erase(&mut self, uid: &str) {
        self.mark_deleted(uid);
        self.drop_rows(|name| name.uid() == uid);
    }

    /// Releases all rows that an object of the cluster has. Those at other services it has released before.
    pub(in super::super) fn release_rows(&mut self, holder: &Stored) {
        self.judge.through(&holder.uid);
        let reference = holder.reference();
        self.drop_rows(|name| name.to_string() == reference);
        self.judge_rows_elsewhere(holder);
    }

    /// Drops rows of a service's holders on what is its own.
    fn drop_rows(&mut self, of: impl Fn(&ReferenceName) -> bool) {
        let rows = self.archives.references.iter().filter(|(_, name)| of(name));
        let own = rows.filter(|(held, name)| !self.is_of_another(held, name));
        for row in own.cloned().collect::<Vec<_>>() {
            self.archives.references.remove(&row);
        }
    }

    /// The rows by which others hold an object of the cluster, in a phase. Of two controllers, one may write the row of
    /// a holder that was moved once more after the other one has released it.
    fn held_by_rows(&self, object: &Stored, drains: bool) -> Option<String> {
        let mut rows = self.archives.references.iter();
        let held = rows.find(|(held, name)| {
            let row = self.archives.rows.get(name.uid());
            if *held != object.uid || row.is_some_and(|row| row.deleted) {
                return false;
            }
            if self.judge.lenient && self.was_moved(name.uid(), &object.key) {
                return false;
            }
            let holder = row.map(|row| &row.object).or_else(|| self.servers.of_uid(name.uid()));
            let edges = holder.map(|holder| self.services.edges(holder)).unwrap_or_default();
            let mut naming = edges.iter().filter(|edge| edge.target == object.key).peekable();
            let is_owned = naming.peek().is_some() && naming.all(|edge| edge.owned);
            !(drains && is_owned)
        });
        held.map(|(_, name)| name.to_string())
    }

    /// A controller takes an object one step further: its archived holders must be gone, but for those that it owns
    /// where it `drains`.
    pub(in super::super) fn judge_rows(&mut self, object: &Stored, drains: bool) {
        if let Some(name) = self.held_by_rows(object, drains) {
            self.judge.broken(format!(
                "{} goes on, and {name} holds it out of the archive",
                object.key
            ));
        }
    }

    /// What is archived and should have gone by now, once an object waits for nothing in the cluster; else whether it
    /// waits for what is archived.
    pub(in super::super) fn waits_for_archive(&mut self, object: &Stored) -> Result<bool, String> {
        let holders = self.row_holders(&object.key, &object.uid);
        let goes = |holder: &&Holder| action_on(holder, &object.key, object.phase) == HolderAction::Delete;
        let goes = holders.iter().filter(goes);
        let mut late = goes.filter(|holder| object.asked && !self.archives.waits(&holder.uid));
        match late.next() {
            Some(holder) => Err(format!("{holder} outlives {}", object.key)),
            None => {
                // Its deletion releases what moves have left.
                let stays = |holder: &Holder| !object.asked || !self.is_left_by(holder, object);
                Ok(holders.iter().any(stays))
            }
        }
    }
}
