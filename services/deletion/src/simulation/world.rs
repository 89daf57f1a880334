//! The truth that the controllers work on: API servers with objects that users create, change and delete, an ingester
//! that evicts, and the rules by which every write of a controller is judged.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kindex_model::deletion::Phase;
use kindex_model::object::{Metadata, ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;

use crate::graph::Declared;
use crate::notice::Notice;
use crate::object::{Edge, Key, KindName, Names, Object};

mod outside;

mod declared;

mod archive;

mod deletes;

mod elsewhere;

mod ends;

mod events;

mod formers;

mod history;

mod ingester;

mod moves;

mod sql_only;

mod tombstones;

use archive::Archives;
pub(super) use declared::{FIELDS, Field, KINDS, fields};
use history::History;
pub(super) use outside::has_cleanup;

const INGESTER: &str = "ingester";
const FOREIGN: &str = "cleanup";

/// An object as an API server stores it.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) version: u64,
    /// The version in which it was created.
    pub(super) born: u64,
    pub(super) finalizers: Vec<String>,
    pub(super) terminating: bool,
    /// The time of its deletion, by whatever clock.
    pub(super) deleted_at: Timestamp,
    pub(super) requested: bool,
    pub(super) immutable: bool,
    pub(super) phase: Option<Phase>,
    pub(super) named: BTreeMap<&'static str, String>,
    /// Whether its deletion is one, by a user or in consequence of one, rather than an eviction.
    pub(super) asked: bool,
}

impl Stored {
    pub(super) fn reference(&self) -> String {
        let name = ReferenceName::new(&self.key.kind.kind, &self.key.kind.group, &self.uid);
        name.expect("a name").to_string()
    }

    pub(super) fn bears(&self, reference: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == reference)
    }

    pub(super) fn references(&self) -> impl Iterator<Item = ReferenceName> {
        self.finalizers
            .iter()
            .filter_map(|one| ReferenceName::of_finalizer(one))
    }

    /// References of those that it does not own.
    fn plain(&self) -> impl Iterator<Item = ReferenceName> {
        self.references()
            .filter(|name| !matches!(name.kind(), "tree" | "server"))
    }
}

pub(super) fn names(group: &str) -> Names {
    Names {
        ingester: INGESTER.to_owned(),
        deleting: "deleting".to_owned(),
        immutable: "immutable".to_owned(),
        ..Names::of_service(group)
    }
}

/// What the watch of a kind reports.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Applied(Stored),
    Deleted(Key, String),
    /// Something of an archived object has changed that other services may see.
    Archived(Key),
}

/// Why an API server did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Gone,
    Conflict,
    Invalid,
    Down,
}

pub(super) struct World {
    /// Whether each kind is of a service of its own, or all are of one.
    pub(super) divided: bool,
    pub(super) objects: BTreeMap<Key, Stored>,
    pub(super) log: BTreeMap<KindName, Vec<Event>>,
    pub(super) version: u64,
    uids: u64,
    /// The uids of objects that have something outside of the cluster, and whether its removal was asked for.
    outside: BTreeMap<String, bool>,
    /// The group whose API server does not answer.
    pub(super) down: Option<String>,
    /// Uids of holders that went without the chance to release: archived, or by force.
    pub(super) vanished: BTreeSet<String>,
    /// Whether a holder may release its old target although its new one has just lost the reference: to somebody who
    /// took it off, or to another controller that had not seen the holder's new field.
    pub(super) lenient: bool,
    /// The last object of each name that was deleted, as it was then.
    erased: BTreeMap<Key, Stored>,
    /// What left the cluster.
    pub(super) archives: Archives,
    /// By the uids of holder and target, references that somebody other than the holder's controller has placed, or of
    /// which it cannot know that they are to be released: they may be left behind.
    pub(super) excused: BTreeSet<(String, String)>,
    /// Whether the ingester archives what is in use, with the references on it as rows, and only what owns nothing in
    /// the cluster; else what is in use stays there until it is not.
    pub(super) takes_references: bool,
    /// The kinds whose objects are only in SQL.
    pub(super) sql_only_kinds: BTreeSet<&'static str>,
    /// By uid, the objects that hold others by the API alone: their reference, and the uid of the object that they hold
    /// by it.
    pub(super) api_holders: BTreeMap<String, (ReferenceName, String)>,
    /// By uid, as which one a deletion was through: from then on the object releases what it holds.
    pub(super) ends: BTreeMap<String, usize>,
    /// By name, what each event is about and says.
    pub(super) events: BTreeMap<String, (Key, Notice)>,
    pub(super) history: History,
    /// The first rule that was broken.
    pub(super) broken: Option<String>,
}

