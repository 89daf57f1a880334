//! Structural schemas from messages: what the API server checks and keeps of a kind's objects. The form of a schema
//! is in `json_schema`; the manifest around it is not known here.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>

use super::json_schema::{JsonSchema, JsonType};
use crate::model::{
    Cardinality, EnumName, Field, FieldType, Kind, KubernetesType, Message, MessageName, Model, Scalar, Version,
    WellKnown,
};

/// The package of Kubernetes' own kinds. `proto/` declares the part of them that message encoding needs; the API
/// server keeps them whole.
const KUBERNETES_KINDS: &str = "k8s.io.api.";

/// What objects are made of: the whole, its spec and its status.
#[derive(Clone, Copy)]
pub(super) struct Messages<'a> {
    root: &'a MessageName,
    spec: &'a MessageName,
    status: Option<&'a MessageName>,
}

impl<'a> Messages<'a> {
    /// In the kind's own version.
    pub(super) fn of(kind: &'a Kind) -> Self {
        Self {
            root: &kind.root,
            spec: &kind.spec,
            status: kind.status.message(),
        }
    }

    /// In another version.
    pub(super) fn of_version(version: &'a Version) -> Self {
        Self {
            root: &version.root,
            spec: &version.spec,
            status: version.status.message(),
        }
    }

    /// Whether objects have a status.
    pub(super) const fn has_status(self) -> bool {
        self.status.is_some()
    }
}

/// The schema of objects of these messages, which are what `doc` says.
pub(super) fn root(model: &Model, messages: Messages<'_>, doc: &str) -> JsonSchema {
    let walk = Walk {
        model,
        inside: std::slice::from_ref(messages.root),
    };
    walk.object(messages, JsonSchema::of(JsonType::Object)).described(doc)
}

/// A walk down the messages. Schemas cannot refer to each other, so each message is written out where it occurs.
#[derive(Clone, Copy)]
struct Walk<'a> {
    model: &'a Model,
    /// The messages that the walk is inside of.
    inside: &'a [MessageName],
}

impl Walk<'_> {
    /// An object of a kind: type and metadata have Kubernetes' form, the rest is the messages'.
    fn object(self, messages: Messages<'_>, metadata: JsonSchema) -> JsonSchema {
        let text = |doc| JsonSchema::of(JsonType::String).described(doc);
        let mut properties = vec![
            ("apiVersion".to_owned(), text("Group and version of the API.")),
            ("kind".to_owned(), text("Kind of the object.")),
            ("metadata".to_owned(), metadata),
            ("spec".to_owned(), self.message(messages.spec)),
        ];
        if let Some(status) = messages.status {
            properties.push(("status".to_owned(), self.message(status)));
        }
        JsonSchema::object(properties)
    }

    fn message(self, name: &MessageName) -> JsonSchema {
        let message = self.model.message(name);
        self.body(message).described(&message.doc)
    }

    /// A message inside itself would make the schema infinite: there the API server keeps what it gets.
    fn body(self, message: &Message) -> JsonSchema {
        if self.inside.contains(&message.name) || message.name.as_str().starts_with(KUBERNETES_KINDS) {
            return JsonSchema::any_object();
        }
        let mut inside = self.inside.to_vec();
        inside.push(message.name.clone());
        let walk = Walk {
            model: self.model,
            inside: &inside,
        };
        let kinds = &self.model.kinds;
        match kinds.iter().find(|kind| kind.root == message.name) {
            Some(kind) => walk.object(Messages::of(kind), JsonSchema::any_object()),
            None => walk.fields(message),
        }
    }

    fn fields(self, message: &Message) -> JsonSchema {
        let properties = message
            .fields
            .iter()
            .map(|field| (field.json_name.clone(), self.field(field)));
        let mut schema = JsonSchema::object(properties);
        schema.all_of = (0..message.oneofs.len())
            .map(|oneof| members(message, oneof))
            .filter(|members| members.len() > 1)
            .map(|members| JsonSchema::at_most_one(&members))
            .collect();
        schema
    }

    fn field(self, field: &Field) -> JsonSchema {
        let value = self.value(&field.ty);
        let schema = match field.cardinality {
            Cardinality::Single | Cardinality::Optional => value,
            Cardinality::Repeated => JsonSchema::list(value),
            Cardinality::Map(_) => JsonSchema::map(value),
        };
        schema.described(&field.doc)
    }

    fn value(self, ty: &FieldType) -> JsonSchema {
        match ty {
            FieldType::Scalar(ty) => scalar(*ty),
            FieldType::Enum(name) => self.enumeration(name),
            FieldType::Message(name) => self.message(name),
            FieldType::WellKnown(ty) => well_known(*ty),
            FieldType::Kubernetes(ty) => kubernetes(*ty),
        }
    }

    fn enumeration(self, name: &EnumName) -> JsonSchema {
        let enumeration = self.model.enumeration(name);
        JsonSchema {
            names: enumeration.values.iter().map(|value| value.name.clone()).collect(),
            ..JsonSchema::of(JsonType::String)
        }
        .described(&enumeration.doc)
    }
}

