//! A Kubernetes API of one kind, as far as an ingester can see: versions, uids, preconditions, finalizers, watches with
//! compaction, and restoration from a backup. Keeps all versions for the checks. Faults are in `api`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kindex_kube_client::{ClusterError, Page, Target, WatchEvent};
use kindex_model::object::{Object, ResourceVersion};

use super::object::{Revision, SimObject};
use super::owned::{OwnedElsewhere, part_of};
use super::thing::{DELETING, FINALIZER};

/// One change, as a watch delivers it.
#[derive(Clone, Debug)]
pub struct Change {
    /// When.
    pub version: u64,
    /// Whether the change removed the object.
    pub gone: bool,
    /// The object; its last text if it is gone.
    pub object: Arc<Revision>,
}

impl Change {
    /// As an event of a watch.
    pub fn event(&self) -> WatchEvent {
        let object = self.object.object.clone();
        if self.gone {
            WatchEvent::Deleted(object)
        } else {
            WatchEvent::Applied(object)
        }
    }
}

/// An object at the moment when it left etcd, or an ingester released it.
#[derive(Clone, Debug)]
pub struct Departure {
    /// Its last text.
    pub object: Arc<Revision>,
    /// Whether a request of an ingester removed it.
    pub by_ingester: bool,
    /// Whether finalizers of others still hold it.
    pub stays: bool,
    /// The references that the request took off.
    pub references: Vec<String>,
}

/// The moment at which an object left.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// Version of the deletion.
    pub version: u64,
    /// The turn in which it left.
    pub turn: u64,
}

/// The version of an event.
pub fn version_of(event: &WatchEvent) -> u64 {
    match event {
        WatchEvent::Applied(object) | WatchEvent::Deleted(object) => object.metadata.resource_version.0,
        WatchEvent::Bookmark(version) => version.0,
        WatchEvent::Unreadable(_) => unreachable!("the simulated cluster is readable"),
    }
}

type Objects = BTreeMap<String, Arc<Revision>>;

/// The cluster.
#[derive(Clone, Debug)]
pub struct SimCluster {
    /// The present objects, by name.
    pub objects: Objects,
    /// The version of the last change.
    pub version: u64,
    /// The turn that is being played; dates departures.
    pub turn: u64,
    /// Its clock.
    pub now: Timestamp,
    /// When each uid began to leave: deleted, or annotated for deletion.
    pub leaving: BTreeMap<String, Timestamp>,
    /// Uids that users deleted.
    pub deleted_by_users: BTreeSet<String>,
    /// Departures since the last check.
    pub departures: Vec<Departure>,
    /// Every version of every uid.
    pub revisions: BTreeMap<String, Vec<Arc<Revision>>>,
    /// Versions that a restoration removed, by uid.
    pub lost: BTreeMap<String, Vec<Arc<Revision>>>,
    /// Versions that the release of an object made.
    pub echoes: BTreeSet<u64>,
    /// Uids that left.
    pub gone: BTreeMap<String, Gone>,
    /// What the objects own, as the cluster has it.
    pub owned: OwnedElsewhere,
    uids: u64,
    changes: Vec<Change>,
    /// Changes up to this version are compacted.
    floor: u64,
    backup: Option<Box<(Objects, u64)>>,
    /// Lists that are being read: their items, by version.
    lists: BTreeMap<u64, Vec<Arc<Revision>>>,
}

impl Default for SimCluster {
    /// Empty, at version 1, as etcd is: no list has the version 0.
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            version: 1,
            turn: 0,
            now: Timestamp::UNIX_EPOCH,
            leaving: BTreeMap::new(),
            deleted_by_users: BTreeSet::new(),
            departures: Vec::new(),
            revisions: BTreeMap::new(),
            lost: BTreeMap::new(),
            echoes: BTreeSet::new(),
            gone: BTreeMap::new(),
            owned: OwnedElsewhere::default(),
            uids: 0,
            changes: Vec::new(),
            floor: 1,
            backup: None,
            lists: BTreeMap::new(),
        }
    }
}

impl SimCluster {
    /// Creates an object of this name, with our finalizer or without, where there is none. Says whether it did.
    pub fn create(&mut self, name: &str, value: u64, has_finalizer: bool) -> bool {
        let ours = has_finalizer.then_some(FINALIZER);
        self.create_held(name, value, ours.as_slice())
    }

    /// The same with these finalizers.
    pub fn create_held(&mut self, name: &str, value: u64, finalizers: &[&str]) -> bool {
        if self.objects.contains_key(name) {
            return false;
        }
        self.uids += 1;
        let object = SimObject {
            uid: format!("uid-{:03}", self.uids),
            name: name.to_owned(),
            version: 0,
            value,
            labels: BTreeMap::from([("app".to_owned(), name.to_owned())]),
            annotations: BTreeMap::new(),
            finalizers: finalizers.iter().copied().map(str::to_owned).collect(),
            deleted_at: None,
        };
        self.put(object);
        true
    }

