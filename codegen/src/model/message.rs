//! Messages and enums as emitters need them: resolved types, JSON names, docs from comments, recursion found. The
//! descriptors they were read from are kept whole in [`super::Model::descriptors`].

use super::{EnumName, MessageName};

/// A protobuf message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Full name.
    pub name: MessageName,
    /// Import path of the file that declares it.
    pub file: String,
    /// The comment in the `.proto` file, trimmed; may be empty.
    pub doc: String,
    /// Fields in order of declaration.
    pub fields: Vec<Field>,
    /// Real oneofs in order of declaration; the synthetic ones of `optional` fields are not here.
    pub oneofs: Vec<Oneof>,
    /// Whether the message can contain itself, directly or through others.
    pub recursive: bool,
}

impl Message {
    /// The field with that JSON name.
    pub fn field_by_json_name(&self, json_name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.json_name == json_name)
    }
}

/// A field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name in the `.proto` file: `training_framework`.
    pub name: String,
    /// Name in JSON: `trainingFramework`.
    pub json_name: String,
    /// Field number.
    pub number: u32,
    /// Type of the value, of an element, or of a map's value.
    pub ty: FieldType,
    /// How many values.
    pub cardinality: Cardinality,
    /// Index into [`Message::oneofs`] of the oneof that the field belongs to.
    pub oneof: Option<usize>,
    /// The comment in the `.proto` file, trimmed; may be empty.
    pub doc: String,
}

/// A oneof: at most one of its fields is set. In JSON its fields appear directly in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oneof {
    /// Name in the `.proto` file.
    pub name: String,
    /// The comment in the `.proto` file, trimmed; may be empty.
    pub doc: String,
}

/// How many values a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cardinality {
    /// One; a scalar's absence reads as its zero value.
    Single,
    /// One, with presence (`optional`).
    Optional,
    /// A list.
    Repeated,
    /// A map with keys of that type.
    Map(MapKey),
}

/// Types that protobuf allows for map keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MapKey {
    /// `string`.
    String,
    /// Any integer type.
    Integer,
    /// `bool`.
    Bool,
}

/// The resolved type of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldType {
    /// A scalar.
    Scalar(Scalar),
    /// An enum, by name in JSON.
    Enum(EnumName),
    /// A message of the model.
    Message(MessageName),
    /// A message of `google.protobuf` with its own JSON form.
    WellKnown(WellKnown),
    /// A message of Kubernetes with its own JSON form.
    Kubernetes(KubernetesType),
}

/// Scalars of protobuf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// `string`.
    String,
    /// `bytes`, base64 in JSON.
    Bytes,
    /// `bool`.
    Bool,
    /// `int32`, `sint32`, `sfixed32`.
    Int32,
    /// `int64`, `sint64`, `sfixed64`.
    Int64,
    /// `uint32`, `fixed32`.
    UInt32,
    /// `uint64`, `fixed64`.
    UInt64,
    /// `float`.
    Float,
    /// `double`.
    Double,
}

/// Messages of `google.protobuf` whose JSON is not an object of their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WellKnown {
    /// RFC 3339 text.
    Timestamp,
    /// Text such as `1.5s`.
    Duration,
    /// Any JSON object.
    Struct,
    /// Any JSON value.
    Value,
    /// Any JSON list.
    ListValue,
    /// An object with `@type`.
    Any,
    /// An empty object.
    Empty,
    /// Text with comma-separated paths.
    FieldMask,
    /// A scalar that may be absent: `BoolValue`, `Int64Value` and so on.
    Wrapper(Scalar),
}

/// Messages of Kubernetes whose JSON is not an object of their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KubernetesType {
    /// `meta/v1.Time`: RFC 3339 text with seconds.
    Time,
    /// `meta/v1.MicroTime`: RFC 3339 text with microseconds.
    MicroTime,
    /// `meta/v1.Duration`: text such as `1h30m`.
    Duration,
    /// `util/intstr.IntOrString`: a number or text.
    IntOrString,
    /// `api/resource.Quantity`: text such as `500Mi`, or a number.
    Quantity,
    /// `runtime.RawExtension` and `meta/v1.FieldsV1`: any JSON object.
    RawObject,
    /// `apiextensions.JSON`: any JSON value.
    Json,
}

/// A protobuf enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// Full name.
    pub name: EnumName,
    /// Import path of the file that declares it.
    pub file: String,
    /// The comment in the `.proto` file, trimmed; may be empty.
    pub doc: String,
    /// Values in order of declaration, never empty; the first has number 0.
    pub values: Vec<EnumValue>,
}

/// A value of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumValue {
    /// Full name: `PIPELINE_RUN_STATE_FAILED`.
    pub name: String,
    /// Number on the wire.
    pub number: i32,
    /// The comment in the `.proto` file, trimmed; may be empty.
    pub doc: String,
}
