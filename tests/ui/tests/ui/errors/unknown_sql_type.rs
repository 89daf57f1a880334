//! Only the types that both databases and the runtime know.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner, sql = "STRING")]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
