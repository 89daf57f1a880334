//! What makes a `kindex` of somebody's kinds: a registry and sample manifests.

use kindex_model::kind::Registry;

/// A manifest's file name and text.
pub type Sample = (&'static str, &'static str);

/// What makes a `kindex` of somebody's kinds.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// The kinds.
    pub registry: Registry,
    /// Manifests that `kindex up --samples` applies, in their order.
    pub samples: &'static [Sample],
}
