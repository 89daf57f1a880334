//! Trials of an older program, whose own version was v1, and what the program of today makes of them.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_maintenance::convert::{Converted, Options, convert};
use kindex_model::kind::{Column, ColumnType, Encoded, Kind, Registry};
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::progress::NoProgress;
use kindex_store::{Address, MetadataStorage, RowImage, RowWrite};
use kindex_tests::databases::{patient, sqlite};
use kindex_tests::kinds::trial::KIND;
use kindex_tests::trials::{PLATFORM, REGISTRY};
use serde_json::{Value, json};

use crate::store::backend::Backend;

const fn column(name: &'static str, path: &'static [&'static str], ty: ColumnType) -> Column {
    Column {
        name,
        path,
        ty,
        own_namespace: false,
    }
}

const NAME: ColumnType = ColumnType::Text { chars: 255 };

/// The kind as the older program has it: the same columns, of other fields.
pub(crate) static OLD: Kind = Kind {
    version: "v1",
    versions: &[],
    columns: &[
        column("algorithm", &["spec", "method"], NAME),
        column("rate", &["spec", "rate"], ColumnType::Double),
        column("seconds", &["spec", "hours"], ColumnType::Int64),
        column("phase", &["status", "phase"], NAME),
    ],
    encode: |_| Encoded {
        proto: Some(b"as in v1".to_vec()),
        problems: Vec::new(),
    },
    ..KIND
};

/// A trial of `v1`; with notes, which `v2` has no place for.
pub(crate) fn trial(uid: &str, version: u64) -> Value {
    json!({
        "apiVersion": "traps.dev/v1",
        "kind": "Trial",
        "metadata": {
            "namespace": "shop", "name": format!("name-{uid}"), "uid": uid, "resourceVersion": version.to_string(),
            "creationTimestamp": "2024-02-29T12:34:56Z", "labels": {"team": "risk"}, "annotations": {"note": "ä"},
        },
        "spec": {"method": "boost", "rate": 0.25, "hours": 2, "notes": ["first"]},
        "status": {"phase": "Done"},
    })
}

/// The store of a program on the backend's database, with tables that were made for all.
pub(crate) async fn program(address: &Address, registry: Registry) -> Arc<dyn MetadataStorage> {
    let store = kindex_store::open(address, registry, &patient()).expect("the address is right");
    store.prepare().await.expect("prepared");
    store
}

pub(crate) async fn today(backend: &Backend) -> Arc<dyn MetadataStorage> {
    program(&backend.address, REGISTRY).await
}

/// Stores objects as the program does whose kind it is.
pub(crate) async fn store_as(
    store: &dyn MetadataStorage,
    kind: &'static Kind,
    objects: &[(Value, Life)],
    now: Timestamp,
) {
    let writes: Vec<RowWrite> = objects
        .iter()
        .map(|(object, life)| RowWrite::Store {
            version: project(kind, &object.to_string()),
            life: *life,
            revive: Revive::FromAny,
        })
        .collect();
    store.write(kind, &writes, now).await.expect("written");
}

pub(crate) fn project(kind: &Kind, text: &str) -> Arc<Version> {
    Version::project(kind, Object::parse_str(text).expect("an object"))
}

/// The text of an object of `v1` in `v2`.
pub(crate) fn in_v2(text: &str) -> String {
    kindex_convert::convert(&PLATFORM, &KIND, text, "v2").expect("it converts")
}

pub(crate) async fn image(store: &dyn MetadataStorage, uid: &str) -> RowImage {
    let images = store.row_images(&KIND, &[Uid::from(uid)]).await.expect("read");
    images.into_iter().next().expect("a row")
}

/// What the writer of today leaves of an object in an empty database.
pub(crate) async fn as_written(text: &str, life: Life) -> RowImage {
    let store = program(&sqlite::memory(), REGISTRY).await;
    let object: Value = serde_json::from_str(text).expect("JSON");
    let write = RowWrite::Store {
        version: project(&KIND, text),
        life,
        revive: Revive::Never,
    };
    store.write(&KIND, &[write], Timestamp::now()).await.expect("written");
    image(store.as_ref(), object["metadata"]["uid"].as_str().expect("a uid")).await
}

pub(crate) async fn run(store: &Arc<dyn MetadataStorage>, page_rows: u32) -> Converted {
    let options = Options {
        page_rows,
        ..Options::default()
    };
    let converted = convert(store, &PLATFORM, &KIND, &options, &NoProgress).await;
    converted.expect("converted")
}
