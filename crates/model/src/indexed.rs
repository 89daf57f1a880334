//! The contract between a typed object and its extracted columns, for generated
//! kinds and for hand-written ones that derive it. Knows no kind.

use crate::kind::{Column, Key};
use crate::value::Value;

/// Derives [`IndexedObject`](trait@IndexedObject) for a hand-written kube type.
pub use kindex_macros::IndexedObject;

/// One extracted column of one object: what `GetIndexedKeyValuePairs` returns
/// in Michelangelo's storage package.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedField {
    /// The column's name, as in the SQL schema.
    pub key: &'static str,
    /// Its value in this object.
    pub value: Value,
}

/// An object whose fields are copied into SQL columns.
///
/// # Guarantees
/// `get_indexed_key_value_pairs` returns one entry for each entry of
/// [`COLUMNS`](IndexedObject::COLUMNS), in the same order.
///
/// A field without presence (a proto3 scalar or enum) that holds its zero value
/// counts as absent and yields [`Value::Null`]. The ingester itself reads columns
/// from the object's JSON text, where an explicit zero is visible, and stores it.
pub trait IndexedObject {
    /// The main table's name: the lower-case kind.
    const TABLE: &'static str;
    /// The extracted columns, in table order.
    const COLUMNS: &'static [Column];
    /// The secondary keys over those columns.
    const KEYS: &'static [Key];

    /// This object's extracted columns.
    fn get_indexed_key_value_pairs(&self) -> Vec<IndexedField>;

    /// Whether the kind as a whole is final: every object is evicted from etcd
    /// as soon as SQL holds it.
    fn is_immutable_kind(&self) -> bool {
        false
    }
}
