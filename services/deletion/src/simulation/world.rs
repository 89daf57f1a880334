//! The truth that the controllers work on: API servers with objects that users create, change and delete, an ingester
//! that evicts, and the rules by which every write of a controller is judged. `declared` is how the services are set,
//! `servers` and `archive` are what is there, and `judge` and `history` are what the rules remember of the past.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use kindex_model::deletion::Phase;
use kindex_model::object::{Metadata, ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;

use crate::notice::Notice;
use crate::object::{Key, Names, Object};

mod servers;

mod declared;

mod outside;

mod history;

mod judge;

mod archive;

mod deletes;

mod elsewhere;

mod events;

mod formers;

mod ingester;

mod moves;

mod sql_only;

mod tombstones;

use archive::Archives;
pub(super) use declared::{FIELDS, Field, KINDS, fields};
use declared::{GROUPS, Services};
pub(super) use formers::was_moved_from;
use judge::Judge;
pub(super) use outside::has_cleanup;
use servers::Servers;
pub(super) use servers::{Event, Refusal, Stored};

const INGESTER: &str = "ingester";
const FOREIGN: &str = "cleanup";

/// Those of each group, which nearly all steps ask for.
pub(super) fn names(group: &str) -> &'static Names {
    static OF_GROUPS: LazyLock<BTreeMap<&str, Names>> = LazyLock::new(|| {
        let of_group = |group| Names {
            ingester: INGESTER.to_owned(),
            deleting: "deleting".to_owned(),
            immutable: "immutable".to_owned(),
            ..Names::of_service(group)
        };
        GROUPS.into_iter().map(|group| (group, of_group(group))).collect()
    });
    &OF_GROUPS[group]
}

pub(super) struct World {
    pub(super) services: Services,
    pub(super) servers: Servers,
    /// The uids of objects that have something outside of the cluster, and whether its removal was asked for.
    outside: BTreeMap<String, bool>,
    /// The last object of each name that was deleted, as it was then.
    erased: BTreeMap<Key, Stored>,
    /// What left the cluster.
    pub(super) archives: Archives,
    /// By uid, the objects that hold others by the API alone: their reference, and the uid of the object that they hold
    /// by it.
    pub(super) api_holders: BTreeMap<String, (ReferenceName, String)>,
    /// By name, what each event is about and says.
    pub(super) events: BTreeMap<String, (Key, Notice)>,
    pub(super) judge: Judge,
}

impl World {
    pub(super) fn new(divided: bool) -> Self {
        Self {
            services: Services::new(divided),
            servers: Servers::new(),
            outside: BTreeMap::new(),
            erased: BTreeMap::new(),
            archives: Archives::default(),
            api_holders: BTreeMap::new(),
            events: BTreeMap::new(),
            judge: Judge::default(),
        }
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
            true => self.services.edges(object),
            false => Vec::new(),
        };
        Object::read(object.key.kind.clone(), &metadata, names, !is_own, edges)
    }

    pub(super) fn create(&mut self, key: Key, named: BTreeMap<&'static str, String>, foreign: bool, immutable: bool) {
        if self.servers.objects.contains_key(&key) {
            return;
        }
        let uid = format!("{:08x}-0000-4000-8000-000000000000", self.servers.next_uid());
        if has_cleanup(&key.kind.kind) {
            self.outside.insert(uid.clone(), false);
        }
        let is_sql_only = self.services.is_sql_only(&key.kind);
        let ingester = (!is_sql_only).then(|| INGESTER.to_owned());
        let finalizers = ingester.into_iter().chain(foreign.then(|| FOREIGN.to_owned()));
        self.store(Stored {
            key,
            uid,
            version: 0,
            born: self.servers.version + 1,
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
        self.servers.answers(key)?;
        let known = self.servers.objects.get(key).ok_or(Refusal::Gone)?;
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
            self.judge.broken(format!(
                "{key}: {:?} is recorded after {:?}",
                changed.phase, known.phase
            ));
        }
        if is_anew {
            self.judge.broken(format!("{key} is deleted anew"));
        }
        Ok(self.store(changed))
    }

    fn store(&mut self, mut object: Stored) -> Stored {
        self.servers.version += 1;
        object.version = self.servers.version;
        self.judge.note(&self.services, &object);
        match (self.servers.put(&object), object.asked) {
            (true, true) => {
                self.outside.remove(&object.uid);
                self.erased.insert(object.key.clone(), object.clone());
            }
            (true, false) => {
                self.judge.vanished.insert(object.uid.clone());
                self.archives.add(object.clone());
                self.excuse_unnamed(&object);
            }
            (false, _) => {}
        }
        object
    }

    /// A controller records a phase.
    pub(super) fn judge_phase(&mut self, object: &Stored, phase: Phase) {
        if object.phase == Some(phase) {
            self.judge
                .broken(format!("{}: {phase} is recorded once more", object.key));
        }
        let drains = phase >= Phase::Draining;
        if drains && object.plain().next().is_some() {
            self.judge
                .broken(format!("{} is in {phase} with a reference", object.key));
        }
        if drains {
            self.judge_rows(object, phase == Phase::Draining);
        }
        if phase == Phase::Finalizing && !self.is_drained(object) {
            self.judge
                .broken(format!("{} is in {phase} before it is drained", object.key));
        }
        if !object.asked {
            self.judge
                .broken(format!("{} is in {phase} and nobody deleted it", object.key));
        }
    }

    fn is_drained(&self, object: &Stored) -> bool {
        let others = object.has_finalizer(FOREIGN) || object.references().next().is_some();
        object.terminating && object.asked && !others && !self.outside.contains_key(&object.uid)
    }

    /// A controller takes the reference of a holder off a target.
    pub(super) fn judge_release(&mut self, holder: &str, target: &Stored) {
        let Some(holder) = self.servers.of_uid(holder) else {
            return;
        };
        if self.is_drained(holder) {
            return;
        }
        let reference = holder.reference();
        let mut edges = self.services.edges(holder).into_iter();
        let lapses = edges.any(|edge| {
            let named = self
                .servers
                .objects
                .get(&edge.target)
                .filter(|named| named.key != holder.key);
            let unheld = named
                .is_some_and(|named| !named.has_finalizer(&reference) && !self.archives.has_row(named, &reference));
            // A namesake of an archived one that has it was created since that was read.
            let unheld = unheld && !self.has_row_of(&edge.target, &reference);
            edge.target == target.key || (unheld && !self.judge.lenient)
        });
        if lapses || holder.terminating {
            let broken = format!("{} is released from {} before its time", holder.key, target.key);
            self.judge.broken(broken);
        }
    }

    /// A controller removes the finalizer of the graph.
    pub(super) fn judge_free(&mut self, object: &Stored, strict: bool) {
        if object.references().next().is_some() {
            self.judge
                .broken(format!("{} is freed with a reference on it", object.key));
        }
        if !object.asked {
            return;
        }
        self.judge_rows(object, false);
        if !self.is_drained(object) {
            self.judge
                .broken(format!("{} is freed before it is drained", object.key));
        }
        let reference = object.reference();
        let mut left = self
            .servers
            .objects
            .values()
            .filter(|other| other.has_finalizer(&reference));
        let left = left.find(|other| !strict || !self.judge.is_excused(&object.uid, &other.uid));
        match left.map(|left| left.key.clone()) {
            Some(left) if strict => {
                self.judge
                    .broken(format!("{} is freed, and {left} still has its reference", object.key));
            }
            Some(_) => {
                self.judge.vanished.insert(object.uid.clone());
            }
            None => {}
        }
    }
}
