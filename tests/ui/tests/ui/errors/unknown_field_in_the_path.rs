//! `stat` instead of `state`: the compiler marks the segment and knows a better one.

use kindex_model::indexed::IndexedObject;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, IndexedObject, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "ml.example", version = "v1", kind = "Model", namespaced)]
#[kube(status = "ModelStatus", schema = "disabled")]
#[indexed(column = "owner", path = spec.owner)]
#[indexed(column = "state", path = status?.stat, sql = "VARCHAR(64)", key)]
struct ModelSpec {
    owner: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ModelStatus {
    state: String,
}

fn main() {}
