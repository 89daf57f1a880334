//! An enum has no fields that a path could name.

use kindex_runtime::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
enum Model {
    Small,
    Large,
}

fn main() {}
