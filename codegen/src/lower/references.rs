//! References between kinds: what they name, which field holds the name, who owns whom. What references lead to
//! together is in `deletion`.

use super::messages::Messages;
use super::{path, types};
use crate::diag::{Collector, messages as errors};
use crate::dialect;
use crate::model::{
    Cardinality, Column, ColumnName, ColumnType, Field, FieldType, Holder, KindName, Message, Named, OnDelete, Part,
    Path, Reference, ReferenceTarget, Scalar, Service, TargetKind,
};
use crate::source::Text;
use crate::spec::{KindSpec, ReferenceSpec};

/// What references may name.
pub(super) struct Known {
    /// The kinds of this file, in its order.
    pub(super) kinds: Vec<KindName>,
    pub(super) services: Vec<Service>,
}

impl Known {
    /// Everything that a reference may write, for suggestions.
    fn written(&self) -> Vec<String> {
        let own = self.kinds.iter().map(KindName::to_string);
        let of_services = self.services.iter().flat_map(|service| {
            let kinds = service.kinds.iter();
            kinds.map(|kind| format!("{}.{}", service.name, kind.name))
        });
        own.chain(of_services).collect()
    }

    /// The kind that `text` names: `PipelineRun`, `region.Network`.
    fn find(&self, text: &Text, found: &mut Collector) -> Option<TargetKind> {
        let Some(dot) = text.value.find('.') else {
            let kind = self.kinds.iter().find(|name| name.as_str() == text.value);
            if kind.is_none() {
                let written = self.written();
                // A kind that a service has is meant, however unlike the two texts are.
                let end = format!(".{}", text.value);
                let meant = written.iter().find(|name| name.ends_with(&end));
                found.push(match meant {
                    Some(meant) => errors::kind_without_its_service(text, meant),
                    None => errors::unknown_kind(text, written.iter().map(String::as_str)),
                });
            }
            let kind = kind?.clone();
            return Some(TargetKind { service: None, kind });
        };
        let service = self.services.iter().find(|service| service.name == text.value[..dot]);
        let Some(service) = service else {
            found.push(errors::unknown_service(text, dot, &self.services));
            return None;
        };
        let mut kinds = service.kinds.iter().map(|kind| &kind.name);
        let kind = kinds.find(|kind| **kind == text.value[dot + 1..]);
        if kind.is_none() {
            found.push(errors::unknown_kind_of_a_service(text, dot, service));
        }
        Some(TargetKind {
            service: Some(service.name.clone()),
            kind: kind?.clone(),
        })
    }
}

/// The kind that has the references, as far as it is known.
pub(super) struct Holding<'a> {
    pub(super) spec: &'a KindSpec,
    pub(super) name: &'a KindName,
    pub(super) columns: &'a [Column],
    /// `None`: its absence was reported.
    pub(super) root: Option<&'a Message>,
    pub(super) messages: &'a Messages,
}

/// Checks the references of one kind against its columns and fields, and the names of all kinds.
pub(super) fn lower(kind: &Holding<'_>, known: &Known, found: &mut Collector) -> Vec<Reference> {
    let references = kind.spec.references.iter();
    references
        .filter_map(|spec| reference(spec, kind, known, found))
        .collect()
}

