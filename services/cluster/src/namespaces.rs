//! Which namespaces exist, and which are being deleted: what every creation asks, kept in memory by the store's
//! observer.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use kindex_kube_api::meta;
use serde_json::Value;

/// The resource name of namespaces in the store.
pub(crate) const STORAGE: &str = "namespaces";

/// Whether a namespace takes new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Active,
    Terminating,
}

/// The namespaces of this moment.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    known: RwLock<BTreeMap<String, Phase>>,
}

impl Namespaces {
    /// The phase of a namespace, if it exists.
    pub(crate) fn phase(&self, name: &str) -> Option<Phase> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .copied()
    }

    /// Notes a namespace as it was written.
    pub(crate) fn note(&self, namespace: &Value) {
        let phase = if meta::is_deleting(namespace) {
            Phase::Terminating
        } else {
            Phase::Active
        };
        let name = meta::name(namespace).to_owned();
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name, phase);
    }

    /// Forgets a namespace that is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