impl World {
    pub(super) fn new(divided: bool) -> Self {
        Self {
            divided,
            objects: BTreeMap::new(),
            log: BTreeMap::new(),
            version: 1,
            uids: 0,
            outside: BTreeMap::new(),
            down: None,
            vanished: BTreeSet::new(),
            lenient: false,
            erased: BTreeMap::new(),
            archives: Archives::default(),
            excused: BTreeSet::new(),
            takes_references: false,
            sql_only_kinds: BTreeSet::new(),
            api_holders: BTreeMap::new(),
            ends: BTreeMap::new(),
            events: BTreeMap::new(),
            history: History::default(),
            broken: None,
        }
    }

    pub(super) fn kind(&self, kind: &str) -> KindName {
        let service = match (self.divided, kind) {
            (false, _) => "one",
            (true, "Project" | "Budget") => "identity",
            (true, "Cluster" | "Server") => "compute",
            (true, _) => "region",
        };
        KindName::new(format!("{service}.example.com"), kind.to_owned())
    }

    pub(super) fn key(&self, kind: &str, name: &str) -> Key {
        Key {
            kind: self.kind(kind),
            namespace: "default".into(),
            name: name.into(),
        }
    }

    pub(super) fn declared(&self) -> Vec<Declared> {
        let declared = FIELDS.iter().map(|field| Declared {
            holder: self.kind(field.holder),
            target: self.kind(field.target),
            owned: field.owned,
        });
        declared.collect()
    }

    pub(super) fn edges(&self, object: &Stored) -> Vec<Edge> {
        let named = fields(&object.key.kind.kind).filter_map(|field| {
            let name = object.named.get(field.name)?;
            Some(Edge {
                reference: field.name,
                target: self.key(field.target, name),
                owned: field.owned,
                on_delete: field.on_delete,
            })
        });
        named.collect()
    }

    /// Whether a field of an object names this one.
    fn names(object: &Stored, target: &Key) -> bool {
        let mut of_kind = fields(&object.key.kind.kind).filter(|field| field.target == target.kind.kind);
        of_kind.any(|field| object.named.get(field.name).is_some_and(|name| **name == *target.name))
    }

    /// The service of an object is restored from a backup in which the object was like this.
    pub(super) fn restore(&mut self, object: Stored) {
        self.erased.remove(&object.key);
        self.store(object);
    }

    /// What a service reads of an object, its own or another's, of which it does not know what is immutable.
    pub(super) fn read(&self, object: &Stored, is_own: bool) -> Object {
        let names = names(&object.key.kind.group);
        let mut annotations = BTreeMap::new();
        let mut say = |name: &String, said: bool| {
            if said && is_own {
                annotations.insert(name.clone(), "true".to_owned());
            }
        };
        say(&names.deleting, object.requested);
        say(&names.immutable, object.immutable);
        if let Some(phase) = object.phase {
            annotations.insert(names.recorded.phase.clone(), phase.to_string());
        }
        let metadata = Metadata {
            api_version: String::new(),
            uid: Uid::from(object.uid.as_str()),
            namespace: object.key.namespace.to_string(),
            name: object.key.name.to_string(),
            resource_version: ResourceVersion(object.version),
            creation_timestamp: None,
            deletion_timestamp: object.terminating.then_some(object.deleted_at),
            labels: BTreeMap::new(),
            annotations,
            finalizers: object.finalizers.clone(),
        };
        let edges = match is_own {
            true => self.edges(object),
            false => Vec::new(),
        };
        Object::read(object.key.kind.clone(), &metadata, &names, !is_own, edges)
    }

