//! What SQL keeps of an object beside its text: extracted columns, message bytes
//! and a content hash. Pure; knows no dialect.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::fields::fields_of;
use crate::kind::{Column, ColumnType, Kind, Problem};
use crate::object::{Metadata, Object};
use crate::picked::{picked, segments};
use crate::value::Value;

/// Hashes of an object's parts, by which an unchanged part is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHash {
    /// Of the JSON text.
    pub payload: [u8; 16],
    /// Of the labels.
    pub labels: [u8; 8],
    /// Of the annotations.
    pub annotations: [u8; 8],
}

impl ContentHash {
    /// The 32 bytes of the `content_hash` column: payload, labels, annotations.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.payload);
        bytes[16..24].copy_from_slice(&self.labels);
        bytes[24..].copy_from_slice(&self.annotations);
        bytes
    }

    /// The inverse of [`to_bytes`](ContentHash::to_bytes); `None` for any other length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 32] = bytes.try_into().ok()?;
        let mut hash = Self {
            payload: [0; 16],
            labels: [0; 8],
            annotations: [0; 8],
        };
        hash.payload.copy_from_slice(&bytes[..16]);
        hash.labels.copy_from_slice(&bytes[16..24]);
        hash.annotations.copy_from_slice(&bytes[24..]);
        Some(hash)
    }
}

/// One version of an object in the form that a store writes.
#[derive(Clone, Debug)]
pub struct Version {
    /// The object itself.
    pub object: Object,
    /// Extracted columns, in the order of [`Kind::columns`].
    pub columns: Vec<Value>,
    /// Message bytes; `None` where the object does not fit its message.
    pub proto: Option<Vec<u8>>,
    /// By which the store sees what did not change.
    pub hash: ContentHash,
    /// What could not be read exactly; a fact about the row, never a reason not to write it.
    pub problems: Vec<Problem>,
}

impl Version {
    /// Projects an object. Never fails: what cannot be read becomes NULL and a problem.
    pub fn project(kind: &Kind, object: Object) -> Arc<Self> {
        let encoded = (kind.encode)(object.text());
        let mut problems = encoded.problems;
        let columns = extract(kind.columns, &object, &mut problems);
        problems.extend(unstorable_creation(&object));
        let hash = content_hash(&object);
        Arc::new(Self {
            object,
            columns,
            proto: encoded.proto,
            hash,
            problems,
        })
    }
}

/// The column of the creation time takes no NULL: a store writes 1970 instead.
fn unstorable_creation(object: &Object) -> Option<Problem> {
    let time = object.metadata.creation_timestamp.filter(|time| !storable(time))?;
    Some(Problem {
        path: "metadata.creationTimestamp".to_owned(),
        message: format!("{time} does not fit DATETIME; 1970 is stored"),
    })
}

/// The hashes of an object's parts, without its projection.
pub fn content_hash(object: &Object) -> ContentHash {
    let mut hash = ContentHash {
        payload: [0; 16],
        labels: [0; 8],
        annotations: [0; 8],
    };
    hash.payload.copy_from_slice(&Sha256::digest(object.text())[..16]);
    let metadata = &object.metadata;
    hash.labels.copy_from_slice(&hash_map(&metadata.labels)[..8]);
    hash.annotations.copy_from_slice(&hash_map(&metadata.annotations)[..8]);
    hash
}

