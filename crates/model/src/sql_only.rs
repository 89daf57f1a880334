//! The kinds of a registry by where their objects are: in a cluster, or only in SQL.

use crate::kind::{Kind, Registry};

impl Registry {
    /// The kinds whose objects a cluster has.
    pub fn cluster_kinds(&self) -> impl Iterator<Item = &'static Kind> + use<> {
        self.kinds.iter().copied().filter(|kind| kind.cluster)
    }

    /// The SQL-only kinds.
    pub fn sql_only_kinds(&self) -> impl Iterator<Item = &'static Kind> + use<> {
        self.kinds.iter().copied().filter(|kind| !kind.cluster)
    }
}
