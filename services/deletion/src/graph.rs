//! What is known of all objects of the graph, as watches report it: late, twice, in any order between kinds, and at
//! times not at all. Collects what concerns one object, and says whom a change concerns. Nothing follows from absence.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;

use crate::decide::{Archived, Claim, CleanupState, HolderLocation, Input, MissingReference, Named, Seen};
use crate::object::{DeletionState, Edge, Key, KindName, Object};

/// How many of the objects that went are remembered, against reports that come late.
const GONE_MAX: usize = 65_536;

/// An edge of the declared graph that deletions wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The kind that has the field.
    pub holder: KindName,
    /// The kind that it may name.
    pub target: KindName,
    /// Whether the target owns the holder.
    pub owned: bool,
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Graph {
    declared: Vec<Declared>,
    /// Kinds all of whose objects were read.
    read: BTreeSet<KindName>,
    /// Of each kind, the version in which all of its objects were read last: what is older and unknown is gone.
    listed: BTreeMap<KindName, ResourceVersion>,
    objects: BTreeMap<Key, Object>,
    /// Of each uid, where its object is.
    uids: BTreeMap<String, Key>,
    /// Of each reference, the objects that bear it.
    bearers: BTreeMap<ReferenceName, BTreeSet<Key>>,
    /// Of each name, the objects with a field that has it.
    namers: BTreeMap<Key, BTreeSet<Key>>,
    /// The uids of objects that went, the oldest first.
    gone: VecDeque<String>,
    is_gone: BTreeSet<String>,
}

impl Graph {
    /// A graph of which only the declarations are known.
    pub fn new(declared: Vec<Declared>) -> Self {
        Self {
            declared,
            ..Self::default()
        }
    }

    /// The object at a place.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    /// Where the object with this uid is.
    pub fn find(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }

    /// Whether the object with this uid went, as far as that is remembered.
    pub fn has_gone(&self, uid: &str) -> bool {
        self.is_gone.contains(uid)
    }

