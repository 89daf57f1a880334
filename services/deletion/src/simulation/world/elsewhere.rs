//! What services see and ask of each other's objects: by the API of the other one alone, which shows an object and its
//! references wherever it is, in the cluster or archived.

use kindex_model::deletion::Phase;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;

use super::outside::has_cleanup;
use super::{Event, Refusal, Stored, World, fields, names};
use crate::archive::Holder;
use crate::object::{Key, KindName};

impl World {
    /// Whether a service asks another one about an object, archived or not.
    pub(in super::super) fn is_elsewhere(&self, key: &Key, group: &str) -> bool {
        self.archives.across && key.kind.group != group
    }

    /// What a service reads of an object: of its own in the cluster, of another's wherever it is.
    pub(in super::super) fn look(&self, key: &Key, group: &str) -> Result<Option<Stored>, Refusal> {
        let live = self.servers.get(key)?;
        match self.is_elsewhere(key, group) {
            true => Ok(self.shown(key)),
            false => Ok(live.cloned()),
        }
    }

    /// All that a service reads of a kind.
    pub(in super::super) fn listed(&self, kind: &KindName, group: &str) -> Vec<Stored> {
        let live = self.servers.objects.values().filter(|object| object.key.kind == *kind);
        if !self.archives.across || kind.group == group {
            return live.cloned().collect();
        }
        let archived = self.archives.rows.values().filter(|row| !row.deleted);
        let archived = archived.map(|row| &row.object.key).filter(|key| key.kind == *kind);
        let mut keys: Vec<&Key> = live.map(|object| &object.key).chain(archived).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().filter_map(|key| self.shown(key)).collect()
    }

    /// An object as its service shows it to others. What leaves for the archive is archived for them, and its
    /// references are rows.
    pub(in super::super) fn shown(&self, key: &Key) -> Option<Stored> {
        let rows = self.archives.rows.values().filter(|row| !row.deleted);
        let archived = rows
            .filter(|row| row.object.key == *key)
            .max_by_key(|row| row.object.born);
        let live = self.servers.objects.get(key);
        let mut shown = live.or(archived.map(|row| &row.object))?.clone();
        let rows = self.archives.references.iter().filter(|(held, _)| *held == shown.uid);
        let rows: Vec<String> = rows.map(|(_, name)| name.to_string()).collect();
        let rows = rows.into_iter().filter(|name| !shown.has_finalizer(name));
        let rows: Vec<String> = rows.collect();
        shown.finalizers.extend(rows);
        shown.version = self.servers.version;
        if live.is_none() {
            let is_deleted = archived.is_some_and(|row| row.tombstone);
            (shown.terminating, shown.asked) = (is_deleted, is_deleted);
            shown.finalizers.push(names(&key.kind.group).finalizer.clone());
        } else if shown.terminating && !shown.asked {
            shown.terminating = false;
        }
        Some(shown)
    }

