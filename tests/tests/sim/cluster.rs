//! A Kubernetes API of one kind, as far as an ingester can tell: versions, uids,
//! preconditions, finalizers, a watch that forgets, and restoration from a backup.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_runtime::cluster::{ClusterError, Page, Target, WatchEvent};
use kindex_runtime::object::{Object, ResourceVersion, Uid};
use serde_json::json;

use super::{DELETING, FINALIZER, IMMUTABLE, NAMESPACE};

/// One stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimObject {
    pub uid: String,
    pub name: String,
    pub version: u64,
    pub value: u64,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub finalizers: Vec<String>,
    pub deleted_at: Option<Timestamp>,
}

impl SimObject {
    pub fn says(&self, annotation: &str) -> bool {
        self.annotations.get(annotation).is_some_and(|v| v == "true")
    }

    pub fn guarded(&self) -> bool {
        self.finalizers.iter().any(|f| f == FINALIZER)
    }

    /// What a user wrote: everything that SQL must hold before the object may go.
    pub fn content(&self) -> (u64, &BTreeMap<String, String>, &BTreeMap<String, String>) {
        (self.value, &self.labels, &self.annotations)
    }

    pub fn to_object(&self) -> Object {
        let mut metadata = json!({
            "name": self.name, "namespace": NAMESPACE, "uid": self.uid,
            "resourceVersion": self.version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": self.labels, "annotations": self.annotations,
            "finalizers": self.finalizers,
        });
        if let Some(time) = self.deleted_at {
            metadata["deletionTimestamp"] = json!(time.to_string());
        }
        let object = json!({
            "apiVersion": "sim.kindex/v1", "kind": "Thing",
            "metadata": metadata, "spec": {"value": self.value},
        });
        Object::parse_str(&object.to_string()).expect("simulated objects are objects")
    }
}

/// What a watch tells of one change.
#[derive(Clone, Debug)]
struct Change {
    version: u64,
    gone: bool,
    object: SimObject,
}

/// An object that left etcd, or that we let go while others hold it, as it was then.
#[derive(Clone, Debug)]
pub struct Departure {
    pub object: SimObject,
    pub by_ingester: bool,
}

#[derive(Clone, Debug)]
pub struct SimCluster {
    pub objects: BTreeMap<String, SimObject>,
    pub version: u64,
    uids: u64,
    changes: Vec<Change>,
    /// Changes up to here are forgotten.
    floor: u64,
    pub departures: Vec<Departure>,
    backup: Option<Box<(BTreeMap<String, SimObject>, u64)>>,
    /// Lists under way: their items and version, by token.
    lists: BTreeMap<String, (Vec<SimObject>, u64)>,
}

impl Default for SimCluster {
    /// Empty, at version 1, as etcd is: no list has the version 0.
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            version: 1,
            uids: 0,
            changes: Vec::new(),
            floor: 1,
            departures: Vec::new(),
            backup: None,
            lists: BTreeMap::new(),
        }
    }
}

impl SimCluster {
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn record(&mut self, object: SimObject, gone: bool) {
        self.changes.push(Change {
            version: object.version,
            gone,
            object,
        });
    }

    pub fn create(&mut self, name: &str, value: u64, guarded: bool) -> bool {
        if self.objects.contains_key(name) {
            return false;
        }
        self.uids += 1;
        let object = SimObject {
            uid: format!("uid-{:03}", self.uids),
            name: name.to_owned(),
            version: self.next_version(),
            value,
            labels: BTreeMap::from([("app".to_owned(), name.to_owned())]),
            annotations: BTreeMap::new(),
            finalizers: guarded.then(|| FINALIZER.to_owned()).into_iter().collect(),
            deleted_at: None,
        };
        self.objects.insert(name.to_owned(), object.clone());
        self.record(object, false);
        true
    }

    /// Changes an object; one that is terminating goes with its last finalizer.
    pub fn update(&mut self, name: &str, by_ingester: bool, change: impl FnOnce(&mut SimObject)) {
        let Some(mut object) = self.objects.get(name).cloned() else {
            return;
        };
        change(&mut object);
        if object == self.objects[name] {
            return;
        }
        object.version = self.next_version();
        if object.deleted_at.is_some() && object.finalizers.is_empty() {
            self.remove(name, object, by_ingester);
        } else {
            self.objects.insert(name.to_owned(), object.clone());
            self.record(object, false);
        }
    }

    fn remove(&mut self, name: &str, object: SimObject, by_ingester: bool) {
        self.objects.remove(name);
        self.departures.push(Departure {
            object: object.clone(),
            by_ingester,
        });
        self.record(object, true);
    }