fn members(message: &Message, oneof: usize) -> Vec<&str> {
    message
        .fields
        .iter()
        .filter(|field| field.oneof == Some(oneof))
        .map(|field| field.json_name.as_str())
        .collect()
}

/// A 64-bit integer is a number in Kubernetes' JSON and text in protobuf's; both are accepted.
fn scalar(ty: Scalar) -> JsonSchema {
    match ty {
        Scalar::String => JsonSchema::of(JsonType::String),
        Scalar::Bytes => JsonSchema::format(JsonType::String, "byte"),
        Scalar::Bool => JsonSchema::of(JsonType::Boolean),
        Scalar::Int32 => JsonSchema::format(JsonType::Integer, "int32"),
        Scalar::Int64 => JsonSchema {
            pattern: Some("^-?[0-9]+$"),
            ..JsonSchema::int_or_string()
        },
        Scalar::UInt32 => JsonSchema {
            minimum: Some(0),
            maximum: Some(u32::MAX.into()),
            ..JsonSchema::format(JsonType::Integer, "int64")
        },
        Scalar::UInt64 => JsonSchema {
            pattern: Some("^[0-9]+$"),
            minimum: Some(0),
            ..JsonSchema::int_or_string()
        },
        Scalar::Float => JsonSchema::format(JsonType::Number, "float"),
        Scalar::Double => JsonSchema::format(JsonType::Number, "double"),
    }
}

fn well_known(ty: WellKnown) -> JsonSchema {
    match ty {
        WellKnown::Timestamp => JsonSchema::format(JsonType::String, "date-time"),
        WellKnown::Duration => JsonSchema::pattern(r"^-?[0-9]+(\.[0-9]{1,9})?s$"),
        WellKnown::Struct | WellKnown::Any => JsonSchema::any_object(),
        WellKnown::Value => JsonSchema::any_value(),
        WellKnown::ListValue => JsonSchema::list(JsonSchema::any_value()),
        WellKnown::Empty => JsonSchema::of(JsonType::Object),
        WellKnown::FieldMask => JsonSchema::of(JsonType::String),
        WellKnown::Wrapper(ty) => scalar(ty).or_null(),
    }
}

/// Kubernetes writes a time that is not set as null.
fn kubernetes(ty: KubernetesType) -> JsonSchema {
    match ty {
        KubernetesType::Time | KubernetesType::MicroTime => JsonSchema::format(JsonType::String, "date-time").or_null(),
        KubernetesType::Duration => JsonSchema::of(JsonType::String),
        KubernetesType::IntOrString | KubernetesType::Quantity => JsonSchema::int_or_string(),
        KubernetesType::RawObject => JsonSchema::any_object(),
        KubernetesType::Json => JsonSchema::any_value(),
    }
}
