//! Which OpenAPI documents there are, and which resources each describes.

use kindex_kube_api::request::group_version;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use crate::openapi::{self, ResourceDoc};
use crate::registry::Catalog;
use crate::resource::{Resource, join_group};

/// `/openapi/v3`
pub(crate) fn index(catalog: &Catalog) -> Value {
    let mut hashes: BTreeMap<String, Sha256> = BTreeMap::new();
    for resource in catalog.all() {
        let path = group_version(&resource.group, &resource.version);
        let path = path.trim_start_matches('/').to_owned();
        let hash = hashes.entry(path).or_default();
        hash.update(&resource.names.kind);
        hash.update(resource.declared_schema.to_string());
    }
    let paths: serde_json::Map<String, Value> = hashes
        .into_iter()
        .map(|(path, hash)| {
            let hash: String = hash
                .finalize()
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02X}"))
                .collect();
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// `/openapi/v3/apis/<group>/<version>`
pub(crate) fn document(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<ResourceDoc> = catalog
        .all()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(|resource| describe(resource))
        .collect();
    (!resources.is_empty()).then(|| openapi::document(&join_group(group, version), &resources))
}

fn describe(resource: &Resource) -> ResourceDoc {
    ResourceDoc {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.names.kind.clone(),
        list_kind: resource.names.list_kind.clone(),
        plural: resource.names.plural.clone(),
        namespaced: resource.namespaced,
        status: resource.has_status,
        schema: resource.declared_schema.clone(),
    }
}

/// `/openapi/v2`: clients of this age use version 3; to others nothing is described.
pub(crate) fn swagger() -> Value {
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.33.0"}, "paths": {}, "definitions": {}})
}

/// The same in protobuf, the only form of it that kubectl reads: version, title and an empty list of paths.
pub(crate) fn swagger_protobuf() -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).expect("the few texts are short");
        [&[number << 3 | 2, length], bytes].concat()
    };
    let info = [field(1, b"Kubernetes"), field(2, b"v1.33.0")].concat();
    [field(1, b"2.0"), field(2, &info), field(8, b"")].concat()
}
