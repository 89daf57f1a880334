//! What differs between the fields of objects, the references on others, and the rows of references. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kindex_model::kind::Kind;
use kindex_model::reference_name::ReferenceName;
use serde::Serialize;

use super::{ReferencedObject, ReferencedState};

/// How references differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A field names the object, which lacks the reference.
    ReferenceMissing,
    /// A field of the object names another one that does not exist.
    Dangling,
    /// The object has the reference of a holder that does not exist.
    HolderMissing,
    /// The object has the reference of a holder that names others.
    HolderElsewhere,
    /// A row of a reference on an object that is gone.
    #[serde(rename = "reference-stray")]
    OrphanedReference,
    /// A row of a requested deletion, of an object that is gone.
    #[serde(rename = "tombstone-stray")]
    OrphanedTombstone,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReferenceMissing => "reference-missing",
            Self::Dangling => "dangling",
            Self::HolderMissing => "holder-missing",
            Self::HolderElsewhere => "holder-elsewhere",
            Self::OrphanedReference => "reference-stray",
            Self::OrphanedTombstone => "tombstone-stray",
        })
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// The kind of the object that has, or lacks, the reference; of a dangling one, that of the holder.
    pub kind: &'static str,
    /// Its namespace; empty for cluster-wide kinds, and where it is not known.
    pub namespace: String,
    /// Its name; empty where it is not known.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// What sort of difference.
    pub class: Class,
    /// For people.
    pub detail: String,
    /// The group of the other service whose object it is; absent for objects of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<&'static str>,
    /// The versions of both objects, by which one that changes is known.
    #[serde(skip)]
    pub(super) versions: (u64, u64),
}

/// Where an object is: group and kind, namespace, name.
pub(super) type FullName = (&'static str, &'static str, String, String);
/// Objects that were restored, each with its uid, by the uids of those that they were restored from.
type Restored<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a Known)>>;

/// An object, without its text.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) version: u64,
    /// Whether it is being deleted: it takes no new references, and releases its own.
    pub(super) leaving: bool,
    /// Whether it has left the cluster for SQL.
    pub(super) archived: bool,
    /// Whether somebody deletes it, so that it releases what it holds. Who leaves the cluster for SQL releases nothing.
    pub(super) releases: bool,
    /// The uid of the archived object that it was restored from.
    pub(super) restored_from: Option<String>,
    /// Whether it has the finalizer of `kindex deletion`.
    pub(super) has_deletion_finalizer: bool,
    /// What its fields name that delay deletions, each with the name of the reference; of other services too.
    pub(super) names: Vec<(&'static str, FullName)>,
    /// Those on it.
    pub(super) references: BTreeSet<ReferenceName>,
}

impl Known {
    pub(super) fn place(&self) -> FullName {
        (
            self.kind.group,
            self.kind.name,
            self.namespace.clone(),
            self.name.clone(),
        )
    }

    /// Whether what it names here has to have its reference. Who is being deleted releases, and takes none. An archived
    /// holder needs none: a deletion finds it by its field, also if it was archived before anybody placed references.
    fn needs_references(&self) -> bool {
        !self.leaving && !self.archived
    }

    /// The same of what it names at other services. These know no fields of ours: only the reference makes a deletion
    /// there wait, also for an archived holder. One that leaves the cluster is read again once it has left.
    fn needs_references_elsewhere(&self) -> bool {
        self.needs_references() || (self.archived && !self.releases)
    }

    /// Whether it has released what it holds, or will. Who left the cluster for SQL goes on holding what its fields
    /// name, and nothing else.
    fn lets_go(&self) -> bool {
        if self.archived { self.releases } else { self.leaving }
    }

    fn names(&self, place: &FullName) -> bool {
        self.names.iter().any(|(_, named)| named == place)
    }

    /// `cluster default/a`.
    fn shown(&self) -> String {
        let kind = self.kind.singular;
        let archived = if self.archived { "archived " } else { "" };
        match self.namespace.as_str() {
            "" => format!("{archived}{kind} {}", self.name),
            namespace => format!("{archived}{kind} {namespace}/{}", self.name),
        }
    }
}

