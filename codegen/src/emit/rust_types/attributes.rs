//! The serde attributes of messages: how each combination of type and cardinality is written in Kubernetes JSON.
//! Attribute paths carry no leading dot, because prost-build takes one for a prefix that also matches what is nested.

use prost_build::Config;

use super::ident;
use super::placement::Placement;
use crate::model::{
    Cardinality, Enum, EnumName, Field, FieldType, Kind, Message, Model, QualifiedName, Scalar, Scope, WellKnown,
};

const SERDE: &str = "#[derive(serde::Serialize, serde::Deserialize)]";

/// Adds serde to a message that occurs in objects.
pub(crate) fn serde(config: &mut Config, message: &Message, model: &Model, placement: &Placement) {
    let full = message.name.full();
    let codecs = Codecs {
        model,
        placement,
        message,
    };
    config.message_attribute(full, format!("{SERDE}\n#[serde(default)]"));
    for field in &message.fields {
        match field.oneof {
            Some(oneof) => {
                let oneof = &message.oneofs[oneof].name;
                let attribute = codecs.member(field);
                config.field_attribute(format!("{full}.{oneof}.{}", field.name), attribute);
            }
            None => {
                let attribute = codecs.field(field);
                config.field_attribute(format!("{full}.{}", field.name), attribute);
            }
        }
    }
    for oneof in &message.oneofs {
        let path = format!("{full}.{}", oneof.name);
        config.type_attribute(&path, SERDE);
        config.field_attribute(&path, r#"#[serde(flatten, deserialize_with = "wire::oneof")]"#);
    }
}

/// Adds a sentence wherever the `.proto` file has no comment.
pub(crate) fn docs_of_message(config: &mut Config, message: &Message) {
    let full = message.name.full();
    if message.doc.is_empty() {
        config.message_attribute(full, doc(&format!("The message `{full}`.")));
    }
    for field in message.fields.iter().filter(|field| field.doc.is_empty()) {
        let path = match field.oneof {
            Some(oneof) => format!("{full}.{}.{}", message.oneofs[oneof].name, field.name),
            None => format!("{full}.{}", field.name),
        };
        config.field_attribute(path, doc(&format!("`{}` in JSON.", field.json_name)));
    }
    for oneof in message.oneofs.iter().filter(|oneof| oneof.doc.is_empty()) {
        let path = format!("{full}.{}", oneof.name);
        config.type_attribute(&path, doc("At most one of these."));
        config.field_attribute(&path, doc("At most one of its members."));
    }
}

/// Adds a sentence wherever the `.proto` file has no comment.
pub(crate) fn docs_of_enum(config: &mut Config, enumeration: &Enum) {
    let full = enumeration.name.full();
    if enumeration.doc.is_empty() {
        config.enum_attribute(full, doc(&format!("The enum `{full}`.")));
    }
    for value in enumeration.values.iter().filter(|it| it.doc.is_empty()) {
        let path = format!("{full}.{}", value.name);
        config.field_attribute(path, doc(&format!("`{}` in JSON.", value.name)));
    }
}

fn doc(text: &str) -> String {
    format!("#[doc = {:?}]", format!(" {text}"))
}

/// Makes the spec of a kind bring the kind's root type, for typed clients.
pub(crate) fn custom_resource(config: &mut Config, kind: &Kind, placement: &Placement) {
    let mut items = vec![
        format!("group = {:?}", kind.group.as_str()),
        format!("version = {:?}", kind.version.as_str()),
        format!("kind = {:?}", kind.name.as_str()),
        format!("plural = {:?}", kind.plural),
        format!("singular = {:?}", kind.singular),
        format!("doc = {:?}", kind.doc),
    ];
    match kind.scope {
        Scope::Namespaced => items.push("namespaced".to_owned()),
        Scope::Cluster => {}
    }
    if let Some(status) = kind.status.message() {
        items.push(format!("status = {:?}", placement.rust_path(status.full())));
    }
    items.push("schema = \"disabled\"".to_owned());
    let attribute = format!("#[derive(kube::CustomResource)]\n#[kube({})]", items.join(", "));
    config.message_attribute(kind.spec.full(), attribute);
}

/// What serde does with a value when nothing is said.
enum Codec {
    /// What Kubernetes JSON wants.
    Derived,
    /// Something else; the text names the type that knows better.
    Named(String),
}

struct Codecs<'a> {
    model: &'a Model,
    placement: &'a Placement,
    message: &'a Message,
}

