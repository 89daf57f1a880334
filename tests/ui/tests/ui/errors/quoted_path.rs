//! A string has no spans inside, so that no error could point into it.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = "spec.owner")]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
