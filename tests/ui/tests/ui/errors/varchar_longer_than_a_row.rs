//! A VARCHAR must fit a row.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner, sql = "VARCHAR(70000)")]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
