//! The declared graph: which kinds refer to which, of one declaration or of several services together. Kinds are told
//! apart by group and name. Pure; knows no file and no position.
//!
//! An edge leads from the *holder*, whose objects have a field that names an object, to the *target*, the kind of that
//! object. Where `on_delete` is `cascade` or `block`, a target is deleted after its holders.

mod search;

mod layout;

mod dot;
mod svg;

pub use search::{Deadlock, Implied};

use std::collections::BTreeMap;

use crate::model::{Column, ColumnName, Holder, Kind, OnDelete, Reference, ReferenceTarget, Service};

/// What a declaration has of the graph.
#[derive(Debug, Clone, Copy)]
pub struct Part<'m> {
    /// Its kinds.
    pub kinds: &'m [Kind],
    /// The other services that it names.
    pub services: &'m [Service],
}

/// Kinds and the references between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// The kinds of the first part in its order, then those of the others, then those that are only named.
    pub kinds: Vec<Node>,
    /// Every target of every reference, in the order of the parts.
    pub edges: Vec<Edge>,
}

/// A kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The service that it is of; `None` for a kind of the first part.
    pub service: Option<String>,
    /// API group.
    pub group: String,
    /// `Network`.
    pub kind: String,
    /// Whether a part declares it. What the others refer to is not known.
    pub declared: bool,
}

/// A reference, or one of the kinds that it may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Index of the part that declares it.
    pub part: usize,
    /// Index of the kind that has the field.
    pub holder: usize,
    /// Index of the kind that is named.
    pub target: usize,
    /// The holder's name, as its part declares it.
    pub kind: String,
    /// Name of the reference.
    pub reference: String,
    /// The target, as the part of the holder writes it.
    pub written: String,
    /// Where a manifest of the holder shows the name: `spec.network`.
    pub field: String,
    /// The ResourceIdentifier column of the field.
    pub column: Option<String>,
    /// The column with the kind, where the reference may name several.
    pub kind_column: Option<String>,
    /// Whether the declaration lists the kinds of that column.
    pub listed: bool,
    /// Whether the target owns the holder.
    pub owned: bool,
    /// What the deletion of the target means for the holder.
    pub on_delete: OnDelete,
}

impl Edge {
    /// Whether the target is deleted after the holder.
    pub fn waits(&self) -> bool {
        self.on_delete != OnDelete::Orphan
    }

    /// Whether it leads from a kind to itself, whose objects form trees.
    pub const fn is_loop(&self) -> bool {
        self.holder == self.target
    }

    /// What the deletion of the target means for the holder, in one word.
    pub const fn effect(&self) -> &'static str {
        if self.owned { "owned" } else { self.on_delete.as_str() }
    }
}

impl Graph {
    /// The graph of one declaration.
    pub fn of(kinds: &[Kind], services: &[Service]) -> Self {
        Self::merged(&[Part { kinds, services }])
    }

    /// The graph of several declarations, seen from the first one: it says what the services are called.
    pub fn merged(parts: &[Part<'_>]) -> Self {
        let mut graph = Self::default();
        let names = service_names(parts);
        let mut known = BTreeMap::new();
        for part in parts {
            for kind in part.kinds {
                graph.add_kind((kind.group.as_str(), kind.name.as_str()), true, &names, &mut known);
            }
        }
        for service in parts.iter().flat_map(|part| part.services) {
            for kind in &service.kinds {
                graph.add_kind((service.group.as_str(), kind.name.as_str()), false, &names, &mut known);
            }
        }
        for (at, part) in parts.iter().enumerate() {
            for kind in part.kinds {
                for reference in &kind.references {
                    graph.add_edges((at, part), kind, reference, &known);
                }
            }
        }
        graph
    }

    /// What people call the kind: `Cluster`, `region.Network`.
    pub fn label(&self, kind: usize) -> String {
        let Node { service, kind, .. } = &self.kinds[kind];
        match service {
            Some(service) => format!("{service}.{kind}"),
            None => kind.clone(),
        }
    }

    /// The references of a kind: the edges of each together, in the order of their declaration.
    pub fn references(&self, holder: usize) -> Vec<&[Edge]> {
        let references = self
            .edges
            .chunk_by(|a, b| a.holder == b.holder && a.reference == b.reference);
        references.filter(|edges| edges[0].holder == holder).collect()
    }

    fn add_kind<'m>(
        &mut self,
        (group, kind): (&'m str, &'m str),
        declared: bool,
        names: &BTreeMap<&str, String>,
        known: &mut BTreeMap<(&'m str, &'m str), usize>,
    ) {
        known.entry((group, kind)).or_insert_with(|| {
            self.kinds.push(Node {
                service: names.get(group).cloned(),
                group: group.to_owned(),
                kind: kind.to_owned(),
                declared,
            });
            self.kinds.len() - 1
        });
    }

    fn add_edges(
        &mut self,
        (at, part): (usize, &Part<'_>),
        kind: &Kind,
        reference: &Reference,
        known: &BTreeMap<(&str, &str), usize>,
    ) {
        let group_of = |service: &str| {
            let mut services = part.services.iter();
            services
                .find(|found| found.name == *service)
                .map(|found| found.group.as_str())
        };
        let own = |name: &str| {
            part.kinds
                .iter()
                .find(|kind| kind.name == *name)
                .map(|kind| kind.group.as_str())
        };
        let (kind_column, listed) = match &reference.target {
            ReferenceTarget::Kind(_) => (None, false),
            ReferenceTarget::KindIn { column, listed, .. } => (Some(column.to_string()), *listed),
        };
        for target in reference.target.kinds() {
            let name = target.kind.as_str();
            let group = target
                .service
                .as_ref()
                .map_or_else(|| own(name), |service| group_of(service.as_str()));
            // A kind that could not be lowered was reported.
            let Some(index) = group.and_then(|group| known.get(&(group, name))) else {
                continue;
            };
            self.edges.push(Edge {
                part: at,
                holder: known[&(kind.group.as_str(), kind.name.as_str())],
                target: *index,
                kind: kind.name.to_string(),
                reference: reference.name.to_string(),
                written: target.to_string(),
                field: kind.holder_path(reference).join("."),
                column: column_of(kind, &reference.holder).map(ColumnName::to_string),
                kind_column: kind_column.clone(),
                listed,
                owned: reference.owned,
                on_delete: reference.on_delete,
            });
        }
    }
}

/// The column by which holders are found.
fn column_of<'k>(kind: &'k Kind, holder: &'k Holder) -> Option<&'k ColumnName> {
    match holder {
        Holder::Column(column) => Some(column),
        Holder::Path { path, .. } => {
            let is_its = |column: &&Column| column.path == *path;
            kind.columns.iter().find(is_its).map(|column| &column.name)
        }
    }
}

/// What the services of groups are called, those of the first part excepted.
fn service_names<'m>(parts: &[Part<'m>]) -> BTreeMap<&'m str, String> {
    let mut names = BTreeMap::new();
    for service in parts.iter().flat_map(|part| part.services) {
        let name = service.name.to_string();
        names.entry(service.group.as_str()).or_insert(name);
    }
    for kind in parts.iter().skip(1).flat_map(|part| part.kinds) {
        let group = kind.group.as_str();
        names.entry(group).or_insert_with(|| group.to_owned());
    }
    for kind in parts.iter().take(1).flat_map(|part| part.kinds) {
        names.remove(kind.group.as_str());
    }
    names
}

#[cfg(test)]
mod tests;