/// Lengths go in before texts, so that no two maps feed the same bytes.
fn hash_map(map: &std::collections::BTreeMap<String, String>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for text in map.iter().flat_map(|(key, value)| [key, value]) {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize().into()
}

/// Reads every column from the object's JSON text. One that is nested too deeply to be a value, which is a problem, has
/// its columns all the same: by these, holders of what is deleted are found.
pub fn extract(columns: &[Column], object: &Object, problems: &mut Vec<Problem>) -> Vec<Value> {
    let root = fields_of(object).unwrap_or_else(|error| {
        problems.push(Problem {
            path: String::new(),
            message: error.to_string(),
        });
        let paths: Vec<_> = columns.iter().map(|column| segments(column.path)).collect();
        picked(object.text(), &paths).unwrap_or_default()
    });
    let own = &object.metadata.namespace;
    columns
        .iter()
        .map(|column| {
            read(column, &root, own).unwrap_or_else(|message| {
                problems.push(Problem {
                    path: column.path.join("."),
                    message,
                });
                Value::Null
            })
        })
        .collect()
}

fn read(column: &Column, root: &Json, own_namespace: &str) -> Result<Value, String> {
    let mut parent = &Json::Null;
    let mut found = Some(root);
    for segment in column.path {
        parent = found.unwrap_or(&Json::Null);
        found = parent.get(segment);
    }
    match found {
        None | Some(Json::Null) if column.own_namespace && parent.is_object() => {
            Ok(Value::Text(own_namespace.to_owned()))
        }
        Some(Json::String(text)) if column.own_namespace && text.is_empty() => {
            Ok(Value::Text(own_namespace.to_owned()))
        }
        None | Some(Json::Null) => Ok(Value::Null),
        Some(json) => convert(column.ty, json),
    }
}

fn convert(ty: ColumnType, json: &Json) -> Result<Value, String> {
    let value = match (ty, json) {
        (ColumnType::Text { chars }, Json::String(text)) => {
            let found = text.chars().count();
            if found > chars as usize {
                return Err(format!("{found} characters do not fit VARCHAR({chars})"));
            }
            Some(Value::Text(text.clone()))
        }
        (ColumnType::Int32, json) => integer(json)
            .filter(|number| i32::try_from(*number).is_ok())
            .map(Value::Int),
        (ColumnType::Int64, json) => integer(json).map(Value::Int),
        (ColumnType::UInt64, json) => unsigned(json).map(Value::UInt),
        (ColumnType::Bool, Json::Bool(flag)) => Some(Value::Bool(*flag)),
        (ColumnType::Double, Json::Number(number)) => number.as_f64().map(Value::Double),
        (ColumnType::Time, Json::String(text)) => text.parse::<Timestamp>().ok().filter(storable).map(Value::Time),
        (ColumnType::Text { .. } | ColumnType::Bool | ColumnType::Double | ColumnType::Time, _) => None,
    };
    value.ok_or_else(|| format!("cannot read {} as {ty:?}", summary(json)))
}

/// Protojson writes 64-bit integers as strings, Kubernetes as numbers; both are read.
fn integer(json: &Json) -> Option<i64> {
    match json {
        Json::Number(number) => number.as_i64(),
        Json::String(text) => text.parse().ok(),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

fn unsigned(json: &Json) -> Option<u64> {
    match json {
        Json::Number(number) => number.as_u64(),
        Json::String(text) => text.parse().ok(),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

/// The value of `create_time`. The column takes no NULL; an object without a creation time that fits
/// has the zero time.
pub fn create_time(metadata: &Metadata) -> Timestamp {
    let time = metadata.creation_timestamp;
    time.filter(storable).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `DATETIME` holds the years 1000 to 9999.
/// <https://dev.mysql.com/doc/refman/8.4/en/datetime.html>
pub fn storable(time: &Timestamp) -> bool {
    const YEAR_1000: i64 = -30_610_224_000;
    const YEAR_10000: i64 = 253_402_300_800;
    (YEAR_1000..YEAR_10000).contains(&time.as_second())
}

fn summary(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn column(name: &'static str, path: &'static [&'static str], ty: ColumnType) -> Column {
        Column {
            name,
            path,
            ty,
            own_namespace: false,
        }
    }

    /// As if the row named nothing, so that nobody found it as a holder.
    #[test]
    fn the_columns_of_an_object_are_read_however_deeply_the_rest_of_it_is_nested() {
        let columns = [
            column("network", &["spec", "network", "name"], ColumnType::Text { chars: 63 }),
            Column {
                own_namespace: true,
                ..column(
                    "network_namespace",
                    &["spec", "network", "namespace"],
                    ColumnType::Text { chars: 63 },
                )
            },
            column("size", &["spec", "size"], ColumnType::Int64),
            column("ready", &["status", "ready"], ColumnType::Bool),
            column("absent", &["spec", "absent"], ColumnType::Int32),
        ];
        let read = |deep: &str| {
            let text = format!(
                r#"{{"metadata":{{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}},
                    "status":{{"ready":true}},"spec":{{"deep":{deep},"size":"12",
                        "network":{{"deep":{deep},"name":"blue"}}}}}}"#
            );
            let mut problems = Vec::new();
            let values = extract(&columns, &Object::parse_str(&text).expect("an object"), &mut problems);
            (values, problems.len())
        };
        let expected = vec![
            Value::Text("blue".to_owned()),
            Value::Text("n".to_owned()),
            Value::Int(12),
            Value::Bool(true),
            Value::Null,
        ];
        assert_eq!(read("1"), (expected.clone(), 0));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(
            read(&deep),
            (expected, 1),
            "people are told that there is something wrong"
        );
    }
}
