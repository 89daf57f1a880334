//! The compiler names the field inside of the Option.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner.name)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: Option<Owner>,
}

struct Owner {
    name: String,
}

fn main() {}
