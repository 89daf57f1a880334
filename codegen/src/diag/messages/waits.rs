//! What follows from several references together, with the whole path and where each of its edges is declared:
//! deletions that would wait for ever, and references that others make needless.

use crate::diag::Diagnostic;
use crate::graph::{Edge, Graph};
use crate::source::Span;

/// An edge and where it is declared.
type Placed<'g> = (Span, &'g Edge);

/// `edges` lead from a kind back to it.
pub(crate) fn reference_cycle(graph: &Graph, edges: &[Placed<'_>]) -> Diagnostic {
    let (last, others) = edges.split_last().expect("a cycle has edges");
    let title = format!("reference cycle: {}", trail(graph, edges));
    let mut diagnostic = Diagnostic::at(last.0, title).label(format!("closes the cycle: {}", waits(graph, last.1)));
    for (span, edge) in others {
        diagnostic = diagnostic.related(*span, waits(graph, edge));
    }
    diagnostic.help("these kinds wait for each other's deletion; set on_delete = \"orphan\" on one of the references")
}

/// `path` leads from what is `owned` to its owner.
pub(crate) fn owned_by_what_waits(graph: &Graph, owned: Placed<'_>, path: &[Placed<'_>]) -> Diagnostic {
    let (holder, owner) = (graph.label(owned.1.holder), graph.label(owned.1.target));
    let title = format!("{owner} waits for what it owns: {}", trail(graph, path));
    let mut diagnostic =
        Diagnostic::at(owned.0, title).label(format!("{owner} deletes {holder} once nothing else names the {owner}"));
    for (span, edge) in path {
        diagnostic = diagnostic.related(*span, waits(graph, edge));
    }
    diagnostic.help(format!(
        "so neither is ever deleted: set on_delete = \"cascade\" where it blocks, so that {holder} goes first, or remove \
         `owned`"
    ))
}

/// `path` leads from the holder of `implied` to its target.
pub(crate) fn reference_implied(graph: &Graph, implied: Placed<'_>, path: &[Placed<'_>]) -> Diagnostic {
    let (span, edge) = implied;
    let title = format!(
        "reference \"{}\" follows from others: {}",
        edge.reference,
        trail(graph, path)
    );
    let mut diagnostic = Diagnostic::at(span, title);
    for (span, edge) in path {
        diagnostic = diagnostic.related(*span, waits(graph, edge));
    }
    let (holder, target) = (graph.label(edge.holder), graph.label(edge.target));
    diagnostic.help(format!(
        "remove it, or set on_delete = \"orphan\" if only the name is needed: {target} goes after {holder} without it"
    ))
}

/// `Folder -> Drive -> Folder`
fn trail(graph: &Graph, edges: &[Placed<'_>]) -> String {
    let first = edges.iter().take(1).map(|(_, edge)| edge.holder);
    let kinds = first.chain(edges.iter().map(|(_, edge)| edge.target));
    kinds.map(|kind| graph.label(kind)).collect::<Vec<_>>().join(" -> ")
}

fn waits(graph: &Graph, edge: &Edge) -> String {
    let (holder, target) = (graph.label(edge.holder), graph.label(edge.target));
    format!("{target} waits until no {holder} names it")
}
