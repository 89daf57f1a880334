//! Keys, kinds and objects as unit tests begin with them. A test spells out only the fields that it is about, so that a
//! new field of an object is added here alone.

use std::collections::BTreeSet;

use kindex_model::kind::{Kind, Platform};
use kindex_model::object::ResourceVersion;
use kindex_model::reference::{Named, OnDelete, Reference, Target};

use crate::object::{DeletionState, Key, KindName, Object, Released};

/// The API group of the service that tests take as their own.
pub(crate) const GROUP: &str = "x.example.com";

/// The platform of that service.
pub(crate) const PLATFORM: Platform = Platform {
    group: GROUP,
    ..Platform::EMPTY
};

/// A kind of that service that names nothing.
pub(crate) static NETWORK: Kind = Kind {
    name: "Network",
    group: GROUP,
    version: "v1",
    plural: "networks",
    ..Kind::EMPTY
};

/// One whose objects name networks, which wait for them.
pub(crate) static CLUSTER: Kind = Kind {
    name: "Cluster",
    plural: "clusters",
    references: &[Reference {
        name: "network",
        targets: &[Target {
            service: None,
            group: GROUP,
            kind: "Network",
        }],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    }],
    ..NETWORK
};

/// Where an object of that service is.
pub(crate) fn key(kind: &str, name: &str) -> Key {
    key_in(GROUP, kind, name)
}

/// Where an object of any service is.
pub(crate) fn key_in(group: &str, kind: &str, name: &str) -> Key {
    Key {
        kind: KindName::new(group.to_owned(), kind.to_owned()),
        namespace: "default".into(),
        name: name.into(),
    }
}

/// A live object with the deletion finalizer. It names nothing, and nothing holds it.
pub(crate) fn live(key: Key, uid: &str) -> Object {
    Object {
        key,
        uid: uid.to_owned(),
        version: ResourceVersion(1),
        state: DeletionState::Live,
        requested: false,
        immutable: false,
        finalizers: Vec::new(),
        has_deletion_finalizer: true,
        references: BTreeSet::new(),
        others: BTreeSet::new(),
        phase: None,
        since: None,
        phases: Vec::new(),
        released: Released::default(),
        refused: false,
        edges: Vec::new(),
    }
}

/// Such an object once it is deleted, before its first phase is recorded.
pub(crate) fn deleting(key: Key, uid: &str) -> Object {
    Object {
        state: DeletionState::Deleting,
        ..live(key, uid)
    }
}
