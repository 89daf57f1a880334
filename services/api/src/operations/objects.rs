//! Reads fields of an object's JSON, and changes fields without touching the rest of the text.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Refusal;

/// As much of an object as verbs act on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    pub(super) metadata: HeadMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HeadMetadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) deletion_timestamp: Option<String>,
}

impl Head {
    pub(super) fn read(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

/// The metadata of an object, whose other fields are not read.
///
/// # Errors
/// A text without metadata.
pub(super) fn metadata_of(text: &str) -> Result<Value, Refusal> {
    let found = serde_json::from_str::<Metadata<'_>>(text);
    let metadata = found.and_then(|found| serde_json::from_str(found.metadata.get()));
    metadata.map_err(|error| unreadable(&error))
}

/// The name of an object that a client sends; empty where none is read. Of its metadata nothing else is read, because a
/// cluster takes fields that are null, and of a field that is there twice the last one.
pub(super) fn name_of(text: &str) -> String {
    text_of_metadata(text, "name")
}

/// With what the name of an object is to begin that has none; empty where that is not said.
pub(super) fn generate_name_of(text: &str) -> String {
    text_of_metadata(text, "generateName")
}

fn text_of_metadata(text: &str, field: &str) -> String {
    let metadata = metadata_of(text).unwrap_or_default();
    metadata[field].as_str().unwrap_or_default().to_owned()
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::bad_request(format!("the body is not an object: {error}"))
}

/// The object with a finalizer of ours, its text otherwise the same to the byte: so that what a client gave twice, or
/// misspelled, is seen by the cluster as it was sent. An object that is being deleted gets none.
///
/// # Errors
/// A text without metadata.
pub(super) fn with_finalizer(text: &str, finalizer: &str) -> Result<String, Refusal> {
    let mut metadata = metadata_of(text)?;
    let Some(fields) = metadata.as_object_mut() else {
        return Err(not_an_object());
    };
    if fields.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return Ok(text.to_owned());
    }
    let finalizers = fields.entry("finalizers").or_insert(Value::Null);
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    let Some(list) = finalizers.as_array_mut() else {
        return Err(Refusal::bad_request("metadata.finalizers is not a list"));
    };
    if list.iter().any(|known| known == finalizer) {
        return Ok(text.to_owned());
    }
    list.push(finalizer.into());
    with_metadata(text, &metadata)
}

/// The object with this name, its text otherwise the same to the byte.
///
/// # Errors
/// A text without metadata.
pub(super) fn with_name(text: &str, name: &str) -> Result<String, Refusal> {
    let mut metadata = metadata_of(text)?;
    let Some(fields) = metadata.as_object_mut() else {
        return Err(not_an_object());
    };
    fields.insert("name".to_owned(), name.into());
    with_metadata(text, &metadata)
}

/// The object with other metadata, and all other fields as they were sent.
fn with_metadata(text: &str, metadata: &Value) -> Result<String, Refusal> {
    let found: Metadata<'_> = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let place = found.metadata.get();
    // Borrowed from the text, so that it says where it stands.
    let start = place.as_ptr().addr() - text.as_ptr().addr();
    let (before, after) = (&text[..start], &text[start + place.len()..]);
    Ok(format!("{before}{metadata}{after}"))
}

fn not_an_object() -> Refusal {
    Refusal::bad_request("metadata is not an object")
}

#[cfg(test)]
pub(super) mod tests {
    use kindex_model::kind::Platform;

    use super::*;

    /// As if an apply that created such an object had to fail after it.
    #[test]
    fn metadata_is_read_of_an_object_too_deep_to_be_read() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let text = format!(r#"{{"spec":{deep},"metadata":{{"name":"a","finalizers":["f"]}}}}"#);
        assert_eq!(metadata_of(&text).expect("metadata")["finalizers"], json!(["f"]));
        assert!(metadata_of(&format!(r#"{{"metadata":{deep}}}"#)).is_err());
    }

    /// As if an archived object had to give its name to whoever says of another field what a cluster passes over.
    #[test]
    fn the_name_is_read_beside_fields_that_are_null_or_there_twice() {
        for (metadata, name) in [
            (r#"{"name":"a"}"#, "a"),
            (
                r#"{"name":"a","uid":null,"namespace":null,"resourceVersion":null}"#,
                "a",
            ),
            (r#"{"uid":"1","name":"a","uid":"2"}"#, "a"),
            (r#"{"name":"b","name":"a"}"#, "a"),
            (r#"{"name":null}"#, ""),
            (r#"{"name":1}"#, ""),
            ("{}", ""),
            ("[]", ""),
        ] {
            assert_eq!(name_of(&format!(r#"{{"metadata":{metadata}}}"#)), name, "{metadata}");
        }
        assert_eq!(name_of("{}"), "");
    }

    pub(in super::super) const PLATFORM: Platform = Platform {
        group: "g",
        version: "v1",
        finalizer: "g/Ingester",
        deleting: "g/Deleting",
        immutable: "g/Immutable",
        ..Platform::EMPTY
    };

    #[test]
    fn the_finalizer_comes_in_once_and_nothing_else_changes() {
        let text = r#"{"spec": {"n": 1.0e0, "n": 2},  "metadata": {"name": "a"} , "x":1}"#;
        let with = with_finalizer(text, PLATFORM.finalizer).expect("an object");
        assert_eq!(
            with,
            r#"{"spec": {"n": 1.0e0, "n": 2},  "metadata": {"finalizers":["g/Ingester"],"name":"a"} , "x":1}"#
        );
        assert_eq!(with_finalizer(&with, PLATFORM.finalizer).expect("an object"), with);
    }

    #[test]
    fn what_is_being_deleted_gets_no_finalizer_and_what_is_no_object_is_refused() {
        let leaving = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
        let unchanged = with_finalizer(leaving, PLATFORM.finalizer).expect("an object");
        assert_eq!(unchanged, leaving);
        for text in ["", "[]", "{}", r#"{"metadata":1}"#, r#"{"metadata":{"finalizers":1}}"#] {
            assert!(with_finalizer(text, PLATFORM.finalizer).is_err(), "{text}");
        }
    }
}
