//! The simulated kind, its tables, and the annotations and finalizers that control its objects.

use kindex_model::kind::{Column, ColumnType, Key, Kind, Platform, Registry};
use kindex_model::object::Object;
use kindex_model::reference::{Named, OnDelete, Reference, Target};

/// The one namespace of the simulated cluster.
pub const NAMESPACE: &str = "sim";
/// Keeps an object until SQL holds its final version.
pub const FINALIZER: &str = "sim/Ingester";
/// The finalizer of another controller.
pub const FOREIGN_FINALIZER: &str = "sim/other";
/// The references that users place: an object of another kind, and one that the object owns.
pub const REFERENCES: [&str; 2] = ["node.sim.kindex/7f7a15ab-f1cc-4f3b-b1c0-000000000001", OWNED];
/// The reference of an object that is owned.
pub const OWNED: &str = "thing.sim.kindex/7f7a15ab-f1cc-4f3b-b1c0-000000000002";
/// The annotation that deletes an object if it is `"true"`.
pub const DELETING: &str = "sim/Deleting";
/// The annotation that makes an object final if it is `"true"`.
pub const IMMUTABLE: &str = "sim/Immutable";

/// A number in the spec that the main table rejects.
pub const POISON_VALUE: u64 = 666;
/// A label, key and value, that the label table rejects after the main table has accepted the row.
pub const POISON_LABEL: &str = "poison";

/// The simulated platform.
pub static PLATFORM: Platform = Platform {
    group: "sim.kindex",
    version: "v1",
    finalizer: FINALIZER,
    deleting: DELETING,
    immutable: IMMUTABLE,
    restored_from: "sim/RestoredFrom",
    ..Platform::EMPTY
};

/// A kind whose objects stay until they are deleted or marked.
pub static THING: Kind = kind(false, false);

/// The same kind where it is declared immutable: every object is final at birth.
pub static FINAL_THING: Kind = kind(true, false);

/// The same kind where all versions are kept.
pub static KEPT_THING: Kind = kind(false, true);

/// The simulated platform with the schema that holds it.
pub static REGISTRY: Registry = Registry {
    platform: PLATFORM,
    kinds: &[&KEPT_THING],
    schemas: &[("sqlite", include_str!("thing.sqlite.sql"))],
    ..Registry::EMPTY
};

/// A kind whose objects those of the simulated kind own. Its ingester is not simulated.
pub static PART: Kind = Kind {
    name: "Part",
    plural: "parts",
    singular: "part",
    table: "part",
    columns: &[Column {
        name: "thing",
        path: &["spec", "thing"],
        ty: ColumnType::Text { chars: 253 },
        own_namespace: false,
    }],
    keys: &[Key {
        name: "part_thing",
        columns: &["thing"],
    }],
    references: &[Reference {
        name: "thing",
        targets: &[Target {
            service: None,
            group: THING.group,
            kind: THING.name,
        }],
        kind_column: None,
        path: &["spec", "thing"],
        named: Named::Name,
        columns: &["thing"],
        owned: true,
        on_delete: OnDelete::Cascade,
    }],
    ..kind(false, false)
};

/// What may own what in the simulated cluster.
pub static KINDS: Registry = Registry {
    kinds: &[&THING, &PART],
    ..REGISTRY
};

const fn kind(immutable: bool, history: bool) -> Kind {
    Kind {
        name: "Thing",
        group: "sim.kindex",
        version: "v1",
        plural: "things",
        singular: "thing",
        table: "thing",
        immutable,
        history,
        events: true,
        columns: &[Column {
            name: "value",
            path: &["spec", "value"],
            ty: ColumnType::Int64,
            own_namespace: false,
        }],
        keys: &[Key {
            name: "thing_namespace_name",
            columns: &["namespace", "name"],
        }],
        ..Kind::EMPTY
    }
}

/// Whether the database rejects this text, because of its value or a label.
pub fn is_poison(object: &Object) -> bool {
    let labeled = object.metadata.labels.values().any(|value| value == POISON_LABEL);
    labeled || object.text().contains("\"value\":666")
}