    fn answers(&self, key: &Key) -> Result<(), Refusal> {
        match self.down.as_deref() == Some(&*key.kind.group) {
            true => Err(Refusal::Down),
            false => Ok(()),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Result<Option<&Stored>, Refusal> {
        self.answers(key)?;
        Ok(self.objects.get(key))
    }

    pub(super) fn create(&mut self, key: Key, named: BTreeMap<&'static str, String>, foreign: bool, immutable: bool) {
        if self.objects.contains_key(&key) {
            return;
        }
        self.uids += 1;
        let uid = format!("{:08x}-0000-4000-8000-000000000000", self.uids);
        if has_cleanup(&key.kind.kind) {
            self.outside.insert(uid.clone(), false);
        }
        let is_sql_only = self.is_sql_only(&key.kind);
        let ingester = (!is_sql_only).then(|| INGESTER.to_owned());
        let finalizers = ingester.into_iter().chain(foreign.then(|| FOREIGN.to_owned()));
        self.store(Stored {
            key,
            uid,
            version: 0,
            born: self.version + 1,
            finalizers: finalizers.collect(),
            terminating: false,
            deleted_at: Timestamp::UNIX_EPOCH,
            requested: false,
            immutable: immutable && !is_sql_only,
            phase: None,
            named,
            asked: false,
        });
    }

    /// Changes an object on condition of uid and version, and erases it once nothing holds it.
    pub(super) fn write(
        &mut self,
        key: &Key,
        uid: Option<&str>,
        version: Option<u64>,
        change: impl FnOnce(&mut Stored),
    ) -> Result<Stored, Refusal> {
        self.answers(key)?;
        let known = self.objects.get(key).ok_or(Refusal::Gone)?;
        if uid.is_some_and(|uid| uid != known.uid) {
            return Err(Refusal::Gone);
        }
        if version.is_some_and(|version| version != known.version) {
            return Err(Refusal::Conflict);
        }
        let mut changed = known.clone();
        change(&mut changed);
        let is_new = |finalizer: &String| !known.finalizers.contains(finalizer);
        if known.terminating && changed.finalizers.iter().any(is_new) {
            return Err(Refusal::Invalid);
        }
        let is_anew = known.terminating && (!changed.terminating || changed.deleted_at != known.deleted_at);
        if known.phase > changed.phase {
            self.broken(format!(
                "{key}: {:?} is recorded after {:?}",
                changed.phase, known.phase
            ));
        }
        if is_anew {
            self.broken(format!("{key} is deleted anew"));
        }
        Ok(self.store(changed))
    }

    fn store(&mut self, mut object: Stored) -> Stored {
        self.version += 1;
        object.version = self.version;
        self.note(&object);
        let log = self.log.entry(object.key.kind.clone()).or_default();
        if object.terminating && object.finalizers.is_empty() {
            log.push(Event::Deleted(object.key.clone(), object.uid.clone()));
            self.objects.remove(&object.key);
            if object.asked {
                self.outside.remove(&object.uid);
                self.erased.insert(object.key.clone(), object.clone());
            } else {
                self.vanished.insert(object.uid.clone());
                self.archives.add(object.clone());
                self.excuse_unnamed(&object);
            }
        } else {
            log.push(Event::Applied(object.clone()));
            self.objects.insert(object.key.clone(), object.clone());
        }
        object
    }

    pub(super) fn broken(&mut self, rule: String) {
        self.broken.get_or_insert(rule);
    }

    fn of_uid(&self, uid: &str) -> Option<&Stored> {
        self.objects.values().find(|object| object.uid == uid)
    }

    /// A controller records a phase.
    pub(super) fn judge_phase(&mut self, object: &Stored, phase: Phase) {
        if object.phase == Some(phase) {
            self.broken(format!("{}: {phase} is recorded once more", object.key));
        }
        let drains = phase >= Phase::Draining;
        if drains && object.plain().next().is_some() {
            self.broken(format!("{} is in {phase} with a reference", object.key));
        }
        if drains {
            self.judge_rows(object, phase == Phase::Draining);
        }
        if phase == Phase::Finalizing && !self.is_drained(object) {
            self.broken(format!("{} is in {phase} before it is drained", object.key));
        }
        if !object.asked {
            self.broken(format!("{} is in {phase} and nobody deleted it", object.key));
        }
    }

    fn is_drained(&self, object: &Stored) -> bool {
        let others = object.bears(FOREIGN) || object.references().next().is_some();
        object.terminating && object.asked && !others && !self.outside.contains_key(&object.uid)
    }

    /// A controller takes the reference of a holder off a target.
    pub(super) fn judge_release(&mut self, holder: &str, target: &Stored) {
        let Some(holder) = self.of_uid(holder) else {
            return;
        };
        if self.is_drained(holder) {
            return;
        }
        let reference = holder.reference();
        let mut edges = self.edges(holder).into_iter();
        let lapses = edges.any(|edge| {
            let named = self.objects.get(&edge.target).filter(|named| named.key != holder.key);
            let unheld =
                named.is_some_and(|named| !named.bears(&reference) && !self.archives.has_row(named, &reference));
            // A namesake of an archived one that bears it was created since that was read.
            let unheld = unheld && !self.bears_as_row(&edge.target, &reference);
            edge.target == target.key || (unheld && !self.lenient)
        });
        if lapses || holder.terminating {
            let broken = format!("{} is released from {} before its time", holder.key, target.key);
            self.broken(broken);
        }
    }

    /// A controller removes the finalizer of the graph.
    pub(super) fn judge_free(&mut self, object: &Stored, strict: bool) {
        if object.references().next().is_some() {
            self.broken(format!("{} is freed with a reference on it", object.key));
        }
        if !object.asked {
            return;
        }
        self.judge_rows(object, false);
        if !self.is_drained(object) {
            self.broken(format!("{} is freed before it is drained", object.key));
        }
        let reference = object.reference();
        let mut left = self.objects.values().filter(|other| other.bears(&reference));
        let left = left.find(|other| !strict || !self.is_excused(&object.uid, &other.uid));
        match left.map(|left| left.key.clone()) {
            Some(left) if strict => {
                self.broken(format!("{} is freed, and {left} still bears its reference", object.key));
            }
            Some(_) => {
                self.vanished.insert(object.uid.clone());
            }
            None => {}
        }
    }
}
