//! Inline `fields` of `crds.toml` to messages: types by name, nested tables, lists of enum values.

use std::collections::{BTreeMap, BTreeSet};

use super::protos::TypeIndex;
use super::shape::{MadeEnum, MadeField, MadeKind, MadeMessage, proto_name, type_name};
use super::types::GOOGLE_FILES;
use crate::diag::{Collector, messages};
use crate::source::{Span, Text};
use crate::spec::{FieldShape, FieldSpec, FieldsSpec};

const SCALARS: [&str; 9] = [
    "string", "bool", "int32", "int64", "uint32", "uint64", "float", "double", "bytes",
];

/// Types that protobuf allows as keys of a map, of those that can be written inline.
const MAP_KEYS: [&str; 6] = ["string", "bool", "int32", "int64", "uint32", "uint64"];

/// Makes spec and status of a kind. `None`: without a spec there is nothing to make, which was reported.
pub(super) fn make(
    kind: &str,
    package: &str,
    fields: &FieldsSpec,
    index: &TypeIndex,
    found: &mut Collector,
) -> Option<MadeKind> {
    let mut maker = Maker {
        index,
        imports: BTreeSet::new(),
        found,
    };
    let spec = fields.spec.as_ref()?;
    let spec = maker.message(&format!("{kind}Spec"), package, "What is wanted.", spec);
    let status = fields
        .status
        .as_ref()
        .map(|status| maker.message(&format!("{kind}Status"), package, "What is.", status));
    Some(MadeKind {
        spec,
        status,
        imports: maker.imports,
    })
}

struct Maker<'a> {
    index: &'a TypeIndex,
    imports: BTreeSet<String>,
    found: &'a mut Collector,
}

impl Maker<'_> {
    fn message(&mut self, name: &str, scope: &str, doc: &str, specs: &[FieldSpec]) -> MadeMessage {
        let full_name = format!("{scope}.{name}");
        let mut made = MadeMessage {
            name: name.to_owned(),
            doc: doc.to_owned(),
            fields: Vec::new(),
            messages: Vec::new(),
            enums: Vec::new(),
        };
        // Fields, nested types and enum values of a message share one scope in protobuf.
        let mut taken: BTreeMap<String, Span> = BTreeMap::new();
        for spec in specs {
            let json_name = &spec.name.value;
            let is_name = !json_name.is_empty()
                && json_name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
            if !is_name {
                self.found.push(messages::bad_field_name(&spec.name));
                continue;
            }
            let proto_name = proto_name(json_name);
            if let Some(first) = taken.insert(proto_name.clone(), spec.name.span) {
                self.found.push(messages::duplicate_field(&spec.name, first));
                continue;
            }
            let Some(ty) = self.shape(&full_name, &proto_name, spec, &mut made, &mut taken) else {
                continue;
            };
            made.fields.push(MadeField {
                json_name: json_name.clone(),
                name: proto_name,
                ty,
                doc: String::new(),
                span: spec.name.span,
            });
        }
        made
    }

    /// The type of a field; nested types go into `made`.
    fn shape(
        &mut self,
        full_name: &str,
        proto_name: &str,
        spec: &FieldSpec,
        made: &mut MadeMessage,
        taken: &mut BTreeMap<String, Span>,
    ) -> Option<String> {
        let nested = type_name(proto_name);
        match &spec.shape {
            FieldShape::Type(text) => self.field_type(text),
            FieldShape::Message(fields) => {
                let doc = format!("The value of `{}`.", spec.name.value);
                let message = self.message(&nested, full_name, &doc, fields);
                made.messages.push(message);
                Some(nested)
            }
            FieldShape::Enum(values) => {
                self.check_values(values, &spec.name, taken);
                made.enums.push(MadeEnum {
                    name: nested.clone(),
                    values: values.iter().map(|value| value.value.clone()).collect(),
                    span: spec.name.span,
                });
                Some(nested)
            }
        }
    }

    fn check_values(&mut self, values: &[Text], field: &Text, taken: &mut BTreeMap<String, Span>) {
        if values.is_empty() {
            self.found.push(messages::empty_enum(field));
        }
        for value in values {
            let is_name = value.value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && value.value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name {
                self.found.push(messages::bad_enum_value(value));
            }
            if let Some(first) = taken.insert(value.value.clone(), value.span) {
                self.found.push(messages::enum_value_taken(value, first));
            }
        }
    }

    /// `string`, `optional int64`, `repeated Timestamp`, `map<string, ResourceIdentifier>`.
    fn field_type(&mut self, text: &Text) -> Option<String> {
        let value = text.value.trim();
        for label in ["optional", "repeated"] {
            if let Some(rest) = value.strip_prefix(label).filter(|rest| rest.starts_with(' ')) {
                return Some(format!("{label} {}", self.named(text, rest.trim())?));
            }
        }
        let Some(inside) = value.strip_prefix("map<").and_then(|rest| rest.strip_suffix('>')) else {
            return self.named(text, value);
        };
        let Some((key, value)) = inside.split_once(',') else {
            self.found.push(messages::unknown_type(text, inside, SCALARS));
            return None;
        };
        let key = key.trim();
        if !MAP_KEYS.contains(&key) {
            self.found.push(messages::bad_map_key(text, key, &MAP_KEYS));
            return None;
        }
        Some(format!("map<{key}, {}>", self.named(text, value.trim())?))
    }

    /// A scalar as it is; a message or enum by its full name with a leading dot, its file noted as an import.
    fn named(&mut self, text: &Text, name: &str) -> Option<String> {
        if SCALARS.contains(&name) {
            return Some(name.to_owned());
        }
        let google = GOOGLE_FILES
            .iter()
            .find(|(short, _)| *short == name || name.strip_prefix("google.protobuf.") == Some(short));
        if let Some((short, file)) = google {
            self.imports.insert((*file).to_owned());
            return Some(format!(".google.protobuf.{short}"));
        }
        match self.index.find(name) {
            [] => {
                let shorts = self.index.short_names();
                let google = GOOGLE_FILES.iter().map(|(short, _)| *short);
                let candidates = SCALARS.into_iter().chain(google).chain(shorts);
                self.found.push(messages::unknown_type(text, name, candidates));
                None
            }
            [only] => {
                self.imports.insert(only.file.clone());
                Some(format!(".{}", only.full_name))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|ty| ty.full_name.as_str()).collect();
                self.found.push(messages::ambiguous_type(text, name, &names));
                None
            }
        }
    }
}
