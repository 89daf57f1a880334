//! A table has one shape.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner)]
struct Model<S> {
    spec: S,
}

fn main() {}
