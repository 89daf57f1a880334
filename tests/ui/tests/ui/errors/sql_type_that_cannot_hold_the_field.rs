//! Found while constants are evaluated, shown at the type.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner, sql = "BIGINT")]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
