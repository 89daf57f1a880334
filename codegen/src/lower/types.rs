//! Which protobuf message has a JSON form of its own, and which columns a field's type leads to. Everything that is
//! particular to a message by its name stands in the tables here.

use crate::model::{ColumnType, Field, FieldType, KubernetesType, Message, Part, Scalar, WellKnown};

/// Messages of Kubernetes with a JSON form of their own.
const KUBERNETES: [(&str, KubernetesType); 9] = [
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", KubernetesType::Time),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime",
        KubernetesType::MicroTime,
    ),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.Duration",
        KubernetesType::Duration,
    ),
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1",
        KubernetesType::RawObject,
    ),
    (
        "k8s.io.apimachinery.pkg.runtime.RawExtension",
        KubernetesType::RawObject,
    ),
    (
        "k8s.io.apimachinery.pkg.util.intstr.IntOrString",
        KubernetesType::IntOrString,
    ),
    (
        "k8s.io.apimachinery.pkg.api.resource.Quantity",
        KubernetesType::Quantity,
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON",
        KubernetesType::Json,
    ),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1beta1.JSON",
        KubernetesType::Json,
    ),
];

/// Messages of `google.protobuf` that inline fields may name, with the file that declares them.
pub(super) const GOOGLE_FILES: [(&str, &str); 17] = [
    ("Any", "google/protobuf/any.proto"),
    ("BoolValue", "google/protobuf/wrappers.proto"),
    ("BytesValue", "google/protobuf/wrappers.proto"),
    ("DoubleValue", "google/protobuf/wrappers.proto"),
    ("Duration", "google/protobuf/duration.proto"),
    ("Empty", "google/protobuf/empty.proto"),
    ("FieldMask", "google/protobuf/field_mask.proto"),
    ("FloatValue", "google/protobuf/wrappers.proto"),
    ("Int32Value", "google/protobuf/wrappers.proto"),
    ("Int64Value", "google/protobuf/wrappers.proto"),
    ("ListValue", "google/protobuf/struct.proto"),
    ("StringValue", "google/protobuf/wrappers.proto"),
    ("Struct", "google/protobuf/struct.proto"),
    ("Timestamp", "google/protobuf/timestamp.proto"),
    ("UInt32Value", "google/protobuf/wrappers.proto"),
    ("UInt64Value", "google/protobuf/wrappers.proto"),
    ("Value", "google/protobuf/struct.proto"),
];

/// A message that becomes more than one column.
pub(super) struct Composite {
    /// Last segment of the message's name.
    message: &'static str,
    /// Proto field, what is appended to the column's name, and which part it is; in column order.
    pub(super) parts: [(&'static str, &'static str, Part); 2],
    /// Whether the columns share one key, in column order, or have one each.
    pub(super) one_key: bool,
}

/// Found by name and fields, whatever the package: a platform may bring its own copy.
const COMPOSITES: [Composite; 2] = [
    Composite {
        message: "ResourceIdentifier",
        parts: [
            ("namespace", "namespace", Part::ResourceNamespace),
            ("name", "name", Part::ResourceName),
        ],
        one_key: true,
    },
    Composite {
        message: "UserInfo",
        parts: [
            ("name", "name", Part::UserName),
            ("proxy_user", "proxy_user", Part::UserProxyUser),
        ],
        one_key: false,
    },
];

/// The JSON form of a message, if it is not an object of its fields.
pub(super) fn special(full_name: &str) -> Option<FieldType> {
    if let Some(name) = full_name.strip_prefix("google.protobuf.") {
        return well_known(name).map(FieldType::WellKnown);
    }
    KUBERNETES
        .iter()
        .find(|(name, _)| *name == full_name)
        .map(|(_, ty)| FieldType::Kubernetes(*ty))
}

