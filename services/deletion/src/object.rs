//! One object as far as its deletion is concerned: where it stands, what holds it and what its fields name. Read from
//! its metadata; which of its finalizers are references is decided here alone.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, ptr};

use jiff::Timestamp;
use kindex_model::deletion::{Annotations, Phase, PhaseCondition};
use kindex_model::kind::Platform;
use kindex_model::object::{Metadata, ResourceVersion};
use kindex_model::reference::OnDelete;
use kindex_model::reference_name::ReferenceName;
use kindex_model::releases::Releases;

/// A kind, of this service or another one. Its words are borrowed from the registry where they are there: each of very
/// many keys has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindName {
    /// Its API group.
    pub group: Cow<'static, str>,
    /// `Network`.
    pub kind: Cow<'static, str>,
}

impl KindName {
    /// A kind of that group.
    pub fn new(group: impl Into<Cow<'static, str>>, kind: impl Into<Cow<'static, str>>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }
}

/// By group and kind. Nearly all are the registry's own texts: one text is not compared with itself.
impl Ord for KindName {
    fn cmp(&self, other: &Self) -> Ordering {
        let compare = |a: &str, b: &str| match ptr::eq(a, b) {
            true => Ordering::Equal,
            false => a.cmp(b),
        };
        compare(&self.group, &other.group).then_with(|| compare(&self.kind, &other.kind))
    }
}

impl PartialOrd for KindName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind.to_ascii_lowercase(), self.group)
    }
}

/// Where an object is. Another one may take its place once it is gone. Clones share their texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its kind.
    pub kind: KindName,
    /// Empty for cluster-wide kinds.
    pub namespace: Arc<str>,
    /// Name within the namespace.
    pub name: Arc<str>,
}

/// `network.region.example.com default/a`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// A field that names an object which has to outlive this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Name of the reference in crds.toml.
    pub reference: &'static str,
    /// The object that the field names.
    pub target: Key,
    /// Whether that object owns this one.
    pub owned: bool,
    /// What its deletion means for this one; never [`OnDelete::Orphan`].
    pub on_delete: OnDelete,
}

impl Edge {
    /// Whether this object is deleted as soon as the target is.
    pub fn cascades(&self) -> bool {
        self.on_delete == OnDelete::Cascade && !self.owned
    }
}

/// On which way an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionState {
    /// On none.
    Live,
    /// The Deleting annotation asks for its deletion.
    Requested,
    /// It is deleted: it has a deletion timestamp, and does not leave for the archive.
    Deleting,
    /// It leaves etcd for the archive. It has a deletion timestamp too, but for its users it stays.
    Evicting,
}

/// What an object says of references that go from it otherwise than by a step of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Those that somebody takes off by hand, and names.
    named: BTreeSet<String>,
    /// The latest that the API has released.
    by_api: Releases,
    /// The same as another service says it of its object. Of its versions, nothing is known here but this text.
    elsewhere: Releases,
    /// Whether its references are rows of another service: these go by the API alone, which does not record that.
    in_rows: bool,
}

