//! A path alone does not name a column.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(path = spec.owner)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