    /// Changes an object; one that is terminating goes with its last finalizer.
    pub fn update(&mut self, name: &str, by_ingester: bool, change: impl FnOnce(&mut SimObject)) {
        let Some(before) = self.objects.get(name) else {
            return;
        };
        let mut object = before.state.clone();
        change(&mut object);
        if object == before.state {
            return;
        }
        if object.deleted_at.is_some() && object.finalizers.is_empty() {
            // As in Kubernetes, a request that takes the last finalizer changes nothing else any more.
            let last = before.state.clone();
            self.remove(last, by_ingester);
        } else {
            self.put(object);
        }
    }

    /// A delete as any client sends it. Gives back what finalizers still hold.
    pub fn delete(&mut self, name: &str, now: Timestamp, by_ingester: bool) -> Option<Arc<Revision>> {
        let found = self.objects.get(name)?;
        if !by_ingester {
            self.deleted_by_users.insert(found.uid.clone());
        }
        if found.deleted_at.is_some() {
            return Some(found.clone());
        }
        let mut object = found.state.clone();
        if object.finalizers.is_empty() {
            self.remove(object, by_ingester);
            return None;
        }
        // Kubernetes writes whole seconds.
        object.deleted_at = Some(Timestamp::from_second(now.as_second()).expect("in range"));
        Some(self.put(object))
    }

    fn put(&mut self, mut object: SimObject) -> Arc<Revision> {
        self.version += 1;
        object.version = self.version;
        let revision = Revision::new(object);
        if revision.is_annotated(DELETING) {
            self.deleted_by_users.insert(revision.uid.clone());
        }
        if revision.is_leaving() {
            let since = revision.deleted_at.unwrap_or(self.now);
            let known = self.leaving.entry(revision.uid.clone()).or_insert(since);
            *known = since.min(*known);
        }
        self.objects.insert(revision.name.clone(), revision.clone());
        self.record(revision.clone(), false);
        revision
    }

    fn remove(&mut self, mut object: SimObject, by_ingester: bool) {
        self.version += 1;
        object.version = self.version;
        self.objects.remove(&object.name);
        let revision = Revision::new(object);
        let (version, turn) = (self.version, self.turn);
        self.gone.insert(revision.uid.clone(), Gone { version, turn });
        self.departures.push(Departure {
            object: revision.clone(),
            by_ingester,
            stays: false,
            references: revision.references().map(str::to_owned).collect(),
        });
        self.record(revision, true);
    }

    fn record(&mut self, object: Arc<Revision>, gone: bool) {
        let known = self.revisions.entry(object.uid.clone()).or_default();
        known.push(object.clone());
        self.changes.push(Change {
            version: object.version,
            gone,
            object,
        });
    }

    fn find(&self, target: &Target) -> Result<Arc<Revision>, ClusterError> {
        let name = &target.name.name;
        let found = self.objects.get(name);
        let object = found.ok_or_else(|| ClusterError::NotFound(name.clone()))?;
        if *object.uid != *target.uid.0 || object.version != target.resource_version.0 {
            return Err(ClusterError::Conflict(format!("{name} is at {}", object.version)));
        }
        Ok(object.clone())
    }

    /// An ingester's delete.
    ///
    /// # Errors
    /// Where the target is another one by now, or gone.
    pub fn delete_if(&mut self, target: &Target, now: Timestamp) -> Result<Option<Object>, ClusterError> {
        self.find(target)?;
        let version = self.version;
        let left = self.delete(&target.name.name, now, true);
        if self.version > version {
            self.echoes.insert(self.version);
        }
        Ok(left.map(|revision| revision.object.clone()))
    }

    /// An ingester's change of finalizers.
    ///
    /// # Errors
    /// Where the target is another one by now, or gone.
    pub fn set_finalizers(&mut self, target: &Target, finalizers: &[String]) -> Result<Object, ClusterError> {
        let before = self.find(target)?;
        Ok(self.replace_finalizers(&before, finalizers))
    }

