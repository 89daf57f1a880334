//! An enum has no fields that a path could name.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
enum Model {
    Small,
    Large,
}

fn main() {}
