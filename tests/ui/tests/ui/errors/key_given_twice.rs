//! Two paths for one column.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner, path = spec.team)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
    team: String,
}

fn main() {}
