//! The declarations of several services put together: one graph, over whose edges no deletion may wait for itself, and
//! no kind that one file names and another one lacks. Reads nothing.

use std::collections::BTreeMap;

use crate::Input;
use crate::diag::{Collector, Diagnostics, messages};
use crate::graph::{Edge, Graph, Part};
use crate::lower::deletion;
use crate::model::Kind;
use crate::source::{FileId, Sources, Span, Text};

/// The graph of all of them, seen from the first one.
pub(super) fn graph(declarations: &[Input]) -> Result<Graph, Diagnostics> {
    let (sources, files) = texts(declarations);
    let mut found = Collector::default();
    refuse_doubles(declarations, &files, &mut found);
    refuse_missing(declarations, &files, &mut found);
    let parts: Vec<Part<'_>> = declarations
        .iter()
        .map(|input| Part {
            kinds: &input.lowered.model.kinds,
            services: &input.lowered.model.services,
        })
        .collect();
    let graph = Graph::merged(&parts);
    let place = |edge: &Edge| {
        let span = deletion::place_of(&declarations[edge.part].spec, edge)?;
        Some(in_file(span, files[edge.part]))
    };
    deletion::refuse_endless(&graph, place, &mut found);
    if found.is_empty() {
        return Ok(graph);
    }
    let errors = found.into_diagnostics(sources);
    Err(errors.concluding("in the declarations together; nothing was printed"))
}

/// The text of each declaration, in one set of sources.
fn texts(declarations: &[Input]) -> (Sources, Vec<FileId>) {
    let text_of = |input: &Input| input.sources.file(input.sources.crds()).clone();
    let first = text_of(&declarations[0]);
    let mut sources = Sources::of_declaration(first.path, first.text);
    let mut files = vec![sources.crds()];
    for input in &declarations[1..] {
        let file = text_of(input);
        files.push(sources.add(file.path, file.text));
    }
    (sources, files)
}

/// A span of a declaration as one of the file that it has become.
const fn in_file(span: Span, file: FileId) -> Span {
    Span::new(file, span.range())
}

fn moved(text: &Text, file: FileId) -> Text {
    Text {
        value: text.value.clone(),
        span: in_file(text.span, file),
        verbatim_start: text.verbatim_start,
    }
}

/// Refuses a kind that two files declare.
fn refuse_doubles(declarations: &[Input], files: &[FileId], found: &mut Collector) {
    let mut first: BTreeMap<(&str, &str), Span> = BTreeMap::new();
    for (input, file) in declarations.iter().zip(files) {
        for (spec, kind) in input.spec.kinds.iter().zip(&input.lowered.model.kinds) {
            let text = moved(&spec.name, *file);
            if let Some(first) = first.insert((kind.group.as_str(), kind.name.as_str()), text.span) {
                found.push(messages::kind_of_two_files(&text, kind.group.as_str(), first));
            }
        }
    }
}

/// Refuses kinds of a service that the file with its group does not declare.
fn refuse_missing(declarations: &[Input], files: &[FileId], found: &mut Collector) {
    for (input, file) in declarations.iter().zip(files) {
        for service in &input.spec.services {
            let group = service.group.as_ref().map_or("", |group| group.value.as_str());
            let of_group = |kind: &&Kind| kind.group == *group;
            let declared = declarations
                .iter()
                .find(|other| other.lowered.model.kinds.iter().any(|kind| of_group(&kind)));
            let Some(declared) = declared else { continue };
            let kinds = declared.lowered.model.kinds.iter().filter(of_group);
            let kinds: Vec<&str> = kinds.map(|kind| kind.name.as_str()).collect();
            let missing = service
                .kinds
                .iter()
                .filter(|text| !kinds.contains(&text.value.as_str()));
            for text in missing {
                let path = &declared.sources.file(declared.sources.crds()).path;
                found.push(messages::kind_missing_in_its_file(&moved(text, *file), path, &kinds));
            }
        }
    }
}
