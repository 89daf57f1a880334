//! References between kinds: what they name, which column holds the name, and that deletion has an order.

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::{Collector, messages};
use crate::dialect;
use crate::model::{Column, ColumnName, ColumnType, Kind, KindName, OnDelete, Part, Reference, ReferenceTarget};
use crate::source::Text;
use crate::spec::{KindSpec, ReferenceSpec, Spec};

/// Checks the references of one kind against its columns and the names of all kinds.
pub(super) fn lower(
    kind: &KindSpec,
    columns: &[Column],
    declared: &BTreeSet<KindName>,
    found: &mut Collector,
) -> Vec<Reference> {
    kind.references
        .iter()
        .filter_map(|spec| reference(spec, columns, declared, found))
        .collect()
}

fn reference(
    spec: &ReferenceSpec,
    columns: &[Column],
    declared: &BTreeSet<KindName>,
    found: &mut Collector,
) -> Option<Reference> {
    let name = ColumnName::parse(&spec.name.value).and_then(dialect::fitting);
    let name = name.map_err(|error| found.push(messages::bad_name(&spec.name, error)));
    let target = target(spec, columns, declared, found);
    let column = spec.column.as_ref().and_then(|text| holder(text, columns, found));
    let on_delete = spec.on_delete.as_ref().map_or(OnDelete::Orphan, |text| {
        let choice = OnDelete::ALL.into_iter().find(|choice| choice.as_str() == text.value);
        choice.expect("the grammar admits these words only")
    });
    Some(Reference {
        name: name.ok()?,
        target: target?,
        column: column?,
        on_delete,
    })
}

fn target(
    spec: &ReferenceSpec,
    columns: &[Column],
    declared: &BTreeSet<KindName>,
    found: &mut Collector,
) -> Option<ReferenceTarget> {
    match (&spec.kind, &spec.kind_column) {
        (Some(kind), None) => {
            let name = declared.iter().find(|name| name.as_str() == kind.value);
            if name.is_none() {
                let candidates = declared.iter().map(KindName::as_str);
                found.push(messages::unknown_kind(kind, candidates));
            }
            name.cloned().map(ReferenceTarget::Kind)
        }
        (None, Some(text)) => {
            let column = columns.iter().find(|column| column.name.as_str() == text.value);
            match column {
                Some(column) if column.ty == ColumnType::Text => Some(ReferenceTarget::KindIn(column.name.clone())),
                Some(column) => {
                    found.push(messages::kind_column_not_text(text, column.ty.word()));
                    None
                }
                None => {
                    let candidates = columns.iter().map(|column| column.name.as_str());
                    found.push(messages::unknown_column(text, 0..text.value.len(), candidates));
                    None
                }
            }
        }
        (None, None) | (Some(_), Some(_)) => {
            found.push(messages::target_not_once(&spec.name, spec.kind.is_some()));
            None
        }
    }
}

/// The ResourceIdentifier that holds the name.
fn holder(text: &Text, columns: &[Column], found: &mut Collector) -> Option<ColumnName> {
    let identifiers = || {
        columns
            .iter()
            .filter_map(|column| column.group.as_ref())
            .filter(|group| group.part == Part::ResourceName)
            .map(|group| &group.name)
    };
    let holder = identifiers().find(|name| name.as_str() == text.value);
    if holder.is_none() {
        let is_column = columns.iter().any(|column| column.name.as_str() == text.value);
        let candidates = identifiers().map(ColumnName::as_str);
        found.push(messages::not_an_identifier_column(text, is_column, candidates));
    }
    holder.cloned()
}

/// Refuses kinds that wait for each other's deletion. A kind may refer to itself: its objects can form a tree.
pub(super) fn refuse_cycles(kinds: &[Kind], spec: &Spec, found: &mut Collector) {
    let edges: BTreeMap<&KindName, Vec<(&KindName, &Reference)>> = kinds
        .iter()
        .map(|kind| (&kind.name, waits_for(kind).collect()))
        .collect();
    let mut done = BTreeSet::new();
    for kind in kinds {
        let mut trail = Vec::new();
        visit(&kind.name, &edges, &mut trail, &mut done, &mut |cycle, last| {
            let span = place_of(spec, cycle[cycle.len() - 1], last);
            if let Some(text) = span {
                found.push(messages::reference_cycle(text, cycle));
            }
        });
    }
}

fn waits_for(kind: &Kind) -> impl Iterator<Item = (&KindName, &Reference)> {
    kind.references.iter().filter_map(|reference| {
        let waits = reference.on_delete != OnDelete::Orphan;
        match &reference.target {
            ReferenceTarget::Kind(target) if waits && *target != kind.name => Some((target, reference)),
            ReferenceTarget::Kind(_) | ReferenceTarget::KindIn(_) => None,
        }
    })
}

fn visit<'k>(
    name: &'k KindName,
    edges: &BTreeMap<&'k KindName, Vec<(&'k KindName, &'k Reference)>>,
    trail: &mut Vec<&'k KindName>,
    done: &mut BTreeSet<&'k KindName>,
    report: &mut impl FnMut(&[&'k KindName], &Reference),
) {
    if done.contains(name) {
        return;
    }
    trail.push(name);
    for (target, reference) in edges.get(name).into_iter().flatten() {
        match trail.iter().position(|seen| seen == target) {
            Some(start) => report(&trail[start..], reference),
            None => visit(target, edges, trail, done, report),
        }
    }
    trail.pop();
    done.insert(name);
}

fn place_of<'s>(spec: &'s Spec, kind: &KindName, reference: &Reference) -> Option<&'s Text> {
    let kind = spec.kinds.iter().find(|spec| spec.name.value == kind.as_str())?;
    let reference = kind
        .references
        .iter()
        .find(|spec| spec.name.value == reference.name.as_str())?;
    reference.kind.as_ref()
}
