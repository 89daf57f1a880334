//! Strategic merge patch as far as the built-in kinds need it: maps merge; lists are replaced, but for owner
//! references and conditions, which merge by their key, and finalizers, which merge as a set. The directives
//! `$patch`, `$retainKeys`, `$setElementOrder` and `$deleteFromPrimitiveList` are honored.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// How a list merges.
enum ListRule {
    Replace,
    /// Entries are objects, known by this field.
    ByKey(&'static str),
    Set,
}

fn rule(field: &str) -> ListRule {
    match field {
        "ownerReferences" => ListRule::ByKey("uid"),
        "conditions" => ListRule::ByKey("type"),
        "finalizers" => ListRule::Set,
        _ => ListRule::Replace,
    }
}

/// Merges `patch` into `object`.
///
/// # Errors
/// When a directive is unknown or misplaced.
pub(super) fn merge(object: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    match patch.get("$patch").and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *object = Value::Object(without_directives(patch));
            return Ok(());
        }
        Some("delete") => {
            *object = Value::Object(Map::new());
            return Ok(());
        }
        Some(other) => return Err(format!("Unknown patch type: {other}")),
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    if let Some(retained) = patch.get("$retainKeys").and_then(Value::as_array) {
        let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
        fields.retain(|name, _| retained.contains(name.as_str()));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM_LIST) {
            if let (Some(Value::Array(present)), Value::Array(gone)) = (fields.get_mut(list), value) {
                let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
                present.retain(|entry| !gone.contains(&entry.to_string()));
            }
        } else if name.starts_with('$') {
            // The other directives say how to read what stands beside them.
        } else if value.is_null() {
            fields.remove(name);
        } else {
            merge_field(fields, name, value)?;
        }
    }
    Ok(())
}

fn merge_field(fields: &mut Map<String, Value>, name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(_) => merge(fields.entry(name).or_insert_with(|| Value::Object(Map::new())), value),
        Value::Array(entries) => {
            let present = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            merge_list(present, entries, &rule(name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.insert(name.to_owned(), value.clone());
            Ok(())
        }
    }
}

fn merge_list(present: &mut Value, entries: &[Value], rule: &ListRule) -> Result<(), String> {
    let Value::Array(list) = present else {
        *present = Value::Array(entries.to_vec());
        return Ok(());
    };
    match rule {
        ListRule::Replace => *list = entries.to_vec(),
        ListRule::Set => *list = merged_set(list, entries),
        ListRule::ByKey(key) => {
            if entries.iter().any(|entry| entry["$patch"] == "replace") {
                *list = entries
                    .iter()
                    .filter(|entry| entry["$patch"].is_null())
                    .cloned()
                    .collect();
                return Ok(());
            }
            merge_by_key(list, entries, key)?;
        }
    }
    Ok(())
}

/// Merges entries into those with the same key, the first of each.
fn merge_by_key(list: &mut Vec<Value>, entries: &[Value], key: &str) -> Result<(), String> {
    let text = |entry: &Value| entry[key].to_string();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, entry) in list.iter().enumerate() {
        places.entry(text(entry)).or_insert(place);
    }
    let mut gone = HashSet::new();
    for entry in entries {
        let place = places.get(&text(entry)).copied();
        match (place, entry["$patch"] == "delete") {
            (Some(place), true) => {
                gone.insert(place);
                places.remove(&text(entry));
            }
            (Some(place), false) => merge(&mut list[place], entry)?,
            (None, true) => {}
            (None, false) => {
                places.insert(text(entry), list.len());
                list.push(entry.clone());
            }
        }
    }
    let mut place = 0;
    list.retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
    Ok(())
}

/// What the patch adds stands before what was there, unless the patch itself places it after something that was.
fn merged_set(present: &[Value], entries: &[Value]) -> Vec<Value> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, entry) in present.iter().enumerate() {
        places.entry(entry.to_string()).or_insert(place);
    }
    let place = |entry: &Value| places.get(&entry.to_string()).copied();
    let patched: HashSet<String> = entries.iter().map(Value::to_string).collect();
    let mut kept = present
        .iter()
        .filter(|entry| !patched.contains(&entry.to_string()))
        .peekable();
    let mut merged = Vec::new();
    let mut added = HashSet::new();
    for entry in entries {
        while let (Some(at), Some(next)) = (place(entry), kept.peek()) {
            if place(next) > Some(at) {
                break;
            }
            merged.extend(kept.next().cloned());
        }
        if added.insert(entry.to_string()) {
            merged.push(entry.clone());
        }
    }
    merged.extend(kept.cloned());
    merged
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch
        .iter()
        .filter(|(name, _)| !name.starts_with('$'))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(mut object: Value, patch: &Value) -> Value {
        merge(&mut object, patch).unwrap();
        object
    }

    #[test]
    fn maps_merge_and_null_removes() {
        let object = json!({"data": {"a": "1", "b": "2"}, "list": [1, 2]});
        let patch = json!({"data": {"a": null, "c": "3"}, "list": [3]});
        assert_eq!(
            merged(object, &patch),
            json!({"data": {"b": "2", "c": "3"}, "list": [3]})
        );
    }

    #[test]
    fn finalizers_are_a_set_and_owners_merge_by_uid() {
        let object = json!({"metadata": {"finalizers": ["a", "b"], "ownerReferences": [{"uid": "1", "name": "x"}]}});
        let patch = json!({"metadata": {
            "finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"],
            "ownerReferences": [{"uid": "2"}, {"uid": "1", "controller": true}]}});
        let expected = json!({"metadata": {
            "finalizers": ["c", "b"],
            "ownerReferences": [{"uid": "1", "name": "x", "controller": true}, {"uid": "2"}]}});
        assert_eq!(merged(object, &patch), expected);
    }

    #[test]
    fn directives_replace_delete_and_retain() {
        let object = json!({"a": {"x": 1}, "b": {"y": 1}, "c": {"p": 1, "q": 2}});
        let patch = json!({"a": {"$patch": "replace", "z": 2}, "b": {"$patch": "delete"}, "c": {"$retainKeys": ["q"]}});
        assert_eq!(merged(object, &patch), json!({"a": {"z": 2}, "b": {}, "c": {"q": 2}}));
        assert!(merge(&mut json!({}), &json!({"$patch": "fold"})).is_err());
    }
}
