//! `kindex graph`: prints which kinds refer to which, in the order of their deletion, and of several declarations which
//! references follow from others. What the graph is, and whether it may be, is decided in `kindex-codegen`.

use std::fs;
use std::path::{Path, PathBuf};

use kindex_codegen::graph::{Edge, Graph, Implied};
use kindex_codegen::lint::Code;
use serde::Serialize;

use crate::cli::{Form, GraphArgs, GraphForm};
use crate::error::{CommandError, CommandResult};
use crate::plan::needs_declaration;
use crate::{color, output, say};

/// Prints the graph, or what is wrong in it.
pub fn run(args: &GraphArgs) -> CommandResult {
    needs_declaration(&args.root)?;
    let others = others(args)?;
    let graph = kindex_codegen::graph(&args.root, &others).map_err(|errors| {
        say::note(errors.text(color::of_stderr()));
        CommandError::failure("there is no graph: fix the errors first")
    })?;
    say::print(match args.output {
        GraphForm::Table => table(&graph),
        GraphForm::Tree => tree(&graph),
        GraphForm::Json => output::document(&Document::of(&graph), Form::Json)?,
        GraphForm::Yaml => output::document(&Document::of(&graph), Form::Yaml)?,
        GraphForm::Dot => graph.dot(),
        GraphForm::Svg => graph.svg("References between kinds", None),
    })?;
    // Of one declaration alone, the lint says so.
    if !others.is_empty() {
        let files: Vec<PathBuf> = [args.root.join("crds.toml")].into_iter().chain(others).collect();
        for implied in graph.implied() {
            say::note(note(&graph, &implied, &files[graph.edges[implied.edge].part]));
        }
    }
    Ok(())
}

/// What is said of a reference without which the order is the same. `file` declares it.
fn note(graph: &Graph, implied: &Implied, file: &Path) -> String {
    let edge = &graph.edges[implied.edge];
    let holder = graph.label(edge.holder);
    let targets = implied.path.iter().map(|edge| graph.label(graph.edges[*edge].target));
    let trail: Vec<String> = [holder.clone()].into_iter().chain(targets).collect();
    format!(
        "note: {}: reference \"{}\" of {holder} follows from others: {}\n  hint: remove it, or set on_delete = \"orphan\" \
         if only the name is needed; {} is explained in {}",
        file.display(),
        edge.reference,
        trail.join(" -> "),
        Code::K703,
        Code::K703.page()
    )
}

/// The declarations that `--with` names: each of them once, and none that is read already.
fn others(args: &GraphArgs) -> CommandResult<Vec<PathBuf>> {
    let real = |file: &Path| fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let own = real(&args.root.join("crds.toml"));
    let mut seen = Vec::new();
    let mut others = Vec::new();
    for path in &args.with {
        let (shown, file) = (path.display(), file(path)?);
        let found = real(&file);
        let why = match (found == own, seen.contains(&found)) {
            (true, _) => "this is the file of --root",
            (false, true) => "--with names this file twice",
            (false, false) => {
                seen.push(found);
                others.push(file);
                continue;
            }
        };
        return Err(CommandError::usage(format_args!("--with {shown}: {why}")).hint("leave it out"));
    }
    Ok(others)
}

/// The declaration that `--with` names, itself or by its directory.
fn file(path: &Path) -> CommandResult<PathBuf> {
    let file = if path.is_dir() {
        path.join("crds.toml")
    } else {
        path.to_owned()
    };
    if file.is_file() {
        return Ok(file);
    }
    Err(
        CommandError::usage(format_args!("--with {}: no such file", path.display()))
            .hint("name the crds.toml of another service, or its directory"),
    )
}

/// The kinds by step, and those of one step as they are declared.
fn in_order(graph: &Graph) -> Vec<(usize, usize)> {
    let steps = graph.steps();
    let mut kinds: Vec<(usize, usize)> = steps.into_iter().zip(0..).collect();
    kinds.sort_unstable();
    kinds
}

