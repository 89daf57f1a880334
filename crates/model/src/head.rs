//! The parts of an object's metadata by which its way out of the cluster is decided.

use jiff::Timestamp;

use crate::kind::{Kind, Platform};
use crate::object::{Object, ResourceVersion};
use crate::reference_name::ReferenceName;

/// The parts of a present object that decisions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// `metadata.resourceVersion`.
    pub version: ResourceVersion,
    /// `metadata.deletionTimestamp`.
    pub deletion_timestamp: Option<Timestamp>,
    /// Whether `metadata.finalizers` holds ours.
    pub has_finalizer: bool,
    /// Whether it holds finalizers of others.
    pub held: bool,
    /// Whether `metadata.finalizers` holds references.
    pub has_references: bool,
    /// Whether it holds the finalizer of Kindex's deletion.
    pub has_deletion_finalizer: bool,
    /// Whether the Deleting annotation is `"true"`.
    pub deleting: bool,
    /// Whether the Immutable annotation is `"true"`, or the kind is declared immutable.
    pub immutable: bool,
}

impl Head {
    /// Reads an object's metadata.
    pub fn of(object: &Object, kind: &Kind, platform: &Platform) -> Self {
        let metadata = &object.metadata;
        let says = |annotation: &str| metadata.annotations.get(annotation).is_some_and(|v| v == "true");
        Self {
            version: metadata.resource_version,
            deletion_timestamp: metadata.deletion_timestamp,
            has_finalizer: metadata.finalizers.iter().any(|f| f == platform.finalizer),
            held: metadata
                .finalizers
                .iter()
                .any(|f| f != platform.finalizer && !is_graph_finalizer(f, platform)),
            has_references: metadata.finalizers.iter().any(|f| is_reference(f)),
            has_deletion_finalizer: metadata.finalizers.iter().any(|f| is_deletion_finalizer(f, platform)),
            deleting: says(platform.deleting),
            immutable: kind.immutable || says(platform.immutable),
        }
    }

    /// Whether the object is leaving the cluster.
    pub fn is_leaving(&self) -> bool {
        self.deletion_timestamp.is_some() || self.deleting
    }

    /// Whether others use it, or Kindex's deletion comes before it goes.
    pub fn in_use(&self) -> bool {
        self.has_references || self.has_deletion_finalizer
    }

    /// Whether nothing takes it out of the cluster: nobody has deleted it, and it is not final.
    pub fn is_staying(&self) -> bool {
        !self.is_leaving() && !self.immutable
    }
}

/// Whether a finalizer is a reference, or that of Kindex's deletion. Both go before the object is released, however
/// long that takes, or leave with it into SQL.
pub fn is_graph_finalizer(finalizer: &str, platform: &Platform) -> bool {
    is_deletion_finalizer(finalizer, platform) || is_reference(finalizer)
}

/// Whether a finalizer is that of Kindex's deletion.
pub fn is_deletion_finalizer(finalizer: &str, platform: &Platform) -> bool {
    finalizer.strip_suffix("/deletion") == Some(platform.group)
}

fn is_reference(finalizer: &str) -> bool {
    ReferenceName::of_finalizer(finalizer).is_some()
}
