//! Messages whose Rust types are written by hand, in the runtime's `wire` module.

use std::collections::BTreeMap;

/// Messages with hand-written types, beside those that the model resolves as well known: whole objects are made of
/// them.
const BY_HAND: [(&str, &str); 5] = [
    ("k8s.io.apimachinery.pkg.apis.meta.v1.TypeMeta", "crate::wire::TypeMeta"),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "crate::wire::ObjectMeta",
    ),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta", "crate::wire::ListMeta"),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.OwnerReference",
        "crate::wire::OwnerReference",
    ),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
        "crate::wire::ManagedFieldsEntry",
    ),
];

/// Well-known types with hand-written ones. Wrappers become options of the bare value.
const WELL_KNOWN: [(&str, &str); 26] = [
    ("google.protobuf.Timestamp", "crate::wire::Timestamp"),
    ("google.protobuf.Duration", "crate::wire::Duration"),
    ("google.protobuf.Struct", "crate::wire::Struct"),
    ("google.protobuf.Value", "crate::wire::Value"),
    ("google.protobuf.ListValue", "crate::wire::ListValue"),
    ("google.protobuf.Any", "crate::wire::Any"),
    ("google.protobuf.Empty", "crate::wire::Empty"),
    ("google.protobuf.FieldMask", "crate::wire::FieldMask"),
    ("google.protobuf.BoolValue", "bool"),
    ("google.protobuf.BytesValue", "::prost::alloc::vec::Vec<u8>"),
    ("google.protobuf.DoubleValue", "f64"),
    ("google.protobuf.FloatValue", "f32"),
    ("google.protobuf.Int32Value", "i32"),
    ("google.protobuf.Int64Value", "i64"),
    ("google.protobuf.StringValue", "::prost::alloc::string::String"),
    ("google.protobuf.UInt32Value", "u32"),
    ("google.protobuf.UInt64Value", "u64"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", "crate::wire::Time"),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime",
        "crate::wire::MicroTime",
    ),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.Duration",
        "crate::wire::GoDuration",
    ),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", "crate::wire::RawJson"),
    ("k8s.io.apimachinery.pkg.runtime.RawExtension", "crate::wire::RawJson"),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON",
        "crate::wire::RawJson",
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1beta1.JSON",
        "crate::wire::RawJson",
    ),
    (
        "k8s.io.apimachinery.pkg.util.intstr.IntOrString",
        "crate::wire::IntOrString",
    ),
    ("k8s.io.apimachinery.pkg.api.resource.Quantity", "crate::wire::Quantity"),
];

/// Rust paths by full name.
pub(crate) fn paths() -> BTreeMap<String, String> {
    BY_HAND
        .iter()
        .chain(&WELL_KNOWN)
        .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
        .collect()
}
