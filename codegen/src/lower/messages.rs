//! Reads descriptors into the model's messages and enums: resolved types, JSON names, docs from comments.

use std::collections::BTreeMap;

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use super::types;
use crate::model::{
    Cardinality, Enum, EnumName, EnumValue, Field, FieldType, MapKey, Message, MessageName, Oneof, Scalar,
};

/// Messages by name.
pub(super) type Messages = BTreeMap<MessageName, Message>;

/// Enums by name.
pub(super) type Enums = BTreeMap<EnumName, Enum>;

// Numbers of the descriptor's own fields, as source code info uses them in its paths.
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const MESSAGE_ONEOF: i32 = 8;
const ENUM_VALUE: i32 = 2;

/// Reads every message and enum of every file, nested ones under their full names.
pub(super) fn read(descriptors: &FileDescriptorSet) -> (Messages, Enums) {
    let mut into = (Messages::new(), Enums::new());
    for file in &descriptors.file {
        let file = FileReader::new(file);
        let package = file.descriptor.package();
        for (at, message) in (0..).zip(&file.descriptor.message_type) {
            file.message(package, message, &[FILE_MESSAGE, at], &mut into);
        }
        for (at, declared) in (0..).zip(&file.descriptor.enum_type) {
            file.enumeration(package, declared, &[FILE_ENUM, at], &mut into);
        }
    }
    into
}

/// One file and its comments.
struct FileReader<'a> {
    descriptor: &'a FileDescriptorProto,
    comments: BTreeMap<&'a [i32], String>,
}

impl<'a> FileReader<'a> {
    fn new(descriptor: &'a FileDescriptorProto) -> Self {
        let locations = descriptor.source_code_info.iter().flat_map(|info| &info.location);
        let comments = locations
            .filter_map(|location| {
                let leading = location.leading_comments.as_deref();
                let comment = leading.or(location.trailing_comments.as_deref())?;
                Some((location.path.as_slice(), comment_text(comment)))
            })
            .collect();
        Self { descriptor, comments }
    }

    fn doc(&self, path: &[i32]) -> String {
        self.comments.get(path).cloned().unwrap_or_default()
    }

    fn message(&self, scope: &str, message: &DescriptorProto, path: &[i32], into: &mut (Messages, Enums)) {
        let full_name = scoped(scope, message.name());
        let fields = (0..)
            .zip(&message.field)
            .map(|(at, field)| self.field(message, field, &child(path, MESSAGE_FIELD, at)))
            .collect();
        for (at, nested) in (0..).zip(&message.nested_type) {
            if !is_map_entry(nested) {
                self.message(&full_name, nested, &child(path, MESSAGE_NESTED, at), into);
            }
        }
        for (at, nested) in (0..).zip(&message.enum_type) {
            self.enumeration(&full_name, nested, &child(path, MESSAGE_ENUM, at), into);
        }
        let name = message_name(&full_name);
        let lowered = Message {
            name: name.clone(),
            file: self.descriptor.name().to_owned(),
            doc: self.doc(path),
            fields,
            oneofs: self.oneofs(message, path),
            recursive: false,
        };
        into.0.insert(name, lowered);
    }

    /// Synthetic oneofs come after the real ones, so the indices of the real ones stay right.
    fn oneofs(&self, message: &DescriptorProto, path: &[i32]) -> Vec<Oneof> {
        let is_real = |index: i32| {
            message
                .field
                .iter()
                .any(|field| field.oneof_index == Some(index) && !field.proto3_optional())
        };
        (0..)
            .zip(&message.oneof_decl)
            .filter(|(index, _)| is_real(*index))
            .map(|(index, oneof)| Oneof {
                name: oneof.name().to_owned(),
                doc: self.doc(&child(path, MESSAGE_ONEOF, index)),
            })
            .collect()
    }

