//! Both places are marked.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner)]
#[indexed(column = "owner", path = spec.team)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
    team: String,
}

fn main() {}
