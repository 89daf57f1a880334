//! OpenAPI v3 documents of the served resources, one for each group and version: what `kubectl explain` reads, and
//! where kubectl learns that the server validates fields. Knows nothing of how documents are served and hashed.

mod schemas;

mod paths;

use serde_json::{Map, Value, json};

/// A resource, as far as its description needs.
#[derive(Debug, Clone)]
pub(crate) struct ResourceDoc {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// The kind of objects.
    pub(crate) kind: String,
    /// The kind of lists.
    pub(crate) list_kind: String,
    /// The name in paths.
    pub(crate) plural: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Whether there is a status subresource.
    pub(crate) status: bool,
    /// The schema of objects (`openAPIV3Schema`).
    pub(crate) schema: Value,
}

/// The document of one group and version: `/openapi/v3/apis/<group_version>`. Deterministic for equal resources.
pub(crate) fn document(group_version: &str, resources: &[ResourceDoc]) -> Value {
    let mut all_paths = Map::new();
    let mut components = schemas::metadata();
    for resource in resources {
        paths::add(group_version, resource, &mut all_paths);
        components.insert(resource.schema_name(&resource.kind), schemas::object(resource));
        components.insert(resource.schema_name(&resource.list_kind), schemas::list(resource));
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v0.1.0"},
        "paths": all_paths,
        "components": {"schemas": components},
    })
}

#[cfg(test)]
mod tests;