impl Released {
    /// What another service says of its object: the latest releases, and whether the references are rows.
    pub fn elsewhere<'a>(releases: impl IntoIterator<Item = &'a str>, in_rows: bool) -> Self {
        Self {
            elsewhere: Releases::of(releases),
            in_rows,
            ..Self::default()
        }
    }

    /// What an object of ours says in its annotations.
    pub fn read(metadata: &Metadata, recorded: &Annotations) -> Self {
        let text = |annotation: &str| metadata.annotations.get(annotation);
        let named = text(&recorded.release).into_iter().flat_map(|names| names.split(','));
        let by_api = text(&recorded.released).map(|record| Releases::read(record));
        Self {
            named: named.map(ToOwned::to_owned).collect(),
            by_api: by_api.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Whether somebody names any reference, to take it off by hand.
    pub fn names_any(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether somebody names the reference, to take it off by hand.
    pub fn names(&self, name: &ReferenceName) -> bool {
        self.names_any() && self.named.contains(name.as_str())
    }

    /// Whether the API has released a reference that the object had in this version, maybe in a later one.
    pub fn reports_release(&self, name: &ReferenceName, before: ResourceVersion) -> bool {
        self.by_api.was_released(name, before)
    }

    /// Whether the API of another service has released a reference since that service said this of its object.
    pub fn reports_release_since(&self, before: &Self, name: &ReferenceName) -> bool {
        self.in_rows || before.in_rows || self.elsewhere.was_released_since(&before.elsewhere, name)
    }
}

/// The names of the finalizers and annotations of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The finalizer by which an object waits for its phases.
    pub finalizer: String,
    /// The annotations by which a deletion is recorded.
    pub recorded: Annotations,
    /// The ingester's finalizer, which goes last of all.
    pub ingester: String,
    /// Annotation that asks for deletion when `"true"`.
    pub deleting: String,
    /// Annotation of what may leave for the archive when `"true"`.
    pub immutable: String,
}

impl Names {
    /// Those of a platform.
    pub fn of(platform: &Platform) -> Self {
        Self {
            ingester: platform.finalizer.to_owned(),
            deleting: platform.deleting.to_owned(),
            immutable: platform.immutable.to_owned(),
            ..Self::of_service(platform.group)
        }
    }

    /// Those of another service, as far as they follow from its group.
    pub fn of_service(group: &str) -> Self {
        Self {
            finalizer: format!("{group}/deletion"),
            recorded: Annotations::of(group),
            ingester: String::new(),
            deleting: String::new(),
            immutable: String::new(),
        }
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it is.
    pub key: Key,
    /// Who it is.
    pub uid: String,
    /// The version in which it was seen.
    pub version: ResourceVersion,
    /// On which way it is.
    pub state: DeletionState,
    /// Whether the Deleting annotation asks for its deletion.
    pub requested: bool,
    /// Whether it may leave for the archive.
    pub immutable: bool,
    /// All of its finalizers, in its order.
    pub finalizers: Vec<String>,
    /// Whether [`Names::finalizer`] is among them.
    pub has_deletion_finalizer: bool,
    /// Those of them that are references.
    pub references: BTreeSet<ReferenceName>,
    /// Those of other controllers, which clean up before they remove them.
    pub others: BTreeSet<String>,
    /// The phase that is recorded.
    pub phase: Option<Phase>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// The phases up to this one.
    pub phases: Vec<PhaseCondition>,
    /// What it says of references that were released.
    pub released: Released,
    /// Whether a condition of it says that it cannot hold what it names.
    pub refused: bool,
    /// The objects that its fields name.
    pub edges: Vec<Edge>,
}

impl Object {
    /// Reads an object's metadata; `immutable` where its kind is declared so.
    pub fn read(kind: KindName, metadata: &Metadata, names: &Names, immutable: bool, edges: Vec<Edge>) -> Self {
        let says = |annotation: &str| {
            metadata
                .annotations
                .get(annotation)
                .is_some_and(|value| value == "true")
        };
        let phase = metadata.annotations.get(&names.recorded.phase);
        let phase = phase.and_then(|phase| phase.parse().ok());
        let immutable = immutable || says(&names.immutable);
        let mut object = Self {
            key: Key {
                kind,
                namespace: metadata.namespace.as_str().into(),
                name: metadata.name.as_str().into(),
            },
            uid: metadata.uid.to_string(),
            version: metadata.resource_version,
            state: deletion_state(
                metadata.deletion_timestamp.is_some(),
                says(&names.deleting),
                immutable,
                phase,
            ),
            requested: says(&names.deleting),
            immutable,
            finalizers: metadata.finalizers.clone(),
            has_deletion_finalizer: false,
            references: BTreeSet::new(),
            others: BTreeSet::new(),
            phase,
            since: metadata
                .annotations
                .get(&names.recorded.since)
                .and_then(|since| since.parse().ok()),
            phases: names.recorded.phases_in(&metadata.annotations),
            released: Released::read(metadata, &names.recorded),
            refused: false,
            edges,
        };
        for finalizer in &metadata.finalizers {
            if *finalizer == names.finalizer {
                object.has_deletion_finalizer = true;
            } else if let Some(name) = ReferenceName::of_finalizer(finalizer) {
                object.references.insert(name);
            } else if *finalizer != names.ingester {
                object.others.insert(finalizer.clone());
            }
        }
        object
    }

    /// The name by which it holds others; `None` where its kind or uid makes no reference.
    pub fn reference_name(&self) -> Option<ReferenceName> {
        ReferenceName::new(&self.key.kind.kind, &self.key.kind.group, &self.uid).ok()
    }

    /// Whether it is leaving the cluster, so that no reference can be placed on it.
    pub fn is_leaving(&self) -> bool {
        matches!(self.state, DeletionState::Deleting | DeletionState::Evicting)
    }

    /// Whether its deletion is through but for the ingester: it has released what it held, and nobody releases for it
    /// any more.
    pub fn is_freed(&self) -> bool {
        self.state == DeletionState::Deleting
            && !self.has_deletion_finalizer
            && self.references.is_empty()
            && self.others.is_empty()
    }
}

/// The ingester deletes what is immutable from etcd, once it is archived: such a deletion is one only where the
/// Deleting annotation asks for it, or a phase of it is recorded.
fn deletion_state(terminating: bool, requested: bool, immutable: bool, phase: Option<Phase>) -> DeletionState {
    match (terminating, requested) {
        (false, false) => DeletionState::Live,
        (false, true) => DeletionState::Requested,
        (true, true) => DeletionState::Deleting,
        (true, false) if immutable && phase.is_none() => DeletionState::Evicting,
        (true, false) => DeletionState::Deleting,
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Object as Text;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_eviction_is_no_deletion_unless_somebody_asked_for_one() {
        assert_eq!(deletion_state(true, false, true, None), DeletionState::Evicting);
        assert_eq!(deletion_state(true, true, true, None), DeletionState::Deleting);
        assert_eq!(deletion_state(true, false, false, None), DeletionState::Deleting);
        assert_eq!(deletion_state(false, true, true, None), DeletionState::Requested);
        assert_eq!(deletion_state(false, false, true, None), DeletionState::Live);
    }

    #[test]
    fn a_release_is_told_by_its_name_or_by_the_version_that_it_was_written_in() {
        let name = ReferenceName::new("Cluster", "x.example.com", "u").expect("a name");
        let other = ReferenceName::new("Cluster", "x.example.com", "v").expect("a name");
        let recorded = Annotations::of("x.example.com");
        let read = |annotation: &str, value: &str| {
            let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "9", "annotations": {annotation: value}});
            let text = json!({"metadata": metadata}).to_string();
            let object = Text::parse_str(&text).expect("an object");
            Released::read(&object.metadata, &recorded)
        };
        let named = read(&recorded.release, &format!("x,{name}"));
        assert!(named.names(&name) && !named.names(&other) && !named.reports_release(&name, ResourceVersion(1)));
        let by_api = read(&recorded.released, &format!("cluster.x.example.com/w@8,{name}@7"));
        for (name, before, says) in [
            (&name, 6, true),
            (&name, 7, true),
            (&name, 8, false),
            (&other, 6, false),
        ] {
            assert_eq!(
                by_api.reports_release(name, ResourceVersion(before)),
                says,
                "{name} {before}"
            );
            assert!(!by_api.names(name), "{name}");
        }
        for unclear in ["", "x", "x@", "@7", "x@y"] {
            assert!(
                !read(&recorded.released, unclear).reports_release(&name, ResourceVersion(1)),
                "{unclear}"
            );
        }
    }

    #[test]
    fn what_becomes_immutable_while_it_is_deleted_is_deleted_all_the_same() {
        assert_eq!(
            deletion_state(true, false, true, Some(Phase::Deleting)),
            DeletionState::Deleting
        );
    }
}
