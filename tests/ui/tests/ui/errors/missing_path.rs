//! A name alone does not say where the value is.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner")]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
