//! Base columns are not declared.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "namespace", path = spec.namespace)]
struct Model {
    spec: Spec,
}

struct Spec {
    namespace: String,
}

fn main() {}