    /// A delete as any client sends it.
    pub fn delete(&mut self, name: &str, now: Timestamp, by_ingester: bool) -> Option<SimObject> {
        let mut object = self.objects.get(name)?.clone();
        if object.deleted_at.is_some() {
            return Some(object);
        }
        object.version = self.next_version();
        if object.finalizers.is_empty() {
            self.remove(name, object, by_ingester);
            return None;
        }
        object.deleted_at = Some(now);
        self.objects.insert(name.to_owned(), object.clone());
        self.record(object.clone(), false);
        Some(object)
    }

    fn find(&self, target: &Target) -> Result<&SimObject, ClusterError> {
        let name = &target.name.name;
        let found = self.objects.get(name);
        let object = found.ok_or_else(|| ClusterError::NotFound(name.clone()))?;
        if *object.uid != *target.uid.0 || object.version != target.resource_version.0 {
            return Err(ClusterError::Conflict(format!("{name} is at {}", object.version)));
        }
        Ok(object)
    }

    pub fn delete_if(&mut self, target: &Target, now: Timestamp) -> Result<Option<Object>, ClusterError> {
        self.find(target)?;
        let left = self.delete(&target.name.name, now, true);
        Ok(left.map(|object| object.to_object()))
    }

    pub fn set_finalizers(&mut self, target: &Target, finalizers: &[String]) -> Result<Object, ClusterError> {
        let before = self.find(target)?.clone();
        self.update(&before.name, true, |object| object.finalizers = finalizers.to_vec());
        let after = self.objects.get(&before.name).cloned();
        if let Some(after) = &after
            && before.guarded()
            && !after.guarded()
        {
            let object = after.clone();
            self.departures.push(Departure {
                object,
                by_ingester: true,
            });
        }
        let finalizers = finalizers.to_vec();
        Ok(after.unwrap_or(SimObject { finalizers, ..before }).to_object())
    }

    pub fn get(&self, name: &str) -> Option<Object> {
        self.objects.get(name).map(SimObject::to_object)
    }

    pub fn list(&mut self, limit: usize, token: Option<&str>) -> Result<Page, ClusterError> {
        let (mut items, version) = match token {
            None => (self.objects.values().cloned().collect(), self.version),
            Some(token) => self
                .lists
                .remove(token)
                .ok_or_else(|| ClusterError::Expired("the list is no longer kept".to_owned()))?,
        };
        let rest = items.split_off(limit.min(items.len()));
        let continue_token = (!rest.is_empty()).then(|| format!("{version}/{}", rest[0].name));
        if let Some(token) = &continue_token {
            self.lists.insert(token.clone(), (rest, version));
        }
        Ok(Page {
            objects: items.iter().map(SimObject::to_object).collect(),
            unreadable: Vec::new(),
            resource_version: ResourceVersion(version),
            continue_token,
            remaining: None,
        })
    }

    /// The first change after this version; an error where changes were forgotten.
    pub fn next_event(&self, after: u64) -> Result<Option<WatchEvent>, ClusterError> {
        if after < self.floor {
            return Err(ClusterError::Expired(format!("{after} is too old")));
        }
        let change = self.changes.iter().find(|change| change.version > after);
        Ok(change.map(|change| {
            let object = change.object.to_object();
            if change.gone {
                WatchEvent::Deleted(object)
            } else {
                WatchEvent::Applied(object)
            }
        }))
    }

    /// Forgets all changes so far, and the lists that are being read.
    pub fn compact(&mut self) {
        self.floor = self.version;
        self.lists.clear();
    }

    pub fn back_up(&mut self) {
        self.backup = Some(Box::new((self.objects.clone(), self.version)));
    }

    pub fn backup_version(&self) -> Option<u64> {
        self.backup.as_ref().map(|backup| backup.1)
    }

    /// Returns to the backup; etcd begins anew with its version.
    pub fn restore(&mut self) -> bool {
        let Some(backup) = self.backup.take() else {
            return false;
        };
        (self.objects, self.version) = *backup;
        self.changes.clear();
        self.lists.clear();
        self.floor = self.version;
        true
    }

    pub fn find_uid(&self, uid: &Uid) -> Option<&SimObject> {
        self.objects.values().find(|object| *object.uid == *uid.0)
    }
}

/// Whether an object, were it left alone, would end outside the cluster.
pub fn is_doomed(object: &SimObject) -> bool {
    let foreign = object.finalizers.iter().any(|f| f != FINALIZER);
    let leaving = object.deleted_at.is_some() || object.says(DELETING) || object.says(IMMUTABLE);
    leaving && !foreign
}