    /// Where the objects are that bear a reference.
    pub fn bearers(&self, name: &ReferenceName) -> impl Iterator<Item = &Key> {
        self.bearers.get(name).into_iter().flatten()
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// An object was seen. Returns whom that concerns; nobody, if something newer is known.
    pub fn apply(&mut self, mut object: Object) -> BTreeSet<Key> {
        if self.is_gone.contains(&object.uid) {
            return BTreeSet::new();
        }
        let known = self.objects.get(&object.key);
        let listed = self.listed.get(&object.key.kind).filter(|_| known.is_none());
        if listed.is_some_and(|listed| object.version <= *listed) {
            return BTreeSet::new();
        }
        if let Some(known) = known {
            if known.version >= object.version {
                return BTreeSet::new();
            }
            if known.uid == object.uid {
                object.state = follow(known.state, &object);
                return self.change(object);
            }
        }
        let mut concerned = self.take(&object.key.clone());
        self.uids.insert(object.uid.clone(), object.key.clone());
        for name in &object.references {
            let bearers = self.bearers.entry(name.clone()).or_default();
            bearers.insert(object.key.clone());
        }
        for edge in &object.edges {
            let namers = self.namers.entry(edge.target.clone()).or_default();
            namers.insert(object.key.clone());
        }
        concerned.extend(self.concerned(&object));
        self.objects.insert(object.key.clone(), object);
        concerned
    }

    /// A known object is seen in a newer version. Of those around it, the ones are concerned for which something has
    /// changed: where many hold one object, each of its versions would concern all of them.
    fn change(&mut self, object: Object) -> BTreeSet<Key> {
        let key = object.key.clone();
        let mut concerned = BTreeSet::from([key.clone()]);
        let Some(known) = self.objects.remove(&key) else {
            return concerned;
        };
        for name in known.references.symmetric_difference(&object.references) {
            concerned.extend(self.uids.get(name.uid()).cloned());
            match object.references.contains(name) {
                true => _ = self.bearers.entry(name.clone()).or_default().insert(key.clone()),
                false => forget(&mut self.bearers, name, &key),
            }
        }
        if (known.state, known.phase) != (object.state, object.phase) {
            concerned.extend(self.around(&object));
        }
        if known.edges != object.edges {
            concerned.extend(self.named_or_held_by(&known));
            concerned.extend(self.named_or_held_by(&object));
            for edge in &known.edges {
                forget(&mut self.namers, &edge.target, &key);
            }
            for edge in &object.edges {
                let namers = self.namers.entry(edge.target.clone()).or_default();
                namers.insert(key.clone());
            }
        }
        self.objects.insert(key, object);
        concerned
    }

    /// An object went, which is irrevocable: whatever is still reported of this uid is late.
    pub fn remove(&mut self, key: &Key, uid: &str) -> BTreeSet<Key> {
        self.remember(uid);
        match self.objects.get(key) {
            Some(known) if known.uid == uid => self.take(key),
            Some(_) | None => BTreeSet::new(),
        }
    }

    /// All objects of a kind were read, as of one version. What is not among them is not known any more, unless it was
    /// seen since: whether it is gone, nobody has said.
    pub fn replace(&mut self, kind: &KindName, version: ResourceVersion, objects: Vec<Object>) -> BTreeSet<Key> {
        let listed: BTreeSet<_> = objects.iter().map(|object| object.uid.clone()).collect();
        let of_kind = self.objects.values().filter(|object| object.key.kind == *kind);
        let absent = of_kind.filter(|object| !listed.contains(&object.uid) && object.version <= version);
        let absent: Vec<_> = absent.map(|object| object.key.clone()).collect();
        let mut concerned = BTreeSet::new();
        for key in absent {
            concerned.extend(self.take(&key));
        }
        self.listed.remove(kind);
        for object in objects {
            concerned.extend(self.apply(object));
        }
        self.listed.insert(kind.clone(), version);
        if self.read.insert(kind.clone()) {
            concerned.extend(self.objects.keys().cloned());
        }
        concerned
    }

    /// All that matters of a kind is known: what is not, does not exist.
    pub fn complete(&mut self, kind: &KindName) -> BTreeSet<Key> {
        match self.read.insert(kind.clone()) {
            true => self.objects.keys().cloned().collect(),
            false => BTreeSet::new(),
        }
    }

    /// The names that fields have for objects of a kind.
    pub fn names_of<'g>(&'g self, kind: &'g KindName) -> impl Iterator<Item = &'g Key> {
        self.namers.keys().filter(move |key| key.kind == *kind)
    }

    /// Whether a field names the object at this place.
    pub fn is_named(&self, key: &Key) -> bool {
        self.namers.contains_key(key)
    }

    /// How many references are on an object, and how many fields name it.
    pub fn neighbours(&self, key: &Key) -> usize {
        let references = self.objects.get(key).map_or(0, |object| object.references.len());
        references + self.namers.get(key).map_or(0, BTreeSet::len)
    }

    /// The objects of a kind are not followed any more: nothing that depends on all of them may be decided.
    pub fn lose(&mut self, kind: &KindName) {
        self.read.remove(kind);
    }

    /// Everything that a decision on an object depends on.
    pub fn input(&self, key: &Key, cleanup: CleanupState) -> Option<Input<'_>> {
        let object = self.objects.get(key)?;
        let name = object.reference_name();
        let bearers = name.as_ref().and_then(|name| self.bearers.get(name));
        let bearers = bearers.into_iter().flatten().filter_map(|key| self.objects.get(key));
        let bearers = bearers.filter(|target| object.is_leaving() || self.may_name(object, target));
        let holders = self.declared.iter().filter(|edge| edge.target == key.kind);
        let targets = self.declared.iter().filter(|edge| edge.holder == key.kind);
        Some(Input {
            object,
            named: object.edges.iter().map(|edge| self.named(object, edge)).collect(),
            bearers: bearers.map(Seen::of).collect(),
            claims: object.references.iter().map(|name| self.claim(object, name)).collect(),
            missing: self.missing(object),
            holders_unknown: self.unknown(holders.map(|edge| &edge.holder)),
            targets_unknown: self.unknown(targets.map(|edge| &edge.target)),
            cleanup,
            archived: Archived::Off,
        })
    }