/// Both sides, as they were read.
#[derive(Debug, Default)]
pub(super) struct Everything {
    pub(super) kinds: Vec<&'static Kind>,
    /// By uid.
    pub(super) objects: BTreeMap<String, Known>,
    /// Rows of references whose objects are neither live nor archived: kind, uid, and the reference.
    pub(super) orphaned_references: BTreeSet<(&'static str, String, String)>,
    /// The same of requested deletions.
    pub(super) orphaned_tombstones: BTreeSet<(&'static str, String)>,
    /// Group and kind of those that the cluster does not serve: which objects of theirs there are is not known.
    pub(super) unserved: BTreeSet<(&'static str, &'static str)>,
    /// What objects of other services have of our holders, as far as they are there: those that fields name, and those
    /// that have any.
    pub(super) elsewhere: BTreeMap<FullName, ReferencedState>,
    /// Those that their services do not have.
    pub(super) absent: BTreeSet<FullName>,
    /// Why other services have not said so.
    pub(super) unanswered: BTreeSet<String>,
    /// Of which kinds of other services not all objects were read, and why.
    pub(super) unlisted: BTreeSet<String>,
}

impl Everything {
    /// Whether somebody places references of declared fields.
    pub(super) fn is_placed(&self) -> bool {
        self.objects.values().any(|object| object.has_deletion_finalizer)
    }

    /// The kind of the holder, where it is one of ours.
    pub(super) fn kind_of(&self, name: &ReferenceName) -> Option<&'static Kind> {
        let mut kinds = self.kinds.iter().copied();
        kinds.find(|kind| kind.group == name.group() && kind.name.eq_ignore_ascii_case(name.kind()))
    }

    /// The objects of other services that need references.
    pub(super) fn named_elsewhere(&self) -> BTreeSet<FullName> {
        let holders = self.objects.values();
        let holders = holders.filter(|holder| holder.needs_references_elsewhere());
        let places = holders.flat_map(|holder| holder.names.iter().map(|(_, place)| place));
        places.filter(|place| !self.is_own(place)).cloned().collect()
    }

    fn restored(&self) -> Restored<'_> {
        let mut restored = Restored::new();
        for (uid, known) in &self.objects {
            if let Some(former) = &known.restored_from {
                restored.entry(former).or_default().push((uid, known));
            }
        }
        restored
    }

    fn is_own(&self, place: &FullName) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| kind.group == place.0 && kind.name == place.1)
    }

    /// `Network default/a`, and of what service where it is another one.
    fn shown(&self, place: &FullName) -> String {
        let (group, kind, namespace, name) = place;
        let name = match namespace.as_str() {
            "" => format!("{kind} {name}"),
            namespace => format!("{kind} {namespace}/{name}"),
        };
        match self.is_own(place) {
            true => name,
            false => format!("{name} of {group}"),
        }
    }

    /// Those of holders that are of none of the kinds.
    pub(super) fn foreign(&self) -> Vec<(ReferenceName, ReferencedObject)> {
        let referenced_objects = self.objects.values().flat_map(|object| {
            let foreign = object.references.iter().filter(|name| self.kind_of(name).is_none());
            foreign.map(move |name| {
                let referenced = ReferencedObject {
                    kind: object.kind.name,
                    group: object.kind.group,
                    namespace: object.namespace.clone(),
                    name: object.name.clone(),
                };
                (name.clone(), referenced)
            })
        });
        referenced_objects.collect()
    }
}

/// Everything that differs, in order.
pub(super) fn compare(all: &Everything) -> Vec<Difference> {
    let by_place: BTreeMap<FullName, &String> = all.objects.iter().map(|(uid, known)| (known.place(), uid)).collect();
    let is_placed = all.is_placed();
    let mut found = BTreeSet::new();
    for (uid, object) in &all.objects {
        if is_placed {
            found.extend(missing(all, &by_place, uid, object));
            found.extend(dangling(all, &by_place, uid, object));
        }
        found.extend(
            object
                .references
                .iter()
                .filter_map(|name| unfounded(all, uid, object, name)),
        );
    }
    let restored = all.restored();
    for (place, referenced) in &all.elsewhere {
        let names = referenced.references.iter();
        found.extend(names.filter_map(|name| left_elsewhere(all, &restored, place, referenced, name)));
    }
    let orphaned = |kind: &'static str, uid: &String, class, detail| Difference {
        kind,
        namespace: String::new(),
        name: String::new(),
        uid: uid.clone(),
        class,
        detail,
        service: None,
        versions: (0, 0),
    };
    found.extend(all.orphaned_references.iter().map(|(kind, uid, name)| {
        let detail = format!("kindex_reference has {name} on it, and it is gone");
        orphaned(kind, uid, Class::OrphanedReference, detail)
    }));
    found.extend(all.orphaned_tombstones.iter().map(|(kind, uid)| {
        let detail = "kindex_tombstone says that its deletion waits, and it is gone".to_owned();
        orphaned(kind, uid, Class::OrphanedTombstone, detail)
    }));
    found.into_iter().collect()
}

