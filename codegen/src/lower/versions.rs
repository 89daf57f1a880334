//! Versions of a kind beside its own: which is stored, and how the fields of each map to those of the kind's own. What
//! nobody mapped must have the same type at the same path, or a place in one of the versions alone.

mod types;

mod entries;

use self::entries::Entry;
use super::draft::Draft;
use super::messages::{Enums, Messages};
use crate::diag::{Collector, messages as errors};
use crate::lock::Lock;
use crate::model::{ApiVersion, Field, FieldMap, Kind, MapRule, Message, Path, Segment, Shape};
use crate::source::Span;
use crate::spec::{Spec, VersionSpec};

/// The parts of an object that may differ between versions.
const PARTS: [&str; 2] = ["spec", "status"];

/// The whole objects of two versions.
pub(super) struct Shapes<'m> {
    pub(super) here: &'m Message,
    pub(super) own: &'m Message,
    pub(super) messages: &'m Messages,
    pub(super) enums: &'m Enums,
}

/// The version in which objects are stored.
pub(super) fn storage(draft: &Draft<'_>, found: &mut Collector) -> ApiVersion {
    let Some(text) = &draft.spec.storage else {
        return draft.version.clone();
    };
    if let Some(crd) = &draft.spec.crd {
        found.push(errors::versions_of_others(text, crd));
    }
    let others = draft.versions.iter().map(|(version, _)| version);
    let mut versions = std::iter::once(&draft.version).chain(others);
    match versions.clone().find(|version| version.as_str() == text.value) {
        Some(version) => version.clone(),
        None => {
            let names = versions.by_ref().map(ApiVersion::as_str);
            found.push(errors::unknown_storage(text, names));
            draft.version.clone()
        }
    }
}

/// Refuses versions that are declared no more and that a cluster may still store.
pub(super) fn refuse_removed(kinds: &[Kind], spec: &Spec, lock: &Lock, found: &mut Collector) {
    for kind in kinds.iter().filter(|kind| !matches!(kind.shape, Shape::Crd { .. })) {
        let declared = spec.kinds.iter().find(|spec| spec.name.value == kind.name.as_str());
        let Some(declared) = declared else { continue };
        for version in lock.removed(kind) {
            let api_version = format!("{}/{version}", kind.group);
            found.push(errors::version_removed(&declared.name, version, &api_version));
        }
    }
}

/// The fields in which a version differs from the kind's own, `own`: those that are mapped, in file order, then those
/// that one of the two has no place for.
pub(super) fn map(spec: &VersionSpec, own: &ApiVersion, shapes: &Shapes<'_>, found: &mut Collector) -> Vec<FieldMap> {
    let entries = entries::lower(spec, own, shapes, found);
    let mut walk = Walk {
        shapes,
        entries: &entries,
        versions: (&spec.name.value, own.as_str()),
        span: spec.name.span,
        inside: Vec::new(),
        alone: Vec::new(),
        found,
    };
    walk.message(shapes.here, shapes.own, &[]);
    let alone = walk.alone;
    entries.into_iter().map(|entry| entry.map).chain(alone).collect()
}

/// A walk down what two versions have at the same paths.
struct Walk<'a, 'm> {
    shapes: &'a Shapes<'m>,
    entries: &'a [Entry],
    /// This one and the kind's own.
    versions: (&'a str, &'a str),
    /// The version.
    span: Span,
    /// The messages that the walk is inside of: those that contain themselves and differ have no end.
    inside: Vec<(&'m Message, &'m Message)>,
    /// What one version alone has.
    alone: Vec<FieldMap>,
    found: &'a mut Collector,
}

impl<'m> Walk<'_, 'm> {
    fn message(&mut self, here: &'m Message, own: &'m Message, above: &[Segment]) {
        self.inside.push((here, own));
        let differs = |name: &str| !above.is_empty() || PARTS.contains(&name);
        for field in here.fields.iter().filter(|field| differs(&field.json_name)) {
            let path = child(above, field);
            if self.entries.iter().any(|entry| entry.reads(&path)) {
                continue;
            }
            let other = own.field_by_json_name(&field.json_name);
            match other.filter(|_| !self.entries.iter().any(|entry| entry.writes(&path))) {
                Some(other) => self.both(field, other, path),
                None => self.alone.push(FieldMap {
                    here: Some(path),
                    own: None,
                    rule: MapRule::Same,
                }),
            }
        }
        for field in own.fields.iter().filter(|field| differs(&field.json_name)) {
            let path = child(above, field);
            let is_here = here.field_by_json_name(&field.json_name).is_some();
            let is_read = self.entries.iter().any(|entry| entry.reads(&path));
            if self.entries.iter().any(|entry| entry.writes(&path)) || (is_here && !is_read) {
                continue;
            }
            self.alone.push(FieldMap {
                here: None,
                own: Some(path),
                rule: MapRule::Same,
            });
        }
        self.inside.pop();
    }

    /// A field that both versions have at the same path and that nobody mapped.
    fn both(&mut self, here: &'m Field, own: &'m Field, path: Path) {
        let shapes = self.shapes;
        let has_entries = self.entries.iter().any(|entry| entry.is_inside(&path));
        if !has_entries && types::are_same(here, own, shapes) {
            return;
        }
        match (types::single_message(here, shapes), types::single_message(own, shapes)) {
            (Some(here), Some(own)) if !self.inside.contains(&(here, own)) => self.message(here, own, &path.segments),
            _ => {
                let types = (types::word(here), types::word(own));
                let (here, own) = ((self.versions.0, &*types.0), (self.versions.1, &*types.1));
                self.found
                    .push(errors::no_way(self.span, &path.json_dotted(), here, own));
            }
        }
    }
}

fn child(above: &[Segment], field: &Field) -> Path {
    let mut segments = above.to_vec();
    segments.push(Segment {
        json: field.json_name.clone(),
        proto: field.name.clone(),
    });
    Path { segments }
}
