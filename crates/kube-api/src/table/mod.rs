//! Objects as the rows that `kubectl get` prints (`meta.k8s.io/v1` Table). Knows nothing of how objects are found and
//! of which answer a client asked for.

mod age;
mod columns;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use columns::PrinterColumn;

use crate::partial;
use crate::size::text_bytes;

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

/// A Table of `objects`: their names, then `columns`. Its metadata is empty, for the caller to fill in. Ages count
/// up to `now`.
pub fn render(columns: &[PrinterColumn], objects: &[Value], include: IncludeObject, now: Timestamp) -> Value {
    render_counted(columns, objects, include, now).0
}

/// A Table, and the steps that the paths of its columns took.
pub(crate) fn render_counted(
    columns: &[PrinterColumn],
    objects: &[Value],
    include: IncludeObject,
    now: Timestamp,
) -> (Value, usize) {
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
    let definitions: Vec<Value> = std::iter::once(columns::name_definition())
        .chain(columns.iter().map(PrinterColumn::definition))
        .collect();
    let rows: Vec<Value> = objects.iter().map(row).collect();
    let table = json!({
        "kind": "Table",
        "apiVersion": partial::VERSION,
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    });
    (table, STEPS_MAX - steps)
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