fn reference(spec: &ReferenceSpec, kind: &Holding<'_>, known: &Known, found: &mut Collector) -> Option<Reference> {
    let name = ColumnName::parse(&spec.name.value).and_then(dialect::fitting);
    let name = name.map_err(|error| found.push(errors::bad_name(&spec.name, error)));
    let target = target(spec, kind, known, found);
    let holder = match (&spec.column, &spec.path) {
        (Some(text), None) => column(text, kind.columns, found).map(Holder::Column),
        (None, Some(text)) => field(text, kind, found),
        (None, None) | (Some(_), Some(_)) => {
            found.push(errors::holder_not_once(&spec.name, spec.column.is_some()));
            None
        }
    };
    let owned = spec.owned.filter(|owned| owned.value).is_some();
    let said = spec.on_delete.as_ref().map(|text| {
        let choice = OnDelete::ALL.into_iter().find(|choice| choice.as_str() == text.value);
        choice.expect("the grammar admits these words only")
    });
    let default = if owned { OnDelete::Cascade } else { OnDelete::Orphan };
    if owned {
        refuse_half_owned(spec, said, kind, target.as_ref(), found);
    }
    Some(Reference {
        name: name.ok()?,
        target: target?,
        holder: holder?,
        owned,
        on_delete: said.unwrap_or(default),
    })
}

fn target(spec: &ReferenceSpec, kind: &Holding<'_>, known: &Known, found: &mut Collector) -> Option<ReferenceTarget> {
    if let (Some(kinds), None) = (&spec.kinds, &spec.kind_column) {
        found.push(errors::kinds_without_a_column(kinds.span, spec.kind.is_some()));
    }
    match (&spec.kind, &spec.kind_column) {
        (Some(text), None) => known.find(text, found).map(ReferenceTarget::Kind),
        (None, Some(text)) => {
            let kinds = kinds(spec, kind, known, found);
            let column = kind.columns.iter().find(|column| column.name.as_str() == text.value);
            match column {
                Some(column) if column.ty == ColumnType::Text => {
                    let kinds = kinds?;
                    if kinds.is_empty() {
                        found.push(errors::no_other_kind(text));
                    }
                    Some(ReferenceTarget::KindIn {
                        column: column.name.clone(),
                        kinds,
                        listed: spec.kinds.is_some(),
                    })
                }
                Some(column) => {
                    found.push(errors::kind_column_not_text(text, column.ty.word()));
                    None
                }
                None => {
                    let candidates = kind.columns.iter().map(|column| column.name.as_str());
                    found.push(errors::unknown_column(text, 0..text.value.len(), candidates));
                    None
                }
            }
        }
        (None, None) | (Some(_), Some(_)) => {
            found.push(errors::target_not_once(&spec.name, spec.kind.is_some()));
            None
        }
    }
}

/// The kinds that a column may name: those that are listed, else all of this file but the one that has the column.
fn kinds(spec: &ReferenceSpec, kind: &Holding<'_>, known: &Known, found: &mut Collector) -> Option<Vec<TargetKind>> {
    let Some(listed) = &spec.kinds else {
        let others = known.kinds.iter().filter(|name| *name != kind.name);
        let others = others.map(|name| TargetKind {
            service: None,
            kind: name.clone(),
        });
        return Some(others.collect());
    };
    if listed.value.is_empty() {
        found.push(errors::no_kinds(listed.span));
    }
    let mut kinds: Vec<(&Text, TargetKind)> = Vec::new();
    for text in &listed.value {
        let Some(target) = known.find(text, found) else {
            continue;
        };
        // The column holds the name of a kind alone.
        match kinds.iter().find(|(_, other)| other.kind == target.kind) {
            Some((_, other)) if *other == target => found.push(errors::kind_listed_twice(text)),
            Some((other, _)) => found.push(errors::kinds_of_one_name(text, other.span, target.kind.as_str())),
            None => kinds.push((text, target)),
        }
    }
    (!kinds.is_empty()).then(|| kinds.into_iter().map(|(_, target)| target).collect())
}

/// The ResourceIdentifier column that holds the name.
fn column(text: &Text, columns: &[Column], found: &mut Collector) -> Option<ColumnName> {
    let holder = identifiers(columns).find(|(name, _)| name.as_str() == text.value);
    if holder.is_none() {
        let is_column = columns.iter().any(|column| column.name.as_str() == text.value);
        let candidates = identifiers(columns).map(|(name, _)| name.as_str());
        found.push(errors::not_an_identifier_column(text, is_column, candidates));
    }
    holder.map(|(name, _)| name.clone())
}