fn well_known(name: &str) -> Option<WellKnown> {
    Some(match name {
        "Timestamp" => WellKnown::Timestamp,
        "Duration" => WellKnown::Duration,
        "Struct" => WellKnown::Struct,
        "Value" => WellKnown::Value,
        "ListValue" => WellKnown::ListValue,
        "Any" => WellKnown::Any,
        "Empty" => WellKnown::Empty,
        "FieldMask" => WellKnown::FieldMask,
        "StringValue" => WellKnown::Wrapper(Scalar::String),
        "BytesValue" => WellKnown::Wrapper(Scalar::Bytes),
        "BoolValue" => WellKnown::Wrapper(Scalar::Bool),
        "Int32Value" => WellKnown::Wrapper(Scalar::Int32),
        "Int64Value" => WellKnown::Wrapper(Scalar::Int64),
        "UInt32Value" => WellKnown::Wrapper(Scalar::UInt32),
        "UInt64Value" => WellKnown::Wrapper(Scalar::UInt64),
        "FloatValue" => WellKnown::Wrapper(Scalar::Float),
        "DoubleValue" => WellKnown::Wrapper(Scalar::Double),
        _ => return None,
    })
}

/// What a column reads from a field of this type; `None` where one SQL value cannot hold it.
pub(super) fn column_type(ty: &FieldType) -> Option<ColumnType> {
    match ty {
        FieldType::Scalar(scalar) | FieldType::WellKnown(WellKnown::Wrapper(scalar)) => scalar_column(*scalar),
        FieldType::Enum(name) => Some(ColumnType::Enum(name.clone())),
        FieldType::WellKnown(WellKnown::Timestamp)
        | FieldType::Kubernetes(KubernetesType::Time | KubernetesType::MicroTime) => Some(ColumnType::Timestamp),
        FieldType::WellKnown(WellKnown::Duration | WellKnown::FieldMask)
        | FieldType::Kubernetes(KubernetesType::Duration) => Some(ColumnType::Text),
        FieldType::WellKnown(
            WellKnown::Struct | WellKnown::Value | WellKnown::ListValue | WellKnown::Any | WellKnown::Empty,
        )
        | FieldType::Kubernetes(
            KubernetesType::IntOrString | KubernetesType::Quantity | KubernetesType::RawObject | KubernetesType::Json,
        )
        | FieldType::Message(_) => None,
    }
}

fn scalar_column(scalar: Scalar) -> Option<ColumnType> {
    match scalar {
        Scalar::String => Some(ColumnType::Text),
        Scalar::Bool => Some(ColumnType::Bool),
        Scalar::Int32 => Some(ColumnType::Int32),
        // Every uint32 fits a signed BIGINT.
        Scalar::Int64 | Scalar::UInt32 => Some(ColumnType::Int64),
        Scalar::UInt64 => Some(ColumnType::UInt64),
        Scalar::Float | Scalar::Double => Some(ColumnType::Double),
        Scalar::Bytes => None,
    }
}

/// How the columns of a message are made, if it is a composite.
pub(super) fn composite(message: &Message) -> Option<&'static Composite> {
    use crate::model::QualifiedName as _;
    let has_text = |name: &str| {
        message
            .fields
            .iter()
            .any(|field| field.name == name && is_single_text(field))
    };
    COMPOSITES.iter().find(|composite| {
        composite.message == message.name.base() && composite.parts.iter().all(|(field, _, _)| has_text(field))
    })
}

fn is_single_text(field: &Field) -> bool {
    field.ty == FieldType::Scalar(Scalar::String) && field.cardinality == crate::model::Cardinality::Single
}

/// What a person calls a type that no column can hold.
pub(super) fn word(ty: &FieldType) -> String {
    match ty {
        FieldType::Scalar(scalar) => scalar_word(*scalar).to_owned(),
        FieldType::Enum(name) => format!("the enum {name}"),
        FieldType::Message(name) => format!("the message {name}"),
        FieldType::WellKnown(known) => format!("google.protobuf.{known:?}"),
        FieldType::Kubernetes(known) => format!("Kubernetes' {known:?}"),
    }
}

const fn scalar_word(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "string",
        Scalar::Bytes => "bytes",
        Scalar::Bool => "bool",
        Scalar::Int32 => "int32",
        Scalar::Int64 => "int64",
        Scalar::UInt32 => "uint32",
        Scalar::UInt64 => "uint64",
        Scalar::Float => "float",
        Scalar::Double => "double",
    }
}
