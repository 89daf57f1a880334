//! A message has no column type; the note says what to do.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "family", path = spec.family)]
struct Model {
    spec: Spec,
}

struct Spec {
    family: Family,
}

struct Family {
    name: String,
}

fn main() {}
