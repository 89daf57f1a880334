//! The API servers of all services: the objects that they store, what their watches report, and whether they answer.
//! Which writes they refuse, and by which rules they are judged, is decided by the world around them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use crate::object::{Key, KindName};

/// An object as an API server stores it.
#[derive(Clone, Debug)]
pub(in super::super) struct Stored {
    pub(in super::super) key: Key,
    pub(in super::super) uid: String,
    pub(in super::super) version: u64,
    /// The version in which it was created.
    pub(in super::super) born: u64,
    pub(in super::super) finalizers: Vec<String>,
    pub(in super::super) terminating: bool,
    /// The time of its deletion, by whatever clock.
    pub(in super::super) deleted_at: Timestamp,
    pub(in super::super) requested: bool,
    pub(in super::super) immutable: bool,
    pub(in super::super) phase: Option<Phase>,
    pub(in super::super) named: BTreeMap<&'static str, String>,
    /// Whether its deletion is one, by a user or in consequence of one, rather than an eviction.
    pub(in super::super) asked: bool,
}

impl Stored {
    pub(in super::super) fn reference(&self) -> String {
        let name = ReferenceName::new(&self.key.kind.kind, &self.key.kind.group, &self.uid);
        name.expect("a name").to_string()
    }

    pub(in super::super) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|one| one == finalizer)
    }

    pub(in super::super) fn references(&self) -> impl Iterator<Item = ReferenceName> {
        self.finalizers
            .iter()
            .filter_map(|one| ReferenceName::of_finalizer(one))
    }

    /// References of those that it does not own.
    pub(super) fn plain(&self) -> impl Iterator<Item = ReferenceName> {
        self.references()
            .filter(|name| !matches!(name.kind(), "tree" | "server"))
    }
}

/// What the watch of a kind reports.
#[derive(Clone, Debug)]
pub(in super::super) enum Event {
    Applied(Stored),
    Deleted(Key, String),
    /// Something of an archived object has changed that other services may see.
    Archived(Key),
}

/// Why an API server did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    Gone,
    Conflict,
    Invalid,
    Down,
}

/// What all API servers store.
#[derive(Debug)]
pub(in super::super) struct Servers {
    pub(in super::super) objects: BTreeMap<Key, Stored>,
    /// By kind, all that a watch from the beginning reports.
    pub(in super::super) log: BTreeMap<KindName, Vec<Event>>,
    /// Every write has one, those to SQL too.
    pub(in super::super) version: u64,
    uids: u64,
    /// The group whose API server does not answer.
    pub(in super::super) down: Option<String>,
}

impl Servers {
    pub(super) fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            log: BTreeMap::new(),
            version: 1,
            uids: 0,
            down: None,
        }
    }

    /// Whether the API server of a group does not answer.
    pub(in super::super) fn is_down(&self, group: &str) -> bool {
        self.down.as_deref() == Some(group)
    }

    pub(super) fn answers(&self, key: &Key) -> Result<(), Refusal> {
        match self.is_down(&key.kind.group) {
            true => Err(Refusal::Down),
            false => Ok(()),
        }
    }

    pub(in super::super) fn get(&self, key: &Key) -> Result<Option<&Stored>, Refusal> {
        self.answers(key)?;
        Ok(self.objects.get(key))
    }

    pub(super) fn of_uid(&self, uid: &str) -> Option<&Stored> {
        self.objects.values().find(|object| object.uid == uid)
    }

    /// With each version, a second passes.
    pub(super) fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.version).expect("few versions");
        Timestamp::from_second(seconds).expect("a time")
    }

    /// The number that the uid of a new object begins with.
    pub(super) fn next_uid(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }

    /// Stores an object, and reports it. One that is being deleted and has no finalizer goes: whether it has.
    pub(super) fn put(&mut self, object: &Stored) -> bool {
        let log = self.log.entry(object.key.kind.clone()).or_default();
        let goes = object.terminating && object.finalizers.is_empty();
        if goes {
            log.push(Event::Deleted(object.key.clone(), object.uid.clone()));
            self.objects.remove(&object.key);
        } else {
            log.push(Event::Applied(object.clone()));
            self.objects.insert(object.key.clone(), object.clone());
        }
        goes
    }
}