/// What a holder names that lacks its reference. An archived one needs it at other services alone.
fn missing(all: &Everything, by_place: &BTreeMap<FullName, &String>, uid: &str, holder: &Known) -> Vec<Difference> {
    let name = ReferenceName::new(holder.kind.name, holder.kind.group, uid).ok();
    let Some(name) = name.filter(|_| holder.needs_references_elsewhere()) else {
        return Vec::new();
    };
    let lacking = holder.names.iter().filter_map(|(reference, place)| {
        let detail = || format!("{} names it in {reference}, and it lacks {name}", holder.shown());
        if let Some(referenced) = all.elsewhere.get(place) {
            let excused = referenced.leaving || referenced.references.contains(&name);
            let class = Class::ReferenceMissing;
            return (!excused).then(|| difference_elsewhere(place, referenced, holder.version, class, detail()));
        }
        if !holder.needs_references() {
            return None;
        }
        let target_uid = *by_place.get(place)?;
        let target = &all.objects[target_uid];
        let excused = target.leaving || target_uid == uid || target.references.contains(&name);
        (!excused).then(|| difference(target, target_uid, holder.version, Class::ReferenceMissing, detail()))
    });
    lacking.collect()
}

/// What a live holder names that does not exist. No deletion follows from that, and no reference can be placed.
fn dangling(all: &Everything, by_place: &BTreeMap<FullName, &String>, uid: &str, holder: &Known) -> Vec<Difference> {
    let named = holder.names.iter().filter(|_| holder.needs_references());
    let absent = named.filter(|(_, place)| match all.is_own(place) {
        true => !by_place.contains_key(place) && !all.unserved.contains(&(place.0, place.1)),
        false => all.absent.contains(place),
    });
    let found = absent.map(|(reference, place)| {
        let detail = format!("it names {} in {reference}, which does not exist", all.shown(place));
        difference(holder, uid, 0, Class::Dangling, detail)
    });
    found.collect()
}

fn difference_elsewhere(
    place: &FullName,
    referenced: &ReferencedState,
    holder: u64,
    class: Class,
    detail: String,
) -> Difference {
    let (group, kind, namespace, name) = place.clone();
    Difference {
        kind,
        namespace,
        name,
        uid: referenced.uid.clone(),
        class,
        detail,
        service: Some(group),
        versions: (0, holder),
    }
}

/// A reference on an object, of a holder of these kinds, that nothing stands behind.
fn unfounded(all: &Everything, uid: &str, object: &Known, name: &ReferenceName) -> Option<Difference> {
    let (class, holder, detail) = baseless(all, &object.place(), name)?;
    Some(difference(object, uid, holder, class, detail))
}

/// The same on an object of another service, which nobody releases there.
fn left_elsewhere(
    all: &Everything,
    restored: &Restored<'_>,
    place: &FullName,
    referenced: &ReferencedState,
    name: &ReferenceName,
) -> Option<Difference> {
    let (class, holder, detail) = baseless(all, place, name)?;
    let kind = all.kind_of(name)?;
    let is_unknown = all.unserved.contains(&(kind.group, kind.name)) || stands_in(restored, place, referenced, name);
    if class == Class::HolderMissing && is_unknown {
        return None;
    }
    Some(difference_elsewhere(place, referenced, holder, class, detail))
}

/// Whether the reference of an archived holder stands in for that of the object which was restored from it: that one
/// names the same object, and has not placed its own.
fn stands_in(restored: &Restored<'_>, place: &FullName, referenced: &ReferencedState, name: &ReferenceName) -> bool {
    let mut restored = restored.get(name.uid()).into_iter().flatten();
    restored.any(|(uid, holder)| {
        let own = ReferenceName::new(holder.kind.name, holder.kind.group, uid);
        let has_reference = own.is_ok_and(|own| referenced.references.contains(&own));
        holder.names(place) && !has_reference
    })
}

/// Why nothing stands behind the reference of a holder of these kinds on the object at a place, and the version of the
/// holder. A kind without a declared field for such objects may hold them by its controller's own will, and what is
/// being deleted has released them, or will.
fn baseless(all: &Everything, place: &FullName, name: &ReferenceName) -> Option<(Class, u64, String)> {
    let kind = all.kind_of(name)?;
    let Some(holder) = all.objects.get(name.uid()) else {
        let detail = format!("it has {name}, and there is no such {}", kind.singular);
        return Some((Class::HolderMissing, 0, detail));
    };
    let mut references = kind.references.iter().filter(|reference| reference.waits());
    let declared = references.any(|reference| reference.target(place.0, place.1).is_some());
    if !declared || holder.names(place) || holder.lets_go() {
        return None;
    }
    let others: Vec<_> = holder
        .names
        .iter()
        .map(|(_, (_, kind, _, name))| format!("{kind} {name}"))
        .collect();
    let instead = match others[..] {
        [] => "nothing".to_owned(),
        _ => others.join(", "),
    };
    let detail = format!("it has {name}, and {} names {instead}", holder.shown());
    Some((Class::HolderElsewhere, holder.version, detail))
}

fn difference(object: &Known, uid: &str, other: u64, class: Class, detail: String) -> Difference {
    Difference {
        kind: object.kind.name,
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        uid: uid.to_owned(),
        class,
        detail,
        service: None,
        versions: (object.version, other),
    }
}

#[cfg(test)]
mod tests;
