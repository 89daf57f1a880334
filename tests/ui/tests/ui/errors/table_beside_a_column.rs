//! The table is the struct'\''s, not the column'\''s.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(table = "model", column = "owner", path = spec.owner)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
