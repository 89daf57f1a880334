//! Both places are marked.

use kindex_runtime::indexed::IndexedObject;

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
