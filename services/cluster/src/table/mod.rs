//! Objects as the rows that `kubectl get` prints (`meta.k8s.io/v1` Table). Refuses to know how objects are found
//! and which answer a client asked for.

mod age;
mod columns;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use columns::PrinterColumn;

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

/// A Table of `objects`: their names, then `columns`. Its metadata is empty, for the caller to fill in. Ages count
/// up to `now`.
pub fn render(columns: &[PrinterColumn], objects: &[Value], include: IncludeObject, now: Timestamp) -> Value {
    let paths: Vec<_> = columns.iter().map(PrinterColumn::path).collect();
    let row = |object: &Value| {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
        let declared = columns
            .iter()
            .zip(&paths)
            .map(|(column, path)| path.first(object).map_or(Value::Null, |value| column.cell(value, now)));
        let cells: Vec<Value> = std::iter::once(name).chain(declared).collect();
        json!({ "cells": cells, "object": beside(object, include) })
    };
    let definitions: Vec<Value> = std::iter::once(columns::name_definition())
        .chain(columns.iter().map(PrinterColumn::definition))
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": objects.iter().map(row).collect::<Vec<_>>(),
    })
}

fn beside(object: &Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
        }),
    }
}

#[cfg(test)]
mod tests;