/// The ResourceIdentifier columns, each with the path of its name.
fn identifiers(columns: &[Column]) -> impl Iterator<Item = (&ColumnName, &Path)> {
    columns.iter().filter_map(|column| {
        let group = column.group.as_ref()?;
        (group.part == Part::ResourceName).then_some((&group.name, &column.path))
    })
}

/// The field that holds the name.
fn field(text: &Text, kind: &Holding<'_>, found: &mut Collector) -> Option<Holder> {
    let resolved = path::resolve(text, kind.root?, kind.messages, found)?;
    let wrong = match resolved.field.cardinality {
        Cardinality::Repeated => Some("a list".to_owned()),
        Cardinality::Map(_) => Some("a map".to_owned()),
        Cardinality::Single | Cardinality::Optional => None,
    };
    let named = names_by(&resolved.field.ty, kind.messages).filter(|_| wrong.is_none());
    let Some(named) = named else {
        let what = wrong.unwrap_or_else(|| types::word(&resolved.field.ty));
        found.push(errors::path_names_nothing(text, &what));
        return None;
    };
    let is_its_path = |(_, name): &(&ColumnName, &Path)| {
        let length = name.segments.len() - 1;
        name.segments[..length] == resolved.path.segments[..]
    };
    if let Some((column, _)) = identifiers(kind.columns).find(is_its_path) {
        found.push(errors::path_is_a_column(text, column.as_str()));
        return None;
    }
    Some(Holder::Path {
        path: resolved.path,
        named,
    })
}

fn names_by(ty: &FieldType, messages: &Messages) -> Option<Named> {
    match ty {
        FieldType::Scalar(Scalar::String) => Some(Named::Name),
        FieldType::Message(name) => {
            let composite = types::composite(messages.get(name)?)?;
            let is_identifier = composite.parts.iter().all(|(_, _, part)| part.is_of_a_resource());
            is_identifier.then_some(Named::Identifier)
        }
        FieldType::Scalar(_) | FieldType::Enum(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => None,
    }
}

/// An owner deletes what it owns: that is a cascade, and every object has its owner from the beginning.
fn refuse_half_owned(
    spec: &ReferenceSpec,
    said: Option<OnDelete>,
    kind: &Holding<'_>,
    target: Option<&ReferenceTarget>,
    found: &mut Collector,
) {
    let Some(owned) = spec.owned else { return };
    if let (Some(OnDelete::Block | OnDelete::Orphan), Some(text)) = (said, &spec.on_delete) {
        found.push(errors::owned_otherwise(text, owned.span));
    }
    let by_column = |name: &Text| {
        let columns = kind.spec.columns.iter();
        let entry = columns.into_iter().find(|column| column.name.value == name.value);
        entry.and_then(|entry| entry.path.as_ref())
    };
    let text = spec.path.as_ref().or_else(|| spec.column.as_ref().and_then(by_column));
    let resolved = text.zip(kind.root).and_then(|(text, root)| {
        let unreported = &mut Collector::default();
        Some((text, path::resolve(text, root, kind.messages, unreported)?.field))
    });
    let Some((text, leaf)) = resolved else { return };
    // The root of a tree has no owner. In the message of a CRD manifest every scalar is optional.
    let is_tree =
        matches!(target, Some(ReferenceTarget::Kind(target)) if target.service.is_none() && target.kind == *kind.name);
    if text.value.starts_with("status.") {
        found.push(errors::owned_by_status(owned.span, &text.value));
    } else if may_be_absent(leaf) && !is_tree && kind.spec.crd.is_none() {
        found.push(errors::owned_by_an_optional_field(owned.span, &text.value));
    }
}

/// Whether the field says of itself that objects may lack it.
fn may_be_absent(field: &Field) -> bool {
    field.cardinality == Cardinality::Optional || field.oneof.is_some()
}
