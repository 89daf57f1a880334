//! What tells the entries of a list apart, so that each is compared with its former self.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::structural::{ListType, Structural};

/// The entries of an old list by their keys, the first of each: only the entries of list maps can be told apart.
pub(super) fn entries_by_key<'a>(schema: &Structural, old: Option<&'a Value>) -> HashMap<String, &'a Value> {
    let mut entries = HashMap::new();
    for entry in old.and_then(Value::as_array).into_iter().flatten() {
        if let Some(key) = key_of(schema, entry) {
            entries.entry(key).or_insert(entry);
        }
    }
    entries
}

/// The key of a list map's entry, where all of its fields are there.
pub(super) fn key_of(schema: &Structural, entry: &Value) -> Option<String> {
    if schema.list_type != ListType::Map {
        return None;
    }
    let field = |key: &String| entry.get(key).filter(|value| !value.is_object() && !value.is_array());
    let fields: Option<Vec<&Value>> = schema.list_map_keys.iter().map(field).collect();
    serde_json::to_string(&fields?).ok()
}
