//! The JSON Schema of `crds.toml`, for completion and checks while a person types. Printed from the grammar, so that
//! editor and compiler agree. Draft 4, which every TOML editor understands.

use serde_json::{Map, Value, json};

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::grammar::{FILE, Key, Section, Sort};

/// Where `#:schema` in `crds.toml` points.
const PATH: &str = "schema/crds.schema.json";

/// The one file.
pub(super) fn emit() -> Artifacts {
    let mut root = table(&FILE);
    root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-04/schema#"));
    root.insert("$comment".to_owned(), json!(HEADER));
    root.insert("title".to_owned(), json!("crds.toml"));
    root.insert("definitions".to_owned(), json!({ "fields": fields() }));
    let text = serde_json::to_string_pretty(&root).expect("a map of strings is valid JSON");
    Artifacts::from([(RelativePath::new(PATH), text + "\n")])
}

fn table(section: &Section) -> Map<String, Value> {
    let properties: Map<String, Value> = section
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let required: Vec<&str> = section
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("description".to_owned(), json!(section.doc));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    // Draft 4 forbids an empty list.
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = match key.sort {
        Sort::Text => json!({ "type": "string" }),
        Sort::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Sort::Flag => json!({ "type": "boolean" }),
        Sort::Count => json!({ "type": "integer", "minimum": 1, "maximum": i32::MAX }),
        Sort::Scalar => json!({ "anyOf": [{ "type": "string" }, { "type": "number" }, { "type": "boolean" }] }),
        Sort::Choice(choices) => json!({ "type": "string", "enum": choices }),
        Sort::Table(section) => Value::Object(table(section)),
        Sort::Each {
            section,
            shorthand,
            names,
        } => each(section, shorthand, names),
        Sort::Entries { section, shorthand } => {
            json!({ "type": "array", "items": entry(section, Some(shorthand)) })
        }
        Sort::Fields => parts(),
    };
    schema["description"] = json!(key.doc);
    schema
}

/// A table whose keys people choose.
fn each(section: &Section, shorthand: Option<&str>, names: &str) -> Value {
    let entry = entry(section, shorthand);
    json!({ "type": "object", "patternProperties": { names: entry }, "additionalProperties": false })
}

/// A table with fixed keys, or the string that stands for one of them.
fn entry(section: &Section, shorthand: Option<&str>) -> Value {
    let entry = Value::Object(table(section));
    match shorthand.and_then(|name| section.key(name)) {
        Some(short) => json!({ "anyOf": [{ "type": "string", "description": short.doc }, entry] }),
        None => entry,
    }
}

fn parts() -> Value {
    let message = json!({ "$ref": "#/definitions/fields" });
    json!({
        "type": "object",
        "properties": { "spec": message, "status": message },
        "required": ["spec"],
        "additionalProperties": false,
    })
}

/// A message: nested tables nest it.
fn fields() -> Value {
    json!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                { "type": "string", "description": "A type." },
                { "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "Enum values." },
                { "$ref": "#/definitions/fields" },
            ],
        },
    })
}

#[cfg(test)]
mod tests;