fn table(graph: &Graph) -> String {
    let heads = ["step", "kind", "reference", "names", "field", "on delete"];
    let rows = in_order(graph).into_iter().flat_map(|(step, kind)| {
        let references = graph.references(kind);
        let about = |cells: [String; 4]| {
            let mut row = vec![step.to_string(), graph.label(kind)];
            row.extend(cells);
            row
        };
        if references.is_empty() {
            // What is declared in a file that was not read is not known.
            let what = if graph.kinds[kind].declared {
                "<none>"
            } else {
                "<unknown>"
            };
            return vec![about([what.to_owned(), String::new(), String::new(), String::new()])];
        }
        let rows = references.into_iter().map(|edges| {
            let edge = &edges[0];
            let effect = edge.effect().to_owned();
            about([edge.reference.clone(), named(graph, edges), edge.field.clone(), effect])
        });
        rows.collect()
    });
    output::table(&heads, rows)
}

/// The kinds that a reference may name, in a few words.
fn named(graph: &Graph, edges: &[Edge]) -> String {
    match &edges[0].kind_column {
        Some(column) if !edges[0].listed => format!("any other kind, as {column} says"),
        Some(_) | None => {
            let labels = edges.iter().map(|edge| graph.label(edge.target));
            labels.collect::<Vec<_>>().join("|")
        }
    }
}

/// Below each kind those that go before it.
fn tree(graph: &Graph) -> String {
    let mut text = String::new();
    let mut shown = vec![false; graph.kinds.len()];
    let waits = |kind: usize| {
        let mut edges = graph.edges.iter();
        edges.any(|edge| edge.holder == kind && edge.waits() && !edge.is_loop())
    };
    for kind in (0..graph.kinds.len()).filter(|kind| !waits(*kind)) {
        text.push_str(&graph.label(kind));
        text.push('\n');
        branches(graph, kind, "", &mut shown, &mut text);
    }
    text
}

fn branches(graph: &Graph, kind: usize, indent: &str, shown: &mut [bool], text: &mut String) {
    shown[kind] = true;
    let before: Vec<&Edge> = graph
        .edges
        .iter()
        .filter(|edge| edge.target == kind && edge.waits() && !edge.is_loop())
        .collect();
    for (at, edge) in before.iter().enumerate() {
        let (branch, below) = if at + 1 == before.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        let is_target = graph
            .edges
            .iter()
            .any(|other| other.target == edge.holder && other.waits() && !other.is_loop());
        let again = shown[edge.holder] && is_target;
        let more = if again { " …" } else { "" };
        let label = graph.label(edge.holder);
        let (field, effect) = (&edge.field, edge.effect());
        text.push_str(&format!("{indent}{branch}{label} ({field}: {effect}){more}\n"));
        if !again {
            branches(graph, edge.holder, &format!("{indent}{below}"), shown, text);
        }
    }
}

#[derive(Serialize)]
struct Document {
    kinds: Vec<DocumentKind>,
}

