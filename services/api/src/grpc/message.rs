//! The messages of all services at once. They have the same fields and numbers for every kind, and an object in
//! them stays bytes; a test compares them with the emitted files.

use bytes::Bytes;
use kindex_model::wire::{ListMeta, TypeMeta};
use prost::Message;
use prost_types::Any;

/// An object in its message encoding. A field of a message type that occurs more than once is one message, whose
/// encoding is that of its parts one after the other.
pub(super) type Parts = Vec<Bytes>;

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateRequest {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) object: Parts,
    #[prost(message, optional, tag = "2")]
    pub(super) options: Option<CreateOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GetRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "3")]
    pub(super) options: Option<GetOptions>,
}

/// Of the whole object, and of its status.
#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateRequest {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) object: Parts,
    #[prost(message, optional, tag = "2")]
    pub(super) options: Option<UpdateOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "3")]
    pub(super) options: Option<DeleteOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteCollectionRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(super) delete_options: Option<DeleteOptions>,
    #[prost(message, optional, tag = "3")]
    pub(super) list_options: Option<ListOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(super) options: Option<ListOptions>,
    #[prost(message, optional, tag = "3")]
    pub(super) ext: Option<ListOptionsExt>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(super) options: Option<ListOptions>,
}

/// Of all calls that answer with one object.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ObjectResponse {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) object: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) list: Option<ObjectList>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ObjectList {
    #[prost(message, optional, tag = "1")]
    pub(super) type_meta: Option<TypeMeta>,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(super) items: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchResponse {
    #[prost(string, tag = "1")]
    pub(super) r#type: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) object: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateOptions {
    #[prost(string, repeated, tag = "1")]
    pub(super) dry_run: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) field_manager: String,
    #[prost(string, tag = "4")]
    pub(super) field_validation: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateOptions {
    #[prost(string, repeated, tag = "1")]
    pub(super) dry_run: Vec<String>,
    #[prost(string, tag = "2")]
    pub(super) field_manager: String,
    #[prost(string, tag = "3")]
    pub(super) field_validation: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GetOptions {
    #[prost(string, tag = "1")]
    pub(super) resource_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteOptions {
    #[prost(int64, optional, tag = "1")]
    pub(super) grace_period_seconds: Option<i64>,
    #[prost(message, optional, tag = "2")]
    pub(super) preconditions: Option<Preconditions>,
    #[prost(bool, optional, tag = "3")]
    pub(super) orphan_dependents: Option<bool>,
    #[prost(string, optional, tag = "4")]
    pub(super) propagation_policy: Option<String>,
    #[prost(string, repeated, tag = "5")]
    pub(super) dry_run: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Preconditions {
    #[prost(string, optional, tag = "1")]
    pub(super) uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) resource_version: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListOptions {
    #[prost(string, tag = "1")]
    pub(super) label_selector: String,
    #[prost(string, tag = "2")]
    pub(super) field_selector: String,
    #[prost(bool, tag = "3")]
    pub(super) watch: bool,
    #[prost(string, tag = "4")]
    pub(super) resource_version: String,
    #[prost(int64, optional, tag = "5")]
    pub(super) timeout_seconds: Option<i64>,
    #[prost(int64, tag = "7")]
    pub(super) limit: i64,
    #[prost(string, tag = "8")]
    pub(super) r#continue: String,
    #[prost(bool, tag = "9")]
    pub(super) allow_watch_bookmarks: bool,
    #[prost(string, tag = "10")]
    pub(super) resource_version_match: String,
    #[prost(bool, optional, tag = "11")]
    pub(super) send_initial_events: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListOptionsExt {
    #[prost(message, repeated, tag = "1")]
    pub(super) order_by: Vec<OrderBy>,
    #[prost(message, optional, tag = "2")]
    pub(super) operation: Option<CriterionOperation>,
    #[prost(message, optional, tag = "3")]
    pub(super) pagination: Option<PaginationSpec>,
    #[prost(string, repeated, tag = "4")]
    pub(super) returned_field_skip_list: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OrderBy {
    #[prost(string, tag = "1")]
    pub(super) field: String,
    #[prost(int32, tag = "2")]
    pub(super) dir: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CriterionOperation {
    #[prost(message, repeated, tag = "1")]
    pub(super) criterion: Vec<Criterion>,
    #[prost(int32, tag = "2")]
    pub(super) logical_operator: i32,
    #[prost(message, repeated, tag = "3")]
    pub(super) sub_operations: Vec<CriterionOperation>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Criterion {
    #[prost(string, tag = "1")]
    pub(super) field_name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) match_value: Option<Any>,
    #[prost(int32, tag = "3")]
    pub(super) operator: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PaginationSpec {
    #[prost(int32, tag = "1")]
    pub(super) offset: i32,
    #[prost(int32, tag = "2")]
    pub(super) limit: i32,
}
