//! Objects as the rows that `kubectl get` prints (`meta.k8s.io/v1` Table). Knows nothing of how objects are found and
//! of which answer a client asked for.

mod age;
mod columns;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use columns::PrinterColumn;

use crate::list::ListMeta;
use crate::partial;
use crate::size::text_bytes;

/// The kind of a table.
pub(crate) const KIND: &str = "Table";

/// The steps that the paths of all columns may take through all objects of one table: a definition may have paths that
/// look at much for each cell. Cells beyond stay empty.
pub(crate) const STEPS_MAX: usize = 10_000_000;
/// What the cells of one row may hold: many columns may show the same large value. Cells beyond stay empty.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// How much of each object stands beside its row (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Only the metadata, as a PartialObjectMetadata.
    #[default]
    Metadata,
    /// Nothing.
    None,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// What the parameter `includeObject` asks for.
    pub fn of_parameter(parameter: Option<&str>) -> Self {
        match parameter {
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            Some(_) | None => Self::Metadata,
        }
    }
}

/// A Table of one object, at the version of the object. Ages count up to `now`.
pub fn of_object(columns: &[PrinterColumn], object: &Value, include: IncludeObject, now: Timestamp) -> Value {
    let (mut table, _) = render_counted(columns, std::slice::from_ref(object), include, now);
    table["metadata"] = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    table
}

/// A Table of a list, or of a page of one. Ages count up to `now`.
pub fn of_list(
    columns: &[PrinterColumn],
    objects: &[Value],
    include: IncludeObject,
    now: Timestamp,
    meta: &ListMeta,
) -> Value {
    let (mut table, _) = render_counted(columns, objects, include, now);
    table["metadata"] = meta.to_value();
    table
}

/// A bookmark of a watch as a Table: only its metadata.
pub fn of_bookmark(bookmark: &Value) -> Value {
    table(bookmark["metadata"].clone(), Value::Null, Vec::new())
}

/// Removes the columns of a Table: a watch shows them only once.
pub fn remove_columns(table: &mut Value) {
    table["columnDefinitions"] = Value::Null;
}

/// What stands before the rows of a Table in JSON; [`LIST_END`](crate::list::LIST_END) follows them.
pub fn head(columns: &[PrinterColumn], meta: &ListMeta) -> String {
    let (metadata, definitions) = (meta.to_value(), definitions(columns));
    format!(
        "{{\"apiVersion\":\"{}\",\"kind\":\"{KIND}\",\"metadata\":{metadata},\
         \"columnDefinitions\":{definitions},\"rows\":[",
        partial::VERSION
    )
}

/// The rows of `objects`: their names, then `columns`. Ages count up to `now`.
pub fn rows(columns: &[PrinterColumn], objects: &[Value], include: IncludeObject, now: Timestamp) -> Vec<Value> {
    rows_counted(columns, objects, include, now).0
}

/// A Table whose metadata is empty, and the steps that the paths of its columns took.
pub(crate) fn render_counted(
    columns: &[PrinterColumn],
    objects: &[Value],
    include: IncludeObject,
    now: Timestamp,
) -> (Value, usize) {
    let (rows, steps) = rows_counted(columns, objects, include, now);
    (table(json!({}), definitions(columns), rows), steps)
}

fn table(metadata: Value, definitions: Value, rows: Vec<Value>) -> Value {
    let mut table = json!({"apiVersion": partial::VERSION, "kind": KIND});
    table["metadata"] = metadata;
    table["columnDefinitions"] = definitions;
    table["rows"] = rows.into();
    table
}

fn definitions(columns: &[PrinterColumn]) -> Value {
    std::iter::once(columns::name_definition())
        .chain(columns.iter().map(PrinterColumn::definition))
        .collect()
}

fn rows_counted(
    columns: &[PrinterColumn],
    objects: &[Value],
    include: IncludeObject,
    now: Timestamp,
) -> (Vec<Value>, usize) {
    let paths: Vec<_> = columns.iter().map(PrinterColumn::path).collect();
    let mut steps = STEPS_MAX;
    let row = |object: &Value| {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
        let mut room = ROW_BYTES_MAX;
        let declared = columns.iter().zip(&paths).map(|(column, path)| {
            let found = path.first(object, &mut steps)?;
            room = room.checked_sub(text_bytes(found))?;
            Some(column.cell(found, now))
        });
        let declared = declared.map(Option::unwrap_or_default);
        let cells: Vec<Value> = std::iter::once(name).chain(declared).collect();
        json!({ "cells": cells, "object": beside(object, include) })
    };
    let rows = objects.iter().map(row).collect();
    (rows, STEPS_MAX - steps)
}

fn beside(object: &Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => partial::of(object),
    }
}

#[cfg(test)]
mod tests;
