//! The objects under load: how one is made and reached, how it ends, and what SQL lacks of it then. Knows nothing of
//! who writes to them.

use std::fmt;

use kindex_model::kind::{Kind, Registry};
use kindex_model::object::ResourceVersion;
use kindex_query::Life;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::json;

/// What a worker has done to an object in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing yet.
    Alive,
    /// Deleted, by a call or by the annotation.
    Deleted,
    /// Declared final.
    Archived,
}

impl End {
    /// What the row says then.
    pub(crate) fn life(self) -> Life {
        match self {
            Self::Alive => Life::Live,
            Self::Deleted => Life::Deleted,
            Self::Archived => Life::Archived,
        }
    }
}

/// What SQL does not hold as the cluster had it last.
#[derive(Debug)]
pub(crate) struct Stale {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) end: End,
    /// The version that the cluster confirmed last.
    pub(crate) last: String,
    /// What the row holds instead, if there is one.
    pub(crate) held: Option<(ResourceVersion, Life)>,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, end, .. } = self;
        write!(f, "{kind} {name}: {end:?}, the cluster had version {}; ", self.last)?;
        match self.held {
            Some((version, life)) => write!(f, "SQL holds {version}, {life:?}"),
            None => f.write_str("SQL has no row"),
        }
    }
}

pub(crate) fn find(registry: &Registry, name: &str) -> &'static Kind {
    let found = registry.kinds.iter().find(|kind| kind.name == name);
    found.expect("the kind is declared")
}

/// Access to the objects of a kind in the scenario's namespace.
pub(crate) fn api(client: &Client, kind: &Kind) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.name.to_owned(),
        plural: kind.plural.to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// An object that the ingester's finalizer holds from its first moment.
pub(crate) fn with_finalizer(kind: &Kind, name: &str, round: u64) -> DynamicObject {
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "metadata": {
            "name": name,
            "finalizers": [kindex_generated::registry().platform.finalizer],
            "labels": {"round": round.to_string(), "origin": "load"},
            "annotations": {"note": "first"},
        },
        "spec": {"owner": {"name": "ada"}, "description": format!("in round {round}")},
    });
    serde_json::from_value(object).expect("an object")
}
