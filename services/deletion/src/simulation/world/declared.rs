//! The kinds of the simulated services, and which fields of theirs name what.

use kindex_model::reference::OnDelete;

/// A reference of the declared graph.
pub(in super::super) struct Field {
    pub(in super::super) holder: &'static str,
    pub(in super::super) name: &'static str,
    pub(in super::super) target: &'static str,
    pub(in super::super) owned: bool,
    pub(in super::super) on_delete: OnDelete,
}

const fn cascade(holder: &'static str, name: &'static str, target: &'static str) -> Field {
    Field {
        holder,
        name,
        target,
        owned: false,
        on_delete: OnDelete::Cascade,
    }
}

const fn block(holder: &'static str, name: &'static str, target: &'static str) -> Field {
    Field {
        on_delete: OnDelete::Block,
        ..cascade(holder, name, target)
    }
}

const fn owned(holder: &'static str, name: &'static str, target: &'static str) -> Field {
    Field {
        owned: true,
        ..cascade(holder, name, target)
    }
}

pub(in super::super) const KINDS: [&str; 8] = [
    "Project", "Budget", "Identity", "Network", "Group", "Tree", "Cluster", "Server",
];
pub(in super::super) const FIELDS: [Field; 9] = [
    block("Budget", "project", "Project"),
    block("Budget", "cluster", "Cluster"),
    cascade("Identity", "project", "Project"),
    cascade("Network", "identity", "Identity"),
    cascade("Group", "identity", "Identity"),
    owned("Tree", "parent", "Tree"),
    cascade("Cluster", "network", "Network"),
    cascade("Cluster", "group", "Group"),
    owned("Server", "cluster", "Cluster"),
];

/// The fields of a kind.
pub(in super::super) fn fields(kind: &str) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(move |field| field.holder == kind)
}