#[derive(Serialize)]
struct DocumentKind {
    kind: String,
    group: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    /// Whether one of the files that were read declares it.
    declared: bool,
    step: usize,
    references: Vec<DocumentReference>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentReference {
    name: String,
    targets: Vec<DocumentTarget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind_column: Option<String>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    owned: bool,
    on_delete: &'static str,
}

#[derive(Serialize)]
struct DocumentTarget {
    kind: String,
    group: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
}

impl Document {
    fn of(graph: &Graph) -> Self {
        let kinds = in_order(graph).into_iter().map(|(step, kind)| {
            let node = &graph.kinds[kind];
            DocumentKind {
                kind: node.kind.clone(),
                group: node.group.clone(),
                service: node.service.clone(),
                declared: node.declared,
                step,
                references: references(graph, kind),
            }
        });
        Self { kinds: kinds.collect() }
    }
}

fn references(graph: &Graph, kind: usize) -> Vec<DocumentReference> {
    let references = graph.references(kind).into_iter().map(|edges| {
        let edge = &edges[0];
        let targets = edges.iter().map(|edge| {
            let target = &graph.kinds[edge.target];
            DocumentTarget {
                kind: target.kind.clone(),
                group: target.group.clone(),
                service: target.service.clone(),
            }
        });
        DocumentReference {
            name: edge.reference.clone(),
            targets: targets.collect(),
            kind_column: edge.kind_column.clone(),
            path: edge.field.clone(),
            column: edge.column.clone(),
            owned: edge.owned,
            on_delete: edge.on_delete.as_str(),
        }
    });
    references.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shipped() -> Graph {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        kindex_codegen::graph(&root, &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The tables of the running program and the graph of the declaration are the same edges.
    #[test]
    fn the_program_knows_every_declared_edge() {
        let graph = shipped();
        let declared = graph.edges.iter().map(|edge| {
            let (holder, target) = (graph.label(edge.holder), graph.label(edge.target));
            let effect = edge.on_delete.as_str();
            format!(
                "{holder}.{} {} -> {target} {effect} {}",
                edge.reference, edge.field, edge.owned
            )
        });
        let registry = kindex_generated::registry();
        let known = registry.kinds.iter().flat_map(|target| registry.referrers(target));
        let known = known.map(|(holder, reference, target)| {
            let (field, effect) = (reference.path.join("."), reference.on_delete.as_str());
            let name = format!("{}.{}", holder.name, reference.name);
            format!("{name} {field} -> {} {effect} {}", target.kind, reference.owned)
        });
        let (declared, known): (BTreeSet<String>, BTreeSet<String>) = (declared.collect(), known.collect());
        assert_eq!(declared, known);
        assert_eq!(declared.len(), graph.edges.len());
    }

    #[test]
    fn the_tree_has_below_a_kind_what_goes_before_it() {
        let text = tree(&shipped());
        assert!(
            text.starts_with("Project\n└── Revision (spec.baseResource: cascade)\n"),
            "{text}"
        );
        let runs = "├── PipelineRun (spec.pipeline: cascade)\n│   └── Revision (spec.baseResource: cascade)\n";
        assert!(text.contains(runs), "{text}");
    }

    #[test]
    fn a_branch_that_was_shown_is_not_shown_again() {
        let kind = |name: &str, fields: &str, references: &str| {
            format!("[kinds.{name}]\nfields = {{ spec = {{ {fields} }} }}\n[kinds.{name}.references]\n{references}\n")
        };
        let to = |field: &str, kind: &str, effect: &str| {
            format!("{field} = {{ kind = \"{kind}\", path = \"spec.{field}\", {effect} }}\n")
        };
        let (cascade, owned) = ("on_delete = \"cascade\"", "owned = true");
        let both = to("a", "Network", cascade) + &to("b", "Group", cascade);
        let kinds = [
            "[platform]\ngroup = \"g.example\"\nversion = \"v1\"\nfinalizer = \"g.example/a\"\n".to_owned(),
            "deleting = \"g.example/b\"\nimmutable = \"g.example/c\"\n".to_owned(),
            kind("Project", "a = \"string\"", ""),
            kind("Network", "a = \"string\"", &to("a", "Project", cascade)),
            kind("Group", "a = \"string\"", &to("a", "Project", cascade)),
            kind("Cluster", "a = \"string\", b = \"string\"", &both),
            kind("Server", "a = \"string\"", &to("a", "Cluster", owned)),
        ];
        let root = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(root.path().join("crds.toml"), kinds.concat()).expect("writable");
        let graph = kindex_codegen::graph(root.path(), &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let expected = "\
Project
├── Network (spec.a: cascade)
│   └── Cluster (spec.a: cascade)
│       └── Server (spec.a: owned)
└── Group (spec.a: cascade)
    └── Cluster (spec.b: cascade) …
";
        assert_eq!(tree(&graph), expected);
    }
}
