//! A kind made for these tests, with columns of every type and names that SQL reserves,
//! its tables in the form that the generator emits, and objects of it.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::kind::{
    Column, ColumnType, Comparison, Encoded, Key, Kind, NamedQuery, Operand, Platform, QueryCondition, QueryOrder,
    Registry,
};
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::RowWrite;
use serde_json::{Map, Value, json};

const fn column(name: &'static str, path: &'static [&'static str], ty: ColumnType) -> Column {
    Column {
        name,
        path,
        ty,
        own_namespace: false,
    }
}

pub(crate) const PARTS: Kind = Kind {
    name: "Widget",
    group: "test.kindex",
    version: "v1",
    plural: "widgets",
    singular: "widget",
    table: "widget",
    columns: COLUMNS,
    keys: &[
        Key {
            name: "widget_namespace_name",
            columns: &["namespace", "name"],
        },
        Key {
            name: "widget_create_time",
            columns: &["create_time"],
        },
        Key {
            name: "widget_delete_time",
            columns: &["delete_time"],
        },
        Key {
            name: "widget_size",
            columns: &["size"],
        },
    ],
    encode,
    ..Kind::EMPTY
};

const COLUMNS: &[Column] = &[
    column("group", &["spec", "group"], ColumnType::Text { chars: 64 }),
    column("order", &["spec", "order"], ColumnType::Int32),
    column("key", &["spec", "key"], ColumnType::Int64),
    column("rank", &["spec", "rank"], ColumnType::Double),
    column("ready", &["status", "ready"], ColumnType::Bool),
    column("end_time", &["status", "endTime"], ColumnType::Time),
    column("size", &["spec", "size"], ColumnType::UInt64),
];

pub(crate) static WIDGET: Kind = PARTS;

/// As a widget, and every version is kept.
pub(crate) static KEEPSAKE: Kind = KEEPSAKE_PARTS;

pub(crate) const KEEPSAKE_PARTS: Kind = Kind {
    name: "Keepsake",
    plural: "keepsakes",
    singular: "keepsake",
    table: "keepsake",
    history: true,
    events: false,
    keys: &[Key {
        name: "keepsake_namespace_name",
        columns: &["namespace", "name"],
    }],
    ..PARTS
};

/// As a widget, with events.
pub(crate) static NOTICE: Kind = Kind { events: true, ..PARTS };

pub(crate) static REGISTRY: Registry = Registry {
    platform: Platform {
        group: "test.kindex",
        version: "v1",
        finalizer: "test/Ingester",
        deleting: "test/Deleting",
        immutable: "test/Immutable",
        restored_from: "test/RestoredFrom",
        ..Platform::EMPTY
    },
    kinds: &[&WIDGET, &KEEPSAKE],
    schemas: &[
        ("mysql", include_str!("widget.mysql.sql")),
        ("sqlite", include_str!("widget.sqlite.sql")),
    ],
    queries: &[&RANKED],
    ..Registry::EMPTY
};

/// With a parameter of every type, one of them twice.
pub(crate) static RANKED: NamedQuery = NamedQuery {
    name: "ranked",
    doc: "Widgets of a group, the highest rank first.",
    kind: &WIDGET,
    conditions: &[
        compared("group", COLUMNS[0].ty, Comparison::Equal, Operand::Parameter("group")),
        compared(
            "order",
            COLUMNS[1].ty,
            Comparison::GreaterOrEqual,
            Operand::Parameter("least"),
        ),
        compared(
            "key",
            COLUMNS[2].ty,
            Comparison::GreaterOrEqual,
            Operand::Parameter("least"),
        ),
        compared("rank", COLUMNS[3].ty, Comparison::Less, Operand::Parameter("below")),
        compared(
            "ready",
            COLUMNS[4].ty,
            Comparison::NotEqual,
            Operand::Parameter("unlike"),
        ),
        compared(
            "create_time",
            ColumnType::Time,
            Comparison::Greater,
            Operand::Parameter("after"),
        ),
        compared("namespace", COLUMNS[0].ty, Comparison::Equal, Operand::Text("shop")),
    ],
    order: &[QueryOrder {
        column: "rank",
        ty: ColumnType::Double,
        descending: true,
    }],
    limit: Some(2),
};

const fn compared(column: &'static str, ty: ColumnType, comparison: Comparison, operand: Operand) -> QueryCondition {
    QueryCondition {
        column,
        ty,
        comparison,
        operand,
    }
}

/// Stands for a message encoding: any bytes that depend on the text, zero bytes among them.
fn encode(text: &str) -> Encoded {
    let reversed: Vec<u8> = text.bytes().rev().chain([0, 255]).collect();
    Encoded {
        proto: Some(reversed),
        problems: Vec::new(),
    }
}

/// An object in the making.
#[derive(Clone, Debug)]
pub(crate) struct Widget {
    pub(crate) api_version: &'static str,
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) labels: Map<String, Value>,
    pub(crate) annotations: Map<String, Value>,
    pub(crate) spec: Value,
    pub(crate) status: Value,
    /// `deletionTimestamp`.
    pub(crate) deletion: Option<String>,
    pub(crate) finalizers: Vec<String>,
}

