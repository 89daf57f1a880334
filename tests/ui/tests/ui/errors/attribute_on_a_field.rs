//! The derive sees the struct it stands on, and an attribute on a field would do nothing.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
struct Model {
    #[indexed(column = "owner")]
    owner: String,
}

fn main() {}
