//! `#[kube]` names a root type that nobody makes.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[kube(group = "ml.example", version = "v1", kind = "Model")]
#[indexed(column = "owner", path = spec.owner)]
struct ModelSpec {
    owner: String,
}

fn main() {}