    /// Whether a field of an object may name objects of the kind of another one.
    fn may_name(&self, object: &Object, target: &Object) -> bool {
        let mut declared = self.declared.iter();
        declared.any(|edge| edge.holder == object.key.kind && edge.target == target.key.kind)
    }

    fn unknown<'k>(&self, kinds: impl Iterator<Item = &'k KindName>) -> Vec<String> {
        let unknown: BTreeSet<_> = kinds.filter(|kind| !self.read.contains(kind)).collect();
        unknown.into_iter().map(ToString::to_string).collect()
    }

    fn named(&self, object: &Object, edge: &Edge) -> Named {
        if edge.target == object.key {
            return Named::Itself;
        }
        match self.objects.get(&edge.target) {
            Some(target) => Named::Present {
                seen: Seen::of(target),
                bears: object
                    .reference_name()
                    .is_some_and(|name| target.references.contains(&name)),
                leaving: target.state != DeletionState::Live,
                phase: target.phase.filter(|_| target.state == DeletionState::Deleting),
            },
            None if self.read.contains(&edge.target.kind) => Named::Absent,
            None => Named::Unknown,
        }
    }

    /// A holder that was seen is owned if its fields say so; one that was not, if its kind can be nothing else.
    fn claim(&self, object: &Object, name: &ReferenceName) -> Claim {
        let holder = self.uids.get(name.uid()).and_then(|key| self.objects.get(key));
        let mut naming = holder.into_iter().flat_map(|holder| &holder.edges);
        let named = naming.find(|edge| edge.target == object.key);
        let declared = self.declared.iter().filter(|edge| edge.target == object.key.kind);
        let of_kind: Vec<_> = declared.filter(|edge| is_of(name, &edge.holder)).collect();
        let owned = match named {
            Some(edge) => edge.owned,
            None => !of_kind.is_empty() && of_kind.iter().all(|edge| edge.owned),
        };
        Claim {
            name: name.clone(),
            at: match holder {
                Some(holder) => HolderLocation::Seen(holder.key.clone()),
                None if self.all_are_known(name) => HolderLocation::Absent,
                None => HolderLocation::Unknown,
            },
            owned,
        }
    }

    /// Whether the holder of a reference would be known. Of another service's kind, only those are that matter.
    fn all_are_known(&self, name: &ReferenceName) -> bool {
        let mut listed = self.listed.keys();
        listed.any(|kind| self.read.contains(kind) && is_of(name, kind))
    }

    fn missing(&self, object: &Object) -> Vec<MissingReference> {
        let namers = self.namers.get(&object.key).into_iter().flatten();
        let namers = namers.filter(|key| **key != object.key);
        let placed: HashSet<&str> = object.references.iter().map(ReferenceName::uid).collect();
        let bears = |holder: &Object| {
            let name = || holder.reference_name();
            placed.contains(holder.uid.as_str()) && name().is_some_and(|name| object.references.contains(&name))
        };
        let missing = namers.filter_map(|key| self.objects.get(key));
        let missing = missing.filter(|holder| !bears(holder));
        let named = missing.map(|holder| {
            let edges = || holder.edges.iter().filter(|edge| edge.target == object.key);
            MissingReference {
                holder: holder.key.clone(),
                owned: edges().any(|edge| edge.owned),
                cascades: edges().any(Edge::cascades),
            }
        });
        named.collect()
    }

    /// Removes what is known at a place. Returns whom that concerns.
    fn take(&mut self, key: &Key) -> BTreeSet<Key> {
        let Some(object) = self.objects.remove(key) else {
            return BTreeSet::new();
        };
        self.uids.remove(&object.uid);
        for name in &object.references {
            forget(&mut self.bearers, name, key);
        }
        for edge in &object.edges {
            forget(&mut self.namers, &edge.target, key);
        }
        self.concerned(&object)
    }

    /// The object, those who name it, those whom it names, its holders and those whom it holds.
    fn concerned(&self, object: &Object) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::from([object.key.clone()]);
        concerned.extend(self.around(object));
        concerned.extend(self.named_or_held_by(object));
        concerned
    }

    /// Those who name an object, and its holders.
    fn around(&self, object: &Object) -> impl Iterator<Item = Key> {
        let namers = self.namers.get(&object.key).into_iter().flatten();
        let holders = object.references.iter().filter_map(|name| self.uids.get(name.uid()));
        namers.chain(holders).cloned()
    }

    /// Those whom an object names, and those that bear its reference.
    fn named_or_held_by(&self, object: &Object) -> BTreeSet<Key> {
        let named = object.edges.iter().map(|edge| &edge.target);
        let bearers = object.reference_name().and_then(|name| self.bearers.get(&name));
        named.chain(bearers.into_iter().flatten()).cloned().collect()
    }

    fn remember(&mut self, uid: &str) {
        if self.is_gone.insert(uid.to_owned()) {
            self.gone.push_back(uid.to_owned());
        }
        if self.gone.len() > GONE_MAX
            && let Some(oldest) = self.gone.pop_front()
        {
            self.is_gone.remove(&oldest);
        }
    }

    /// As if no object had gone.
    #[cfg(test)]
    pub(crate) fn forget_gone(&mut self) {
        self.is_gone.clear();
    }

    /// The objects around one of its references back to itself, where there is such a path: a deletion of any of them
    /// waits for itself.
    pub fn cycle(&self, key: &Key) -> Option<Vec<Key>> {
        let mut reached: BTreeMap<Key, Key> = BTreeMap::new();
        let mut next = VecDeque::from([key.clone()]);
        while let Some(target) = next.pop_front() {
            let object = self.objects.get(&target)?;
            for name in &object.references {
                let Some(holder) = self.uids.get(name.uid()) else {
                    continue;
                };
                if holder == key {
                    return Some(path(&reached, key, target));
                }
                let leaves = self.objects.get(holder).is_some_and(Object::is_leaving);
                if leaves && !reached.contains_key(holder) {
                    reached.insert(holder.clone(), target.clone());
                    next.push_back(holder.clone());
                }
            }
        }
        None
    }
}

/// From `key` over those who hold it to `last`, which `key` holds.
pub(crate) fn path(reached: &BTreeMap<Key, Key>, key: &Key, last: Key) -> Vec<Key> {
    let mut path = vec![last];
    while let Some(before) = path.last().and_then(|at| reached.get(at)) {
        path.push(before.clone());
    }
    debug_assert!(path.last() == Some(key), "the search began there");
    path.reverse();
    path
}

/// An eviction stays one, whatever becomes of the annotation that allowed it, and a deletion too.
fn follow(known: DeletionState, seen: &Object) -> DeletionState {
    match (known, seen.state) {
        (DeletionState::Deleting, DeletionState::Evicting) => DeletionState::Deleting,
        (DeletionState::Evicting, DeletionState::Deleting) if !seen.requested && seen.phase.is_none() => {
            DeletionState::Evicting
        }
        (_, state) => state,
    }
}

fn is_of(name: &ReferenceName, kind: &KindName) -> bool {
    name.group() == kind.group && name.kind().eq_ignore_ascii_case(&kind.kind)
}

fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Key>>, of: &K, key: &Key) {
    if let Some(keys) = index.get_mut(of) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(of);
        }
    }
}
