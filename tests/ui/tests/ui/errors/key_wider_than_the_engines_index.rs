//! A key over a column that the engines cannot index whole.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner, sql = "VARCHAR(1024)", key)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