    /// A service lets another one place or release references on an object, if it was not written since a version.
    pub(in super::super) fn write_elsewhere(
        &mut self,
        key: &Key,
        uid: Option<&str>,
        read: Option<u64>,
        change: impl FnOnce(&mut Stored),
    ) -> Result<Stored, Refusal> {
        self.servers.answers(key)?;
        let known = self.shown(key).filter(|known| uid.is_none_or(|uid| uid == known.uid));
        let known = known.ok_or(Refusal::Gone)?;
        let live = self.servers.objects.get(key);
        if live.is_some_and(|live| read.is_some_and(|read| live.version > read)) {
            return Err(Refusal::Conflict);
        }
        let mut changed = known.clone();
        change(&mut changed);
        let without = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|one| !those.contains(one)).cloned().collect()
        };
        let added = without(&changed.finalizers, &known.finalizers);
        let removed = without(&known.finalizers, &changed.finalizers);
        if known.terminating && !added.is_empty() {
            return Err(Refusal::Invalid);
        }
        let in_rows = live.is_none_or(|live| live.terminating && !live.asked);
        let has_reference = live.is_some_and(|live| removed.iter().any(|name| live.has_finalizer(name)));
        if has_reference || (!in_rows && !added.is_empty()) {
            self.write(key, Some(&known.uid), None, |live| {
                live.finalizers.retain(|finalizer| !removed.contains(finalizer));
                live.finalizers.extend(added.iter().filter(|_| !in_rows).cloned());
            })?;
        }
        self.servers.version += 1;
        let row = |name: &String| Some((known.uid.clone(), ReferenceName::of_finalizer(name)?));
        for row in removed.iter().filter_map(row) {
            self.archives.references.remove(&row);
        }
        self.archives
            .references
            .extend(added.iter().filter(|_| in_rows).filter_map(row));
        let gone = || Stored {
            terminating: true,
            finalizers: Vec::new(),
            ..changed
        };
        Ok(self
            .shown(key)
            .filter(|shown| shown.uid == known.uid)
            .unwrap_or_else(gone))
    }

    /// Something happened to an archived object of which other services hear.
    pub(super) fn log_archived(&mut self, key: &Key) {
        if self.archives.across {
            let log = self.servers.log.entry(key.kind.clone()).or_default();
            log.push(Event::Archived(key.clone()));
        }
    }

    /// What a service has archived and names an object of another one.
    pub(in super::super) fn namers_elsewhere(&self, group: &str, target: &Key) -> Vec<Holder> {
        let archived = self.archives.archived(group).map(|row| &row.object);
        let naming = archived.filter(|object| Self::names(object, target));
        let holders = naming.map(|object| Holder {
            key: Some(object.key.clone()),
            uid: object.uid.clone(),
            reference: None,
            version: Some(ResourceVersion(object.version)),
            edges: self.services.edges(object),
        });
        holders.collect()
    }

    /// The objects of other services that one names.
    pub(in super::super) fn named_elsewhere(&self, object: &Stored) -> Vec<Key> {
        let targets = self.services.edges(object).into_iter().map(|edge| edge.target);
        targets
            .filter(|target| self.is_elsewhere(target, &object.key.kind.group))
            .collect()
    }

    /// Whether what is archived of a kind, once it is deleted, ends by a walk alone: it may have something outside, or
    /// hold objects of other services.
    pub(super) fn ends_by_walk(&self, kind: &KindName) -> bool {
        let mut targets = fields(&kind.kind).map(|field| self.services.kind(field.target));
        has_cleanup(&kind.kind) || (self.archives.across && targets.any(|target| target.group != kind.group))
    }

    /// Whether a row on an object is of a holder of another service, of which its own knows nothing.
    pub(super) fn is_of_another(&self, held: &str, name: &ReferenceName) -> bool {
        let archived = self.archives.rows.get(held).map(|row| &row.object);
        let held = self.servers.of_uid(held).or(archived);
        self.archives.across && held.is_some_and(|held| held.key.kind.group != name.group())
    }

    /// Those of other services that have rows on archived objects.
    pub(in super::super) fn holders_elsewhere(&self) -> impl Iterator<Item = &ReferenceName> {
        let rows = self
            .archives
            .references
            .iter()
            .filter(|(held, name)| self.is_of_another(held, name));
        rows.map(|(_, name)| name)
    }

    /// An operator drops the rows of one of these.
    pub(in super::super) fn drop_rows_elsewhere(&mut self, uid: &str) {
        self.servers.version += 1;
        self.archives.references.retain(|(_, name)| name.uid() != uid);
    }

    /// A tombstone releases what it holds at another service.
    pub(in super::super) fn judge_release_elsewhere(&mut self, uid: &str, target: &Key) {
        let is_early = self
            .tombstone(uid)
            .is_some_and(|found| found.phase != Some(Phase::Finalizing));
        if is_early || self.archives.is_held(uid) {
            self.judge
                .broken(format!("{uid} is released from {target} before its time"));
        }
    }

    /// An object of the cluster is through: it has released what it held at other services. Of an archived object whose
    /// name another one has by now, nobody can release anything.
    pub(super) fn judge_rows_elsewhere(&mut self, holder: &Stored) {
        let rows = self
            .archives
            .references
            .iter()
            .filter(|(_, name)| name.uid() == holder.uid);
        let held = rows.filter_map(|(held, _)| self.archives.rows.get(held));
        let left: Vec<Stored> = held.filter(|row| !row.deleted).map(|row| row.object.clone()).collect();
        for object in left {
            let is_excused = self.judge.is_excused(&holder.uid, &object.uid);
            if self.judge.lenient {
                self.judge.vanished.insert(holder.uid.clone());
            } else if !is_excused && self.is_shown(&object) {
                let broken = format!("{} is freed, and {} still has its reference", holder.key, object.key);
                self.judge.broken(broken);
            } else {
                self.judge.excused.insert((holder.uid.clone(), object.uid));
            }
        }
    }

    /// Whether other services see this object under its name.
    pub(in super::super) fn is_shown(&self, object: &Stored) -> bool {
        self.shown(&object.key).is_some_and(|shown| shown.uid == object.uid)
    }

    /// A tombstone ends: nothing that it names elsewhere has its reference.
    pub(super) fn judge_left_elsewhere(&mut self, object: &Stored) {
        if self.judge.lenient {
            return;
        }
        let reference = object.reference();
        let named = self.named_elsewhere(object).into_iter();
        let is_left =
            |shown: Stored| shown.has_finalizer(&reference) && !self.judge.is_excused(&object.uid, &shown.uid);
        let left = named.filter(|target| self.shown(target).is_some_and(is_left));
        if let Some(target) = left.collect::<Vec<_>>().first() {
            self.judge.broken(format!(
                "{} is through, and {target} still has its reference",
                object.key
            ));
        }
    }
}
