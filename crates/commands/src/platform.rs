//! What makes a `kindex` of somebody's kinds: a registry, sample manifests, and cleanups outside of the
//! cluster.

use kindex_deletion::cleanup::Cleanups;
use kindex_model::kind::Registry;

/// A manifest's file name and text.
pub type Sample = (&'static str, &'static str);

/// What makes a `kindex` of somebody's kinds.
#[derive(Clone, Debug)]
pub struct Platform {
    /// The kinds.
    pub registry: Registry,
    /// Manifests that `kindex up --samples` applies, in their order.
    pub samples: &'static [Sample],
    /// What removes what objects have outside of the cluster when they are deleted.
    pub cleanups: Cleanups,
}
