//! SQL names are lower case.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "ownerName", path = spec.owner)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
