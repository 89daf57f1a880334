//! The graph in the language of Graphviz, for people who lay it out themselves.
//! <https://graphviz.org/doc/info/lang.html>

use std::collections::BTreeMap;

use super::{Edge, Graph};
use crate::model::OnDelete;

impl Graph {
    /// The whole graph, each service in a box of its own.
    pub fn dot(&self) -> String {
        let mut text =
            "digraph kinds {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=Helvetica];\n\n".to_owned();
        let mut services: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        for (at, kind) in self.kinds.iter().enumerate() {
            services.entry(kind.service.as_deref()).or_default().push(at);
        }
        for (service, kinds) in services {
            let nodes = kinds.into_iter().map(|kind| {
                let indent = if service.is_some() { "    " } else { "  " };
                format!(
                    "{indent}{} [label={}];\n",
                    quoted(&self.label(kind)),
                    quoted(&self.kinds[kind].kind)
                )
            });
            let nodes: String = nodes.collect();
            match service {
                Some(service) => {
                    let (id, label) = (quoted(&format!("cluster_{service}")), quoted(service));
                    text.push_str(&format!("  subgraph {id} {{\n    label={label};\n{nodes}  }}\n"));
                }
                None => text.push_str(&nodes),
            }
        }
        text.push('\n');
        for edge in &self.edges {
            let (holder, target) = (quoted(&self.label(edge.holder)), quoted(&self.label(edge.target)));
            let label = quoted(&format!("{}: {}", edge.reference, edge.effect()));
            text.push_str(&format!("  {holder} -> {target} [label={label}{}];\n", style(edge)));
        }
        text.push_str("}\n");
        text
    }
}

fn style(edge: &Edge) -> &'static str {
    match edge.on_delete {
        OnDelete::Cascade if edge.owned => ", arrowhead=normaldiamond",
        OnDelete::Cascade => "",
        OnDelete::Block => ", arrowhead=normaltee",
        OnDelete::Orphan => ", style=dotted, constraint=false",
    }
}

/// Kinds, services and references have letters, digits, dots and dashes only.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