impl Codecs<'_> {
    /// The attribute of a struct's field.
    fn field(&self, field: &Field) -> String {
        let ident = ident::field(&field.name);
        let mut items = Vec::new();
        if ident::serde_name(&ident) != field.json_name {
            items.push(format!("rename = {:?}", field.json_name));
        }
        items.extend(self.adapter(field));
        items.push(r#"skip_serializing_if = "wire::unset""#.to_owned());
        format!("#[serde({})]", items.join(", "))
    }

    /// The attribute of a oneof's variant.
    fn member(&self, field: &Field) -> String {
        let rename = format!("rename = {:?}", field.json_name);
        match self.codec(&field.ty, 1) {
            Codec::Derived => format!("#[serde({rename})]"),
            Codec::Named(codec) => {
                format!("#[serde({rename}, with = \"wire::Plain::<{codec}>\")]")
            }
        }
    }

    fn adapter(&self, field: &Field) -> Option<String> {
        let or_default = || Some(r#"deserialize_with = "wire::or_default""#.into());
        let with = |shape: &str, codec: &str| Some(format!("with = \"wire::{shape}::<{codec}>\""));
        match (field.cardinality, self.codec(&field.ty, 0)) {
            (Cardinality::Single | Cardinality::Optional, Codec::Derived) if has_presence(field) => {
                match field.ty {
                    // null is one of the values.
                    FieldType::WellKnown(WellKnown::Value) => Some(r#"deserialize_with = "wire::present""#.into()),
                    // serde itself reads null as None.
                    _ => None,
                }
            }
            (Cardinality::Single | Cardinality::Optional, Codec::Named(codec)) if has_presence(field) => {
                with("Optional", &codec)
            }
            (Cardinality::Single | Cardinality::Optional, Codec::Derived) => or_default(),
            (Cardinality::Single | Cardinality::Optional, Codec::Named(codec)) => with("Plain", &codec),
            (Cardinality::Repeated, Codec::Derived) => or_default(),
            (Cardinality::Repeated, Codec::Named(codec)) => with("Repeated", &codec),
            (Cardinality::Map(key), codec) => match (key, codec) {
                (crate::model::MapKey::String, Codec::Derived) => or_default(),
                (_, Codec::Named(codec)) => with("Map", &format!("_, {codec}")),
                // serde cannot read keys other than strings once they went through a buffer.
                (_, Codec::Derived) => with("Map", "_, wire::Nested<_>"),
            },
        }
    }

    /// `depth` is how many modules below the message's own the attribute stands in.
    fn codec(&self, ty: &FieldType, depth: usize) -> Codec {
        match ty {
            FieldType::Scalar(scalar) | FieldType::WellKnown(WellKnown::Wrapper(scalar)) => scalar_codec(*scalar),
            FieldType::Enum(name) => Codec::Named(format!("wire::Name<{}>", self.enum_path(name, depth))),
            FieldType::Message(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => Codec::Derived,
        }
    }

    /// An enum of the same file is named as a person would, others by their whole path.
    fn enum_path(&self, name: &EnumName, depth: usize) -> String {
        if self.model.enumeration(name).file != self.message.file {
            return self.placement.rust_path(name.full());
        }
        let nesting = self.placement.nesting(self.message.name.full()) + depth;
        format!(
            "{}{}",
            "super::".repeat(nesting),
            self.placement.local_path(name.full())
        )
    }
}

fn scalar_codec(scalar: Scalar) -> Codec {
    let name = match scalar {
        Scalar::String | Scalar::Bool => return Codec::Derived,
        Scalar::Bytes => "wire::Base64",
        Scalar::Int32 => "i32",
        Scalar::Int64 => "i64",
        Scalar::UInt32 => "u32",
        Scalar::UInt64 => "u64",
        Scalar::Float => "f32",
        Scalar::Double => "f64",
    };
    Codec::Named(name.to_owned())
}

/// Whether the Rust type of a single value is an `Option`.
pub(crate) fn has_presence(field: &Field) -> bool {
    match (field.cardinality, &field.ty) {
        (Cardinality::Repeated | Cardinality::Map(_), _) => false,
        (Cardinality::Optional, _) => true,
        (Cardinality::Single, FieldType::Scalar(_) | FieldType::Enum(_)) => false,
        (Cardinality::Single, FieldType::Message(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_)) => true,
    }
}