    fn field(&self, message: &DescriptorProto, field: &FieldDescriptorProto, path: &[i32]) -> Field {
        let entry = map_entry(message, field);
        let value = entry.map_or(field, |entry| &entry.field[1]);
        let cardinality = match entry {
            Some(entry) => Cardinality::Map(map_key(entry.field[0].r#type())),
            None if field.label() == Label::Repeated => Cardinality::Repeated,
            None if self.has_presence(field) => Cardinality::Optional,
            None => Cardinality::Single,
        };
        let oneof = field
            .oneof_index
            .filter(|_| !field.proto3_optional())
            .and_then(|index| usize::try_from(index).ok());
        Field {
            name: field.name().to_owned(),
            json_name: field.json_name().to_owned(),
            number: field.number().unsigned_abs(),
            ty: field_type(value),
            cardinality,
            oneof,
            doc: self.doc(path),
        }
    }

    fn has_presence(&self, field: &FieldDescriptorProto) -> bool {
        let is_proto2 = matches!(self.descriptor.syntax(), "" | "proto2");
        field.proto3_optional() || (is_proto2 && field.label() == Label::Optional)
    }

    fn enumeration(&self, scope: &str, declared: &EnumDescriptorProto, path: &[i32], into: &mut (Messages, Enums)) {
        let name = enum_name(&scoped(scope, declared.name()));
        let values = (0..)
            .zip(&declared.value)
            .map(|(at, value)| EnumValue {
                name: value.name().to_owned(),
                number: value.number(),
                doc: self.doc(&child(path, ENUM_VALUE, at)),
            })
            .collect();
        let lowered = Enum {
            name: name.clone(),
            file: self.descriptor.name().to_owned(),
            doc: self.doc(path),
            values,
        };
        into.1.insert(name, lowered);
    }
}

fn child(path: &[i32], field: i32, index: i32) -> Vec<i32> {
    let mut child = path.to_vec();
    child.extend([field, index]);
    child
}

fn scoped(scope: &str, name: &str) -> String {
    if scope.is_empty() {
        name.to_owned()
    } else {
        format!("{scope}.{name}")
    }
}

/// Without the space after `//` and without blank lines around.
fn comment_text(comment: &str) -> String {
    let lines: Vec<&str> = comment
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end())
        .collect();
    lines.join("\n").trim().to_owned()
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message
        .options
        .as_ref()
        .is_some_and(prost_types::MessageOptions::map_entry)
}

fn map_entry<'m>(message: &'m DescriptorProto, field: &FieldDescriptorProto) -> Option<&'m DescriptorProto> {
    if field.r#type() != Type::Message || field.label() != Label::Repeated {
        return None;
    }
    let base = field.type_name().rsplit('.').next()?;
    message
        .nested_type
        .iter()
        .find(|nested| nested.name() == base && is_map_entry(nested))
}

fn map_key(ty: Type) -> MapKey {
    match ty {
        Type::String => MapKey::String,
        Type::Bool => MapKey::Bool,
        _ => MapKey::Integer,
    }
}

fn field_type(field: &FieldDescriptorProto) -> FieldType {
    let full_name = field.type_name().trim_start_matches('.');
    match field.r#type() {
        Type::Message | Type::Group => {
            types::special(full_name).unwrap_or_else(|| FieldType::Message(message_name(full_name)))
        }
        Type::Enum => FieldType::Enum(enum_name(full_name)),
        Type::String => FieldType::Scalar(Scalar::String),
        Type::Bytes => FieldType::Scalar(Scalar::Bytes),
        Type::Bool => FieldType::Scalar(Scalar::Bool),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => FieldType::Scalar(Scalar::Int32),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => FieldType::Scalar(Scalar::Int64),
        Type::Uint32 | Type::Fixed32 => FieldType::Scalar(Scalar::UInt32),
        Type::Uint64 | Type::Fixed64 => FieldType::Scalar(Scalar::UInt64),
        Type::Float => FieldType::Scalar(Scalar::Float),
        Type::Double => FieldType::Scalar(Scalar::Double),
    }
}

fn message_name(full_name: &str) -> MessageName {
    MessageName::parse(full_name).expect("the compiler checks names of messages")
}

fn enum_name(full_name: &str) -> EnumName {
    EnumName::parse(full_name).expect("the compiler checks names of enums")
}
