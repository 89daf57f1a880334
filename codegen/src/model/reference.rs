//! References between kinds, the edges of the declared graph, and the other services whose kinds they may name. What
//! follows from several of them together is in `graph`.

use std::fmt;

use super::{ColumnName, GroupName, KindName, Path, ServiceName, default_plural};

/// Another service with kinds of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What references call it: `region`.
    pub name: ServiceName,
    /// API group of its kinds, which is no group of this platform.
    pub group: GroupName,
    /// Its kinds that references may name, each once.
    pub kinds: Vec<ServiceKind>,
    /// Those of them whose objects have no namespace.
    pub cluster_scoped: Vec<KindName>,
    /// Kinds of this platform that objects of its kinds refer to, each once.
    pub refers_to: Vec<KindName>,
    /// URL of its API.
    pub address: String,
    /// File with the certificates that its certificate may be from.
    pub ca_file: Option<String>,
    /// File with the token that it is asked with.
    pub token_file: Option<String>,
}

impl Service {
    /// Its kinds with the plurals that nobody can guess from them.
    pub fn odd_plurals(&self) -> impl Iterator<Item = (&str, &str)> {
        let kinds = self.kinds.iter().map(|kind| (kind.name.as_str(), kind.plural.as_str()));
        kinds.filter(|(kind, plural)| *plural != default_plural(kind))
    }
}

/// A kind of another service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceKind {
    /// `CloudIdentity`.
    pub name: KindName,
    /// `cloudidentities`; unique in its service.
    pub plural: String,
}

/// A field that names an object of another kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Name of the reference: `pipeline`.
    pub name: ColumnName,
    /// What is named.
    pub target: ReferenceTarget,
    /// Where the name is.
    pub holder: Holder,
    /// Whether the named object owns the holder. Then `on_delete` is [`OnDelete::Cascade`].
    pub owned: bool,
    /// What the deletion of the named object means for the holder.
    pub on_delete: OnDelete,
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// Objects of one kind.
    Kind(TargetKind),
    /// Objects of the kind that a column holds.
    KindIn {
        /// The column, of text.
        column: ColumnName,
        /// The kinds that it may name, never empty, no two of one name.
        kinds: Vec<TargetKind>,
        /// Whether the declaration lists them; otherwise they are all but the holder's.
        listed: bool,
    },
}

impl ReferenceTarget {
    /// All kinds that may be named.
    pub fn kinds(&self) -> &[TargetKind] {
        match self {
            Self::Kind(kind) => std::slice::from_ref(kind),
            Self::KindIn { kinds, .. } => kinds,
        }
    }
}

/// A kind that references name; displayed as they write it: `PipelineRun`, `region.Network`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetKind {
    /// The service that it is of; `None`: this platform.
    pub service: Option<ServiceName>,
    /// Its name.
    pub kind: KindName,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service {
            Some(service) => write!(f, "{service}.{}", self.kind),
            None => write!(f, "{}", self.kind),
        }
    }
}

/// Where an object has the name of what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// In a ResourceIdentifier column: a [`super::Group`] of the kind's columns.
    Column(ColumnName),
    /// In a field without such a column.
    Path {
        /// The field.
        path: Path,
        /// What it holds.
        named: Named,
    },
}

/// How a field names an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Named {
    /// By a ResourceIdentifier: namespace and name.
    Identifier,
    /// By a string: the name, in the namespace of the object that has the field.
    Name,
}

/// What happens to the holder when the named object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnDelete {
    /// The holder is deleted first.
    Cascade,
    /// The deletion waits until no holder is left.
    Block,
    /// The holder stays and its reference dangles.
    Orphan,
}

impl OnDelete {
    /// All choices, as documented.
    pub const ALL: [Self; 3] = [Self::Cascade, Self::Block, Self::Orphan];

    /// The word in `crds.toml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cascade => "cascade",
            Self::Block => "block",
            Self::Orphan => "orphan",
        }
    }
}
