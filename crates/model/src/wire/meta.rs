//! The Kubernetes metadata of an object and of a list, as messages with the numbers that Kubernetes
//! publishes. Written by hand because [`Root`](super::Root) is made of them; the other meta types
//! are generated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kubernetes::RawJson;
use super::shape::{Optional, Plain, or_default, unset};
use super::time::Time;

/// What an object is: its kind and the API group and version it is written in.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TypeMeta {
    /// Kind, such as `PipelineRun`.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub kind: String,
    /// Group and version, such as `michelangelo.api/v2`.
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub api_version: String,
}

/// The metadata that every stored object has.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Unique within a namespace and kind; never changes.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub name: String,
    /// Prefix from which the server makes a name when none is given.
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub generate_name: String,
    /// Space in which the name is unique; empty for cluster-wide kinds.
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub namespace: String,
    /// Former address of the object; servers leave it empty.
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub self_link: String,
    /// Identity over time.
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub uid: String,
    /// Version of the stored object.
    #[prost(string, tag = "6")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub resource_version: String,
    /// Counts the changes of the desired state.
    #[prost(int64, tag = "7")]
    #[serde(with = "Plain::<i64>", skip_serializing_if = "unset")]
    pub generation: i64,
    /// When the server first stored the object.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "unset")]
    pub creation_timestamp: Option<Time>,
    /// When the object was asked to be deleted.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "unset")]
    pub deletion_timestamp: Option<Time>,
    /// Seconds between the request for deletion and the removal.
    #[prost(int64, optional, tag = "10")]
    #[serde(with = "Optional::<i64>", skip_serializing_if = "unset")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Key-value pairs to select objects by.
    #[prost(btree_map = "string, string", tag = "11")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub labels: BTreeMap<String, String>,
    /// Key-value pairs that are stored but not selected by.
    #[prost(btree_map = "string, string", tag = "12")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub annotations: BTreeMap<String, String>,
    /// Objects on whose existence this one depends.
    #[prost(message, repeated, tag = "13")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub owner_references: Vec<OwnerReference>,
    /// Names of those who must agree before the object is removed.
    #[prost(string, repeated, tag = "14")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub finalizers: Vec<String>,
    /// Which client set which fields.
    #[prost(message, repeated, tag = "17")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// Points at an owner in the same namespace, or at a cluster-wide one.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// Kind of the owner.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub kind: String,
    /// Name of the owner.
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub name: String,
    /// Identity of the owner.
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub uid: String,
    /// Group and version of the owner.
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub api_version: String,
    /// Whether this owner is the managing controller.
    #[prost(bool, optional, tag = "6")]
    #[serde(skip_serializing_if = "unset")]
    pub controller: Option<bool>,
    /// Whether the owner's foreground deletion waits for this object.
    #[prost(bool, optional, tag = "7")]
    #[serde(skip_serializing_if = "unset")]
    pub block_owner_deletion: Option<bool>,
}

/// The fields that one client manages through one way of writing.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedFieldsEntry {
    /// Name of the client's workflow.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub manager: String,
    /// `Apply` or `Update`.
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub operation: String,
    /// Version that the fields are written in.
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub api_version: String,
    /// When the set of fields last changed.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "unset")]
    pub time: Option<Time>,
    /// Format of the set; always `FieldsV1`.
    #[prost(string, tag = "6")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub fields_type: String,
    /// The set itself.
    #[prost(message, optional, tag = "7")]
    #[serde(rename = "fieldsV1", skip_serializing_if = "unset")]
    pub fields_v1: Option<RawJson>,
    /// Subresource through which was written; empty for the main resource.
    #[prost(string, tag = "8")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub subresource: String,
}

/// Metadata of a list.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMeta {
    /// Former address of the list; servers leave it empty.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub self_link: String,
    /// Version at which the list was taken.
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub resource_version: String,
    /// Token for the next page; empty on the last one.
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "or_default", skip_serializing_if = "unset")]
    pub r#continue: String,
    /// How many objects follow, where the server knows.
    #[prost(int64, optional, tag = "4")]
    #[serde(with = "Optional::<i64>", skip_serializing_if = "unset")]
    pub remaining_item_count: Option<i64>,
}
