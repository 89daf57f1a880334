//! The simulated services: whose each kind is, which fields name what, and what a play sets before it begins.

use std::collections::BTreeSet;

use kindex_model::reference::OnDelete;

use super::Stored;
use crate::graph::Declared;
use crate::object::{Edge, Key, KindName};

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
/// That of all kinds, or those of three services.
pub(super) const GROUPS: [&str; 4] = [
    "one.example.com",
    "identity.example.com",
    "compute.example.com",
    "region.example.com",
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

/// How the services of a play are set.
#[derive(Debug)]
pub(in super::super) struct Services {
    /// Whether each kind is of a service of its own, or all are of one.
    divided: bool,
    /// Whether the ingester archives what is in use, with the references on it as rows, and only what owns nothing in
    /// the cluster; else what is in use stays there until it is not.
    pub(in super::super) takes_references: bool,
    /// The kinds whose objects are only in SQL.
    pub(in super::super) sql_only_kinds: BTreeSet<&'static str>,
}

impl Services {
    pub(super) fn new(divided: bool) -> Self {
        Self {
            divided,
            takes_references: false,
            sql_only_kinds: BTreeSet::new(),
        }
    }

    pub(in super::super) fn kind(&self, kind: &str) -> KindName {
        let group = match (self.divided, kind) {
            (false, _) => GROUPS[0],
            (true, "Project" | "Budget") => GROUPS[1],
            (true, "Cluster" | "Server") => GROUPS[2],
            (true, _) => GROUPS[3],
        };
        let kind = KINDS.into_iter().find(|known| *known == kind).expect("a kind");
        KindName::new(group, kind)
    }

    pub(in super::super) fn key(&self, kind: &str, name: &str) -> Key {
        Key {
            kind: self.kind(kind),
            namespace: "default".into(),
            name: name.into(),
        }
    }

    pub(in super::super) fn declared(&self) -> Vec<Declared> {
        let declared = FIELDS.iter().map(|field| Declared {
            holder: self.kind(field.holder),
            target: self.kind(field.target),
            owned: field.owned,
        });
        declared.collect()
    }

    pub(in super::super) fn edges(&self, object: &Stored) -> Vec<Edge> {
        let named = fields(&object.key.kind.kind).filter_map(|field| {
            let name = object.named.get(field.name)?;
            Some(Edge {
                reference: field.name,
                target: self.key(field.target, name),
                owned: field.owned,
                on_delete: field.on_delete,
            })
        });
        named.collect()
    }

    /// Whether the objects of a kind of the graph are only in SQL.
    pub(in super::super) fn is_sql_only(&self, kind: &KindName) -> bool {
        self.sql_only_kinds.contains(&*kind.kind)
    }
}
