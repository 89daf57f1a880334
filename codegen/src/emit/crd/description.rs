//! What `kubectl explain` tells of a kind: its documentation, which fields name objects of other kinds, and what is
//! declared to happen when a named object is deleted.

use crate::graph::{Edge, Graph};
use crate::model::{Kind, Model, OnDelete};

/// The documentation of the kind, and below it its references and those to it.
pub(super) fn of(model: &Model, kind: &Kind) -> String {
    let graph = Graph::of(&model.kinds, &model.services);
    let own = graph
        .kinds
        .iter()
        .position(|node| kind.name == *node.kind && kind.group == *node.group);
    let own = own.expect("the graph has every kind");
    let to = graph.references(own).into_iter().map(|edges| to(&graph, edges));
    let from = graph.edges.iter().filter(|edge| edge.target == own && !edge.is_loop());
    let from = from.map(|edge| from_holder(&graph, edge));
    let services = model.services.iter();
    let beside = services.filter(|service| service.refers_to.contains(&kind.name));
    let beside = beside.map(|service| format!("- objects of the service {}", service.name));
    let mut text = kind.doc.trim_end().to_owned();
    for (head, lines) in [
        ("References:", to.collect::<Vec<_>>()),
        ("Referenced by:", from.chain(beside).collect()),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n\n{head}\n{}", lines.join("\n")));
        }
    }
    text
}

/// `- spec.pipeline: Pipeline (on delete cascade, this object goes first)`
fn to(graph: &Graph, edges: &[Edge]) -> String {
    let edge = &edges[0];
    let target = match (&edge.kind_column, edge.listed) {
        (None, _) => graph.label(edge.target),
        (Some(_), false) => "any other kind".to_owned(),
        (Some(_), true) => {
            let kinds = edges.iter().map(|edge| graph.label(edge.target));
            format!("one of {}", kinds.collect::<Vec<_>>().join(", "))
        }
    };
    let means = match edge.on_delete {
        OnDelete::Cascade if edge.owned => "owned, deleted by its owner",
        OnDelete::Cascade => "on delete cascade, this object goes first",
        OnDelete::Block => "on delete block, this object has to go first",
        OnDelete::Orphan => "on delete orphan, this object stays",
    };
    format!("- {}: {target} ({means})", edge.field)
}

/// `- PipelineRun, by spec.pipeline (on delete cascade, it goes first)`
fn from_holder(graph: &Graph, edge: &Edge) -> String {
    let means = match edge.on_delete {
        OnDelete::Cascade if edge.owned => "owned, deleted by this object",
        OnDelete::Cascade => "on delete cascade, it goes first",
        OnDelete::Block => "on delete block, it has to go first",
        OnDelete::Orphan => "on delete orphan, it stays",
    };
    format!("- {}, by {} ({means})", graph.label(edge.holder), edge.field)
}
