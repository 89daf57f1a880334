//! A struct without `#[kube]` has to name its table.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(column = "owner", path = owner)]
struct Model {
    owner: String,
}

fn main() {}
