//! The names of kinds, before anything is known about their shapes: what they are called in Kubernetes, SQL and Rust,
//! and that no two of them get in each other's way.

use std::collections::{BTreeMap, BTreeSet};

use super::manifest::{self, Manifest};
use super::names::{self, ResourceNames};
use super::{Manifests, reserved};
use crate::diag::{Collector, messages as errors};
use crate::dialect::name_chars_max;
use crate::model::{ApiVersion, GroupName, KindName, Platform, TableName, snake_case};
use crate::source::{Sources, Span};
use crate::spec::{KindSpec, Spec, VersionSpec};

/// Longest name that is derived from a table's: the key of its history.
const LONGEST_SUFFIX: &str = "_history_seen_time";

/// A kind with its names; its shape is still unknown.
pub(super) struct Draft<'s> {
    pub(super) spec: &'s KindSpec,
    pub(super) name: KindName,
    pub(super) group: GroupName,
    pub(super) version: ApiVersion,
    /// The other versions, in file order.
    pub(super) versions: Vec<(ApiVersion, &'s VersionSpec)>,
    pub(super) manifest: Option<Manifest>,
    pub(super) names: ResourceNames,
    pub(super) table: TableName,
    pub(super) module: String,
}

/// Checks the names of every kind; kinds without a usable name are left out.
pub(super) fn drafts<'s>(
    spec: &'s Spec,
    platform: &Platform,
    manifests: &Manifests,
    sources: &Sources,
    found: &mut Collector,
) -> Vec<Draft<'s>> {
    let mut taken = names::Taken::default();
    let mut tables: BTreeMap<TableName, Span> = BTreeMap::new();
    let mut drafts = Vec::new();
    for kind in &spec.kinds {
        let manifest = kind.crd.as_ref().and_then(|path| {
            let file = *manifests.get(&path.value)?;
            manifest::read(sources.text(file), path, &kind.name, found)
        });
        let Some(draft) = draft(kind, platform, manifest, found) else {
            continue;
        };
        taken.take(kind, &draft.group, &draft.names, found);
        if let Some(first) = tables.insert(draft.table.clone(), kind.name.span) {
            found.push(errors::duplicate_table(&kind.name, &draft.table, first));
        }
        drafts.push(draft);
    }
    drafts
}

fn draft<'s>(
    spec: &'s KindSpec,
    platform: &Platform,
    manifest: Option<Manifest>,
    found: &mut Collector,
) -> Option<Draft<'s>> {
    let mut names = names::resource_names(spec, found);
    let mut group = match &spec.group {
        Some(text) => names::api_group(Some(text), found),
        None => platform.group.clone(),
    };
    let mut version = match &spec.version {
        Some(text) => names::api_version(Some(text), found),
        None => platform.version.clone(),
    };
    if let Some(manifest) = &manifest {
        let declared = [&spec.group, &spec.version, &spec.plural, &spec.scope];
        for text in declared.into_iter().flatten() {
            found.push(errors::set_by_manifest(text));
        }
        for heading in spec.columns.iter().filter_map(|column| column.printer.as_ref()) {
            found.push(errors::printer_beside_a_manifest(heading));
        }
        group = manifest.group.clone();
        version = manifest.version.clone();
        names.plural.clone_from(&manifest.plural);
        names.singular.clone_from(&manifest.singular);
        if names.short_names.is_empty() {
            names.short_names.clone_from(&manifest.short_names);
        }
    }
    let name = KindName::parse(&spec.name.value)
        .map_err(|error| found.push(errors::bad_name(&spec.name, error)))
        .ok()?;
    let module = snake_case(name.as_str());
    if reserved::module(&module) {
        found.push(errors::module_keyword(&spec.name, &module));
    }
    let table = name.as_str().to_lowercase();
    let limit = name_chars_max();
    if table.len() + LONGEST_SUFFIX.len() > limit.most {
        let longest = limit.most - LONGEST_SUFFIX.len();
        found.push(errors::kind_too_long(&spec.name, longest, limit));
        return None;
    }
    let versions = other_versions(spec, &version, found);
    Some(Draft {
        spec,
        name,
        group,
        version,
        versions,
        manifest,
        names,
        table: TableName::parse(&table).expect("a kind in lower case is a SQL name"),
        module,
    })
}

/// The versions beside the kind's own, as far as they have usable names.
fn other_versions<'s>(
    spec: &'s KindSpec,
    own: &ApiVersion,
    found: &mut Collector,
) -> Vec<(ApiVersion, &'s VersionSpec)> {
    let mut versions = Vec::new();
    for version in &spec.versions {
        if let Some(crd) = &spec.crd {
            found.push(errors::versions_of_others(&version.name, crd));
            continue;
        }
        match ApiVersion::parse(&version.name.value) {
            Ok(name) if name == *own => found.push(errors::version_is_the_own(&version.name, &spec.name)),
            Ok(name) => versions.push((name, version)),
            Err(error) => found.push(errors::bad_name(&version.name, error)),
        }
    }
    versions
}

/// The names of all kinds that have one.
pub(super) fn declared(drafts: &[Draft<'_>]) -> BTreeSet<KindName> {
    drafts.iter().map(|draft| draft.name.clone()).collect()
}