pub(crate) fn widget(uid: &str, name: &str, version: u64) -> Widget {
    Widget {
        api_version: "test.kindex/v1",
        uid: uid.to_owned(),
        name: name.to_owned(),
        version,
        labels: Map::new(),
        annotations: Map::new(),
        spec: json!({}),
        status: json!({}),
        deletion: None,
        finalizers: Vec::new(),
    }
}

impl Widget {
    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn spec(mut self, spec: Value) -> Self {
        self.spec = spec;
        self
    }

    /// With a field beside the others that is too deep for a value to be read from its text.
    pub(crate) fn nested(mut self) -> Self {
        self.spec["nested"] = (0..200).fold(json!(1), |inner, _| json!([inner]));
        self
    }

    pub(crate) fn status(mut self, status: Value) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn text(&self) -> String {
        let mut object = json!({
            "apiVersion": self.api_version,
            "kind": "Widget",
            "metadata": {
                "namespace": "shop",
                "name": self.name,
                "uid": self.uid,
                "resourceVersion": self.version.to_string(),
                "creationTimestamp": "2024-02-29T12:34:56Z",
                "labels": self.labels,
                "annotations": self.annotations,
            },
            "spec": self.spec,
            "status": self.status,
        });
        if !self.finalizers.is_empty() {
            object["metadata"]["finalizers"] = json!(self.finalizers);
        }
        if let Some(time) = &self.deletion {
            object["metadata"]["deletionTimestamp"] = json!(time);
        }
        object.to_string()
    }

    pub(crate) fn project(&self) -> Arc<Version> {
        project(&self.text())
    }

    /// Stores the object as live, as a late write would: it revives nothing.
    pub(crate) fn live(&self) -> RowWrite {
        self.store(Life::Live, Revive::Never)
    }

    /// It leaves the cluster, and stays in SQL.
    pub(crate) fn archived(&self) -> RowWrite {
        self.store(Life::Archived, Revive::Never)
    }

    pub(crate) fn store(&self, life: Life, revive: Revive) -> RowWrite {
        RowWrite::Store {
            version: self.project(),
            life,
            revive,
        }
    }
}

pub(crate) fn project(text: &str) -> Arc<Version> {
    let object = Object::parse_str(text).expect("the test's object is one");
    Version::project(&WIDGET, object)
}

pub(crate) fn soft_delete(uid: &str) -> RowWrite {
    RowWrite::SoftDelete { uid: Uid::from(uid) }
}

/// A moment of the test's own clock, with microseconds that must survive.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::new(1_700_000_000 + second, 123_456_000).expect("in range")
}
