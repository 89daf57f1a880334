//! The declarations of several services put together: one graph, over whose edges no deletion may wait for itself, and
//! no kind that one file names and another one lacks. Reads nothing.

use std::collections::BTreeMap;

use crate::Input;
use crate::diag::{Collector, Diagnostics, messages};
use crate::graph::{Edge, Graph, Part};
use crate::lower::deletion;
use crate::model::{Kind, default_plural};
use crate::source::{FileId, Sources, Span, Text};
use crate::spec::ServiceKindSpec;

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

/// Refuses kinds of a service that the file with its group does not declare, or declares with another plural.
fn refuse_missing(declarations: &[Input], files: &[FileId], found: &mut Collector) {
    for (input, file) in declarations.iter().zip(files) {
        for service in &input.spec.services {
            let group = service.group.as_ref().map_or("", |group| group.value.as_str());
            let of_group = |kind: &&Kind| kind.group == *group;
            let declared = declarations
                .iter()
                .find(|other| other.lowered.model.kinds.iter().any(|kind| of_group(&kind)));
            let Some(declared) = declared else { continue };
            let kinds: Vec<&Kind> = declared.lowered.model.kinds.iter().filter(of_group).collect();
            let path = &declared.sources.file(declared.sources.crds()).path;
            for spec in &service.kinds {
                match kinds.iter().find(|kind| kind.name == *spec.name.value) {
                    Some(kind) => refuse_plural(spec, kind, *file, path, found),
                    None => {
                        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
                        let name = moved(&spec.name, *file);
                        found.push(messages::kind_missing_in_its_file(&name, path, &kinds));
                    }
                }
            }
        }
    }
}

/// Rights to a kind are by its plural, so that both files have to mean the same one.
fn refuse_plural(spec: &ServiceKindSpec, kind: &Kind, file: FileId, path: &str, found: &mut Collector) {
    let declared = spec.plural.as_ref().map(|text| text.value.clone());
    let plural = declared.unwrap_or_else(|| default_plural(&spec.name.value));
    if plural != kind.plural {
        let place = in_file(spec.plural.as_ref().unwrap_or(&spec.name).span, file);
        let name = kind.name.as_str();
        found.push(messages::plural_unlike_that_of_its_file(
            place,
            (name, plural.as_str()),
            path,
            &kind.plural,
        ));
    }
}
