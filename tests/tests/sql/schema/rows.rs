//! Rows of shipped kinds for tests that ask for them, written as the ingester writes them.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{MetadataStorage, RowWrite};
use serde_json::{Value, json};

/// Stores an object of namespace `ml`, with `rest` over what every object has.
pub(super) async fn put(store: &dyn MetadataStorage, kind: &Kind, uid: &str, name: &str, rest: Value) {
    put_as(store, kind, Life::Live, uid, name, rest).await;
}

/// As [`put`], for an object that lives elsewhere too.
pub(super) async fn put_as(
    store: &dyn MetadataStorage,
    kind: &Kind,
    life: Life,
    uid: &str,
    name: &str,
    mut rest: Value,
) {
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "metadata": {
            "uid": uid, "namespace": "ml", "name": name, "resourceVersion": "7",
            "creationTimestamp": "2026-10-01T12:00:00Z",
        },
    });
    let fields = rest.as_object_mut().expect("an object");
    if let Some(Value::Object(metadata)) = fields.remove("metadata") {
        object["metadata"].as_object_mut().expect("an object").extend(metadata);
    }
    object.as_object_mut().expect("an object").append(fields);
    let object = Object::parse_str(&object.to_string()).expect("an object");
    let write = RowWrite::Store {
        version: Version::project(kind, object),
        life,
        revive: Revive::Never,
    };
    store.write(kind, &[write], at(0)).await.expect("written");
}

/// Soft-deletes an object.
pub(super) async fn delete(store: &dyn MetadataStorage, kind: &Kind, uid: &str, second: i64) {
    let write = RowWrite::SoftDelete { uid: Uid::from(uid) };
    store.write(kind, &[write], at(second)).await.expect("deleted");
}

/// A moment of the test's own clock, in October 2026.
pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::new(1_791_000_000 + second, 0).expect("in range")
}
