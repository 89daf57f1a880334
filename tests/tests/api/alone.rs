//! A kind that no cluster has, for these tests.

use kindex_generated::kinds::{model, project};
use kindex_model::kind::{Encoded, Kind, Scope};

/// Models, and projects that no cluster has.
pub(super) static ALONE: &[&Kind] = &[&model::KIND, &SQL_ONLY_PROJECT];
/// Projects that no cluster has.
pub(super) static SQL_ONLY_PROJECT: Kind = Kind {
    name: "Project",
    group: "michelangelo.api",
    version: "v2",
    versions: &[],
    plural: "projects",
    singular: "project",
    short_names: &[],
    scope: Scope::Namespaced,
    table: "project",
    cluster: false,
    immutable: false,
    history: false,
    events: false,
    columns: project::COLUMNS,
    keys: project::KEYS,
    printer_columns: project::PRINTER_COLUMNS,
    retention: None,
    references: &[],
    manifest: include_str!("../../../schema/crds/projects.yaml"),
    encode: |_| Encoded::default(),
    decode: |_| Err(Vec::new()),
};