    /// The same without any condition.
    pub fn replace_finalizers(&mut self, before: &Revision, finalizers: &[String]) -> Object {
        let version = self.version;
        self.update(&before.name, true, |object| object.finalizers = finalizers.to_vec());
        if self.version > version && !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            self.echoes.insert(self.version);
        }
        let Some(after) = self.objects.get(&before.name).cloned() else {
            let mut last = before.state.clone();
            last.finalizers = finalizers.to_vec();
            return Revision::new(last).object.clone();
        };
        if before.has_finalizer() && !after.has_finalizer() {
            self.departures.push(Departure {
                object: after.clone(),
                by_ingester: true,
                stays: true,
                references: before
                    .references()
                    .filter(|name| !after.finalizers.iter().any(|left| left == name))
                    .map(str::to_owned)
                    .collect(),
            });
        }
        after.object.clone()
    }

    /// The object of this name.
    pub fn get(&self, name: &str) -> Option<Object> {
        self.objects.get(name).map(|revision| revision.object.clone())
    }

    /// One page of a list. A token says at which version the list began, and where it goes on.
    ///
    /// # Errors
    /// Where the list is no longer kept.
    pub fn list(&mut self, limit: usize, token: Option<&str>) -> Result<Page, ClusterError> {
        let (version, start) = match token.and_then(|token| token.split_once('.')) {
            None => {
                let items = self.objects.values().cloned().collect();
                self.lists.insert(self.version, items);
                (self.version, 0)
            }
            Some((version, start)) => {
                let number = |text: &str| text.parse().expect("a token of ours");
                (number(version), usize::try_from(number(start)).expect("small"))
            }
        };
        let items = self.lists.get(&version);
        let items = items.ok_or_else(|| ClusterError::Expired("the list is no longer kept".to_owned()))?;
        let end = items.len().min(start + limit);
        Ok(Page {
            objects: items[start..end]
                .iter()
                .map(|revision| revision.object.clone())
                .collect(),
            unreadable: Vec::new(),
            resource_version: ResourceVersion(version),
            continue_token: (end < items.len()).then(|| format!("{version}.{end}")),
            remaining: None,
        })
    }

    /// What the object of a name owns, as a list of the other kind.
    pub fn owned_by(&mut self, name: &str) -> Page {
        let owner = self.objects.get(name).map(|revision| &revision.object.metadata.uid);
        let is_there = owner.is_some_and(|uid| self.owned.ask(uid));
        Page {
            objects: is_there.then(|| part_of(name)).into_iter().collect(),
            resource_version: ResourceVersion(self.version),
            ..Page::default()
        }
    }

    /// The first change after this version.
    ///
    /// # Errors
    /// Where changes were forgotten.
    pub fn next_change(&self, after: u64) -> Result<Option<&Change>, ClusterError> {
        if after < self.floor {
            return Err(ClusterError::Expired(format!("{after} is too old")));
        }
        let index = self.changes.partition_point(|change| change.version <= after);
        Ok(self.changes.get(index))
    }

    /// Where a watch at this version has to go back to in order to repeat so many changes.
    pub fn rewound(&self, from: u64, changes: usize) -> u64 {
        let index = self.changes.partition_point(|change| change.version <= from);
        let earlier = self.changes.get(index.saturating_sub(changes + 1));
        earlier
            .map_or(from, |change| change.version)
            .clamp(self.floor.min(from), from)
    }

    /// Compacts all changes so far, and the lists that are being read.
    pub fn compact(&mut self) {
        self.floor = self.version;
        self.lists.clear();
    }

    /// Takes a backup.
    pub fn back_up(&mut self) {
        self.backup = Some(Box::new((self.objects.clone(), self.version)));
    }

    /// The version of the backup, where there is one, and how many objects it has.
    pub fn backup_size(&self) -> Option<(u64, u64)> {
        self.backup.as_ref().map(|backup| (backup.1, backup.0.len() as u64))
    }

    /// Restores the backup, if there is one. Versions continue from that of the backup.
    pub fn restore(&mut self) {
        let Some(backup) = self.backup.take() else {
            return;
        };
        let before = std::mem::take(&mut self.objects);
        (self.objects, self.version) = *backup;
        let (version, turn) = (self.version, self.turn);
        self.echoes.retain(|echo| *echo <= version);
        for (uid, known) in &mut self.revisions {
            let lost = known.extract_if(.., |revision| revision.version > version);
            self.lost.entry(uid.clone()).or_default().extend(lost);
        }
        // Objects that were created after the backup are gone.
        for object in before.values() {
            self.gone.insert(object.uid.clone(), Gone { version, turn });
        }
        for gone in self.gone.values_mut() {
            gone.version = gone.version.min(version);
        }
        for object in self.objects.values() {
            self.gone.remove(&object.uid);
        }
        let objects = self.objects.values().filter(|object| object.is_leaving());
        let leaving: BTreeSet<&str> = objects.map(|object| &*object.uid).collect();
        self.leaving.retain(|uid, _| leaving.contains(&**uid));
        self.changes.clear();
        self.lists.clear();
        self.floor = self.version;
    }

    /// Assigns versions that were used before to other texts, without an event: so does a cluster that was restored
    /// and has reached the old versions again before any ingester asked.
    pub fn reuse_versions(&mut self) {
        for (index, revision) in self.objects.values_mut().enumerate() {
            let mut object = revision.state.clone();
            object.value += 1;
            object.version -= index as u64 % 2;
            let known = self.revisions.entry(object.uid.clone()).or_default();
            let lost = known.extract_if(.., |revision| revision.version >= object.version);
            self.lost.entry(object.uid.clone()).or_default().extend(lost);
            *revision = Revision::new(object);
            known.push(revision.clone());
        }
    }

    /// The object of this uid, if it is present.
    pub fn find_uid(&self, uid: &str) -> Option<&Arc<Revision>> {
        self.objects.values().find(|object| object.uid == uid)
    }
}
