//! What is known of all objects of the graph, as watches report it: late, twice, in any order between kinds, and at
//! times not at all. Collects what concerns one object, and says whom a change concerns. Nothing follows from absence.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;

use crate::decide::{Archived, CleanupState, HeldReference, HolderLocation, Input, Named, Seen};
use crate::object::{DeletionState, Edge, Key, KindName, Object};
pub use cycle::CycleSearch;
pub(crate) use cycle::path;
use gone::Gone;

mod gone;

mod cycle;

mod fields;

mod awaited;

#[cfg(test)]
mod tests;

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
    /// Of each reference, the objects that have it.
    targets: BTreeMap<ReferenceName, BTreeSet<Key>>,
    /// Of each name, the objects with a field that has it.
    namers: BTreeMap<Key, BTreeSet<Key>>,
    gone: Gone,
    /// Kinds of other services whose events are not to be trusted.
    doubted: BTreeSet<KindName>,
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
        self.gone.has(uid)
    }

    /// Where the objects are that have a reference.
    pub fn targets(&self, name: &ReferenceName) -> impl Iterator<Item = &Key> {
        self.targets.get(name).into_iter().flatten()
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// An object was seen. Returns whom that concerns; nobody, if something newer is known.
    pub fn apply(&mut self, mut object: Object) -> BTreeSet<Key> {
        if self.gone.is_late(&object.uid, object.version) {
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
        self.gone.take_back(&object.uid);
        let mut concerned = self.take(&object.key.clone());
        self.uids.insert(object.uid.clone(), object.key.clone());
        for name in &object.references {
            let targets = self.targets.entry(name.clone()).or_default();
            targets.insert(object.key.clone());
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
            concerned.extend(self.refusing(name, &key).into_iter().cloned());
            match object.references.contains(name) {
                true => _ = self.targets.entry(name.clone()).or_default().insert(key.clone()),
                false => forget(&mut self.targets, name, &key),
            }
        }
        if (known.state, known.phase) != (object.state, object.phase) {
            concerned.extend(self.around(&object));
            concerned.extend(self.depending_on(&object));
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
        self.remove_until(key, uid, ResourceVersion(u64::MAX))
    }

    /// An object of another service went, as far as look-ups up to this number can say. Its service may be restored
    /// from a time at which the object was there: a later look-up that shows it counts.
    pub fn remove_until(&mut self, key: &Key, uid: &str, number: ResourceVersion) -> BTreeSet<Key> {
        self.gone.add(uid, number);
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
        concerned.extend(self.complete(kind));
        concerned
    }

    /// All that matters of a kind is known: what is not, does not exist.
    pub fn complete(&mut self, kind: &KindName) -> BTreeSet<Key> {
        self.doubted.remove(kind);
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
    pub fn neighbors(&self, key: &Key) -> usize {
        let references = self.objects.get(key).map_or(0, |object| object.references.len());
        references + self.namers.get(key).map_or(0, BTreeSet::len)
    }

    /// The objects of a kind are not followed any more: nothing that depends on all of them may be decided.
    pub fn lose(&mut self, kind: &KindName) {
        self.read.remove(kind);
    }

    /// The same of another service's kind, whose database may be another one by now: that one of its objects is being
    /// deleted is not believed until all that matters of the kind is known again.
    pub fn doubt(&mut self, kind: &KindName) {
        self.lose(kind);
        self.doubted.insert(kind.clone());
    }

    /// Whether that is so.
    pub fn doubts(&self, kind: &KindName) -> bool {
        self.doubted.contains(kind)
    }

    /// Everything that a decision on an object depends on.
    pub fn input(&self, key: &Key, cleanup: CleanupState) -> Option<Input<'_>> {
        let object = self.objects.get(key)?;
        let name = object.reference_name();
        let held = name.as_ref().and_then(|name| self.targets.get(name));
        let held = held.into_iter().flatten().filter_map(|key| self.objects.get(key));
        let held = held.filter(|target| object.is_leaving() || self.may_name(object, target));
        let holders = self.declared.iter().filter(|edge| edge.target == key.kind);
        let targets = self.declared.iter().filter(|edge| edge.holder == key.kind);
        let edges = object.edges.iter();
        Some(Input {
            object,
            named: edges.map(|edge| self.named(object, name.as_ref(), edge)).collect(),
            targets: held.map(Seen::of).collect(),
            has_former: self.has_former(object),
            references: object
                .references
                .iter()
                .map(|name| self.held_reference(object, name))
                .collect(),
            missing: self.missing(object),
            holders_unknown: self.unknown(holders.map(|edge| &edge.holder)),
            targets_unknown: self.unknown(targets.map(|edge| &edge.target)),
            cleanup,
            archived: Archived::Off,
        })
    }

    fn unknown<'k>(&self, kinds: impl Iterator<Item = &'k KindName>) -> Vec<String> {
        let unknown: BTreeSet<_> = kinds.filter(|kind| !self.read.contains(kind)).collect();
        unknown.into_iter().map(ToString::to_string).collect()
    }

    /// What a field of an object names; `name` is by which the object holds others.
    fn named(&self, object: &Object, name: Option<&ReferenceName>, edge: &Edge) -> Named {
        if edge.target == object.key {
            return Named::Itself;
        }
        match self.objects.get(&edge.target) {
            Some(target) => Named::Present {
                seen: Seen::of(target),
                has_reference: name.is_some_and(|name| target.references.contains(name)),
                leaving: target.state != DeletionState::Live,
                phase: target
                    .phase
                    .filter(|_| target.state == DeletionState::Deleting && !self.doubts(&target.key.kind)),
            },
            None if self.read.contains(&edge.target.kind) => Named::Absent,
            None => Named::Unknown,
        }
    }

    /// A holder that was seen is owned if its fields say so; one that was not, if its kind can be nothing else.
    fn held_reference(&self, object: &Object, name: &ReferenceName) -> HeldReference {
        let holder = self.uids.get(name.uid()).and_then(|key| self.objects.get(key));
        let mut naming = holder.into_iter().flat_map(|holder| &holder.edges);
        let named = naming.find(|edge| edge.target == object.key);
        let declared = self.declared.iter().filter(|edge| edge.target == object.key.kind);
        let of_kind: Vec<_> = declared.filter(|edge| is_of(name, &edge.holder)).collect();
        let owned = match named {
            Some(edge) => edge.owned,
            None => !of_kind.is_empty() && of_kind.iter().all(|edge| edge.owned),
        };
        HeldReference {
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

    /// Removes what is known at a place. Returns whom that concerns.
    fn take(&mut self, key: &Key) -> BTreeSet<Key> {
        let Some(object) = self.objects.remove(key) else {
            return BTreeSet::new();
        };
        self.uids.remove(&object.uid);
        for name in &object.references {
            forget(&mut self.targets, name, key);
        }
        for edge in &object.edges {
            forget(&mut self.namers, &edge.target, key);
        }
        self.concerned(&object)
    }

    /// The object, those who name it, those whom it names, its holders and those whom it holds, and those for whom it
    /// matters that others wait for it.
    fn concerned(&self, object: &Object) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::from([object.key.clone()]);
        concerned.extend(self.around(object));
        concerned.extend(self.named_or_held_by(object));
        concerned.extend(self.depending_on(object));
        concerned
    }

    /// Those who name an object, its holders, and those who refuse a holder that has left it for them.
    fn around(&self, object: &Object) -> impl Iterator<Item = Key> {
        let namers = self.namers.get(&object.key).into_iter().flatten();
        let holders = object.references.iter().filter_map(|name| self.uids.get(name.uid()));
        let refusing = object.references.iter();
        let refusing = refusing.flat_map(move |name| self.refusing(name, &object.key));
        namers.chain(holders).chain(refusing).cloned()
    }

    /// The objects that a holder names, that are leaving the cluster and do not have its reference, if it does not name
    /// `former`: whether they wait for the holder depends on who else holds it.
    fn refusing(&self, name: &ReferenceName, former: &Key) -> Vec<&Key> {
        let holder = self.uids.get(name.uid()).and_then(|key| self.objects.get(key));
        let edges = holder.map_or(&[][..], |holder| holder.edges.as_slice());
        if edges.iter().any(|edge| edge.target == *former) {
            return Vec::new();
        }
        self.unheld(edges, name)
    }

    /// Those whom an object names, and those that have its reference.
    fn named_or_held_by(&self, object: &Object) -> BTreeSet<Key> {
        let named = object.edges.iter().map(|edge| &edge.target);
        let targets = object.reference_name().and_then(|name| self.targets.get(&name));
        named.chain(targets.into_iter().flatten()).cloned().collect()
    }

    /// As if no object had gone.
    #[cfg(test)]
    pub(crate) fn forget_gone(&mut self) {
        self.gone.clear();
    }
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
