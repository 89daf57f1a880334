//! `fields`: the shape of a message as written.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::Reader;
use super::{FieldShape, FieldSpec, FieldsSpec};
use crate::diag::messages;
use crate::source::Text;

/// The fields of a kind, or of one of its versions; `owner` is its name.
pub(super) fn inline_fields(reader: &mut Reader<'_>, owner: &Text, table: &DeTable<'_>) -> FieldsSpec {
    let mut fields = FieldsSpec {
        spec: None,
        status: None,
    };
    let mut has_spec = false;
    for (name, value) in reader.entries(table) {
        let part = match name.value.as_str() {
            "spec" => {
                has_spec = true;
                &mut fields.spec
            }
            "status" => &mut fields.status,
            _ => {
                reader.found.push(messages::unknown_part(&name));
                continue;
            }
        };
        match value.get_ref() {
            DeValue::Table(table) => *part = Some(message_fields(reader, table)),
            other => {
                let span = reader.span(value);
                let found = other.type_str();
                let error = messages::wrong_sort(&name.value, "a table", found, span);
                reader.found.push(error);
            }
        }
    }
    if !has_spec {
        reader.found.push(messages::fields_without_spec(owner));
    }
    fields
}

fn message_fields(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Vec<FieldSpec> {
    let mut fields = Vec::new();
    for (name, value) in reader.entries(table) {
        if let Some(shape) = field_shape(reader, &name, value) {
            fields.push(FieldSpec { name, shape });
        }
    }
    fields
}

fn field_shape(reader: &mut Reader<'_>, name: &Text, value: &Spanned<DeValue<'_>>) -> Option<FieldShape> {
    let span = reader.span(value);
    match value.get_ref() {
        DeValue::String(ty) => Some(FieldShape::Type(reader.text(ty, span))),
        DeValue::Table(table) => Some(FieldShape::Message(message_fields(reader, table))),
        DeValue::Array(values) if values.iter().all(|value| value.get_ref().is_str()) => {
            let values = values
                .iter()
                .filter_map(|value| Some((value.get_ref().as_str()?, reader.span(value))))
                .map(|(value, span)| reader.text(value, span))
                .collect();
            Some(FieldShape::Enum(values))
        }
        other => {
            let wanted = "a type, a table of fields or a list of enum values";
            let error = messages::wrong_sort(&name.value, wanted, other.type_str(), span);
            reader.found.push(error);
            None
        }
    }
}
