//! What is said of an object and its references: JSON, the same to everybody who asks.

use kindex_model::head::Head;
use kindex_model::kind::{Kind, Platform};
pub use kindex_model::object_state::State;
use kindex_model::reference_name::ReferenceName;
use kindex_query::{Life, Stored};
use serde::Serialize;

use crate::operations::{Answer, ObjectKey};

/// An object and the references on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct References {
    /// The object.
    pub target: Target,
    /// Those on it, in its order.
    pub references: Vec<ListedReference>,
}

/// The object that has references.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// `group/version`.
    pub api_version: String,
    /// `Network`.
    pub kind: String,
    /// Absent for kinds of the whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Absent where there is no such object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Absent where there is no such object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Whether it is archived, also while it waits for its deletion. The release of a reference is not recorded then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The version of an object in the cluster, for a release that depends on it. Absent in answers to changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The reference that was released last through the API, and the version before that, as `reference@version`.
    /// Absent where there is none, and in answers to changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub released_reference: String,
    /// The latest of these releases, the last one first: at most one of each reference, and at most
    /// [`RELEASES_MAX`](kindex_model::releases::RELEASES_MAX). Absent in answers to changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub released_references: Vec<String>,
}

/// One reference, and who holds by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedReference {
    /// As a whole: `cluster.compute.example.com/7f7a15ab-…`.
    pub name: String,
    /// Kind of the holder: as it is declared, in lower case where it is of another service.
    pub kind: String,
    /// Group of the holder.
    pub group: String,
    /// Uid of the holder.
    pub uid: String,
    /// Where the holder is of this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// The object that holds another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Absent for kinds of the whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name; absent where no object of the uid was ever stored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How far it is.
    pub state: State,
}

/// How far a stored object is.
pub(in super::super) fn state_of(stored: &Stored, kind: &Kind, platform: &Platform) -> State {
    match stored.life {
        Life::Deleted => State::Deleted,
        Life::Archived => State::Archived,
        Life::Live if Head::of(&stored.object, kind, platform).is_leaving() => State::Deleting,
        Life::Live => State::Live,
    }
}

impl Target {
    pub(in super::super) fn of(key: &ObjectKey<'_>, uid: &str, state: Option<State>) -> Self {
        Self {
            api_version: key.resource.api_version(),
            kind: key.resource.kind.name.to_owned(),
            namespace: key.namespace.to_owned(),
            name: key.name.to_owned(),
            uid: uid.to_owned(),
            state,
            archived: false,
            resource_version: String::new(),
            released_reference: String::new(),
            released_references: Vec::new(),
        }
    }

    /// That of an archived object.
    pub(in super::super) fn archived(key: &ObjectKey<'_>, uid: &str, state: State) -> Self {
        Self {
            archived: true,
            ..Self::of(key, uid, Some(state))
        }
    }
}

impl ListedReference {
    pub(in super::super) fn of(reference: &ReferenceName, kind: Option<&Kind>, holder: Option<Holder>) -> Self {
        Self {
            name: reference.to_string(),
            kind: kind.map_or_else(|| reference.kind().to_owned(), |kind| kind.name.to_owned()),
            group: reference.group().to_owned(),
            uid: reference.uid().to_owned(),
            holder,
        }
    }
}

impl References {
    pub(in super::super) fn answer(&self) -> Answer {
        Answer::found(serde_json::to_string(self).expect("texts are JSON"))
    }
}
