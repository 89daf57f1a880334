//! Only an Option is passed with a question mark.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec?.owner)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
