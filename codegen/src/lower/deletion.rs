//! What the references of all kinds mean together: that no deletion waits for itself, and that each names an object
//! in full. The paths are found in `graph`.

use crate::diag::{Collector, messages as errors};
use crate::graph::{Edge, Graph};
use crate::model::{Holder, Kind, Named, Reference, Scope, Service, TargetKind};
use crate::source::Span;
use crate::spec::{ReferenceSpec, Spec};

/// Refuses what would wait for ever. A kind may refer to itself: its objects can form trees.
pub(super) fn refuse_waits(kinds: &[Kind], services: &[Service], spec: &Spec, found: &mut Collector) {
    let graph = Graph::of(kinds, services);
    refuse_endless(&graph, |edge| place_of(spec, edge), found);
}

/// Refuses what would wait for ever in `graph`; `place` knows where an edge is declared.
pub(crate) fn refuse_endless(graph: &Graph, place: impl Fn(&Edge) -> Option<Span>, found: &mut Collector) {
    let placed = |edges: &[usize]| -> Option<Vec<(Span, &Edge)>> {
        let edges = edges.iter().map(|edge| &graph.edges[*edge]);
        edges.map(|edge| Some((place(edge)?, edge))).collect()
    };
    for cycle in graph.cycles() {
        if let Some(edges) = placed(&cycle) {
            found.push(errors::reference_cycle(graph, &edges));
        }
    }
    for deadlock in graph.deadlocks() {
        let owned = placed(&[deadlock.owned]);
        if let (Some(owned), Some(path)) = (owned, placed(&deadlock.path)) {
            found.push(errors::owned_by_what_waits(graph, owned[0], &path));
        }
    }
}

/// Where the declaration says what an edge leads to.
pub(crate) fn place_of(spec: &Spec, edge: &Edge) -> Option<Span> {
    let kind = spec.kinds.iter().find(|kind| kind.name.value == edge.kind)?;
    let mut references = kind.references.iter();
    let reference = references.find(|reference| reference.name.value == edge.reference)?;
    let among = reference.kinds.iter().flat_map(|kinds| &kinds.value);
    let listed = among.into_iter().find(|text| text.value == edge.written);
    Some(listed.unwrap_or_else(|| reference.target()).span)
}

/// Refuses references over which Kubernetes has rules of scope: what is cluster-wide has no namespace of its own, and
/// no owner in one.
pub(super) fn refuse_scopes(kinds: &[Kind], spec: &Spec, found: &mut Collector) {
    for kind in kinds.iter().filter(|kind| kind.scope == Scope::Cluster) {
        for reference in &kind.references {
            let in_namespaces = |target: &&TargetKind| {
                let named = kinds.iter().find(|other| other.name == target.kind);
                target.service.is_none() && named.is_some_and(|named| named.scope == Scope::Namespaced)
            };
            let mut targets = reference.target.kinds().iter();
            let Some(target) = targets.find(in_namespaces) else {
                continue;
            };
            let Some(written) = written(spec, kind, reference) else {
                continue;
            };
            let by_name = matches!(&reference.holder, Holder::Path { named: Named::Name, .. });
            if let (true, Some(path)) = (by_name, &written.path) {
                found.push(errors::name_without_a_namespace(
                    path,
                    kind.name.as_str(),
                    &target.to_string(),
                ));
            }
            if let (true, Some(owned)) = (reference.owned, written.owned) {
                found.push(errors::owned_across_scopes(
                    owned.span,
                    kind.name.as_str(),
                    &target.to_string(),
                ));
            }
        }
    }
}

fn written<'s>(spec: &'s Spec, kind: &Kind, reference: &Reference) -> Option<&'s ReferenceSpec> {
    let kind = spec.kinds.iter().find(|entry| kind.name == *entry.name.value)?;
    let mut entries = kind.references.iter();
    entries.find(|entry| reference.name == *entry.name.value)
}
