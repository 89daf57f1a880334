//! The entries under `map`: each names a field of the kind's own version and how it follows from this version.

use super::{PARTS, Shapes, types};
use crate::diag::{Collector, messages as errors};
use crate::lower::path::{self, Resolved};
use crate::model::{ApiVersion, FieldMap, MapRule, Path};
use crate::source::Text;
use crate::spec::{MappingSpec, VersionSpec};

/// An entry that leads to fields.
pub(super) struct Entry {
    pub(super) map: FieldMap,
    own: Text,
    here: Text,
}

impl Entry {
    /// Whether the entry is about the field of this version at `path`.
    pub(super) fn reads(&self, path: &Path) -> bool {
        self.map.here.as_ref() == Some(path)
    }

    /// Whether the entry is about the field of the kind's own version at `path`.
    pub(super) fn writes(&self, path: &Path) -> bool {
        self.map.own.as_ref() == Some(path)
    }

    /// Whether the entry is about a field inside `path`, in either version.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        [&self.map.here, &self.map.own]
            .into_iter()
            .flatten()
            .any(|own| own.segments.starts_with(&path.segments))
    }
}

/// Checks the entries; those that are wrong are left out.
pub(super) fn lower(spec: &VersionSpec, own: &ApiVersion, shapes: &Shapes<'_>, found: &mut Collector) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for mapping in &spec.map {
        let versions = (spec.name.value.as_str(), own.as_str());
        let Some(entry) = entry(mapping, versions, shapes, found) else {
            continue;
        };
        refuse_overlaps(&entry, &entries, versions, found);
        entries.push(entry);
    }
    entries
}

fn entry(mapping: &MappingSpec, versions: (&str, &str), shapes: &Shapes<'_>, found: &mut Collector) -> Option<Entry> {
    if let Some(constant) = &mapping.constant {
        let own = resolve(&mapping.own, shapes, Side::Own, found)?;
        let value = types::json(constant, own.field, &mapping.own, shapes, found)?;
        let beside = [
            ("from", mapping.from.is_some()),
            ("default", mapping.default.is_some()),
            ("function", mapping.function.is_some()),
        ];
        if let Some((other, _)) = beside.into_iter().find(|(_, is_there)| *is_there) {
            found.push(errors::constant_beside(&mapping.own, other));
        } else if has_place(&mapping.own, shapes) {
            found.push(errors::constant_of_a_field(&mapping.own, versions.0));
        }
        return Some(Entry {
            map: FieldMap {
                here: None,
                own: Some(own.path),
                rule: MapRule::Default(value),
            },
            own: mapping.own.clone(),
            here: mapping.own.clone(),
        });
    }
    let here = mapping.from.as_ref().unwrap_or(&mapping.own);
    let (own, read) = (
        resolve(&mapping.own, shapes, Side::Own, found),
        resolve(here, shapes, Side::Here, found),
    );
    let (own, read) = (own?, read?);
    let rule = rule(mapping, &own, shapes, found)?;
    let is_function = matches!(rule, MapRule::Function { .. });
    if !is_function && !types::are_same(read.field, own.field, shapes) {
        let words = (types::word(read.field), types::word(own.field));
        let (here, own) = ((versions.0, &*words.0), (versions.1, &*words.1));
        found.push(errors::no_way(mapping.own.span, &mapping.own.value, here, own));
    }
    Some(Entry {
        map: FieldMap {
            here: Some(read.path),
            own: Some(own.path),
            rule,
        },
        own: mapping.own.clone(),
        here: here.clone(),
    })
}

#[derive(Clone, Copy)]
enum Side {
    Here,
    Own,
}

fn resolve<'m>(text: &Text, shapes: &Shapes<'m>, side: Side, found: &mut Collector) -> Option<Resolved<'m>> {
    let root = match side {
        Side::Here => shapes.here,
        Side::Own => shapes.own,
    };
    let resolved = path::resolve(text, root, shapes.messages, found)?;
    if !resolved.path.json().next().is_some_and(|part| PARTS.contains(&part)) {
        found.push(errors::mapped_metadata(text));
        return None;
    }
    Some(resolved)
}

/// Whether this version has a field at that path.
fn has_place(path: &Text, shapes: &Shapes<'_>) -> bool {
    let mut discarded = Collector::default();
    path::resolve(path, shapes.here, shapes.messages, &mut discarded).is_some()
}

fn rule(mapping: &MappingSpec, own: &Resolved<'_>, shapes: &Shapes<'_>, found: &mut Collector) -> Option<MapRule> {
    let (to_own, from_own) = match (&mapping.function, &mapping.back) {
        (Some(to_own), Some(from_own)) => (to_own, from_own),
        (Some(_), None) => {
            found.push(errors::function_without_back(&mapping.own, "back"));
            return None;
        }
        (None, Some(_)) => {
            found.push(errors::function_without_back(&mapping.own, "function"));
            return None;
        }
        (None, None) => {
            let Some(default) = &mapping.default else {
                return Some(MapRule::Same);
            };
            let value = types::json(default, own.field, &mapping.own, shapes, found)?;
            return Some(MapRule::Default(value));
        }
    };
    if mapping.default.is_some() {
        found.push(errors::function_beside_default(&mapping.own));
    }
    for function in [to_own, from_own] {
        if syn::parse_str::<syn::Path>(&function.value).is_err() {
            found.push(errors::not_a_function(function));
            return None;
        }
    }
    Some(MapRule::Function {
        to_own: to_own.value.clone(),
        from_own: from_own.value.clone(),
    })
}

fn refuse_overlaps(entry: &Entry, others: &[Entry], versions: (&str, &str), found: &mut Collector) {
    let overlap = |one: Option<&Path>, other: Option<&Path>| match (one, other) {
        (Some(one), Some(other)) => {
            one.segments.starts_with(&other.segments) || other.segments.starts_with(&one.segments)
        }
        _ => false,
    };
    for other in others {
        if overlap(entry.map.own.as_ref(), other.map.own.as_ref()) {
            found.push(errors::mapped_twice(&entry.own, versions.1, other.own.span));
        } else if overlap(entry.map.here.as_ref(), other.map.here.as_ref()) {
            found.push(errors::mapped_twice(&entry.here, versions.0, other.here.span));
        }
    }
}
