//! The JSON shape of a schema: each keyword holds the JSON type that it must. Knows nothing of what they mean.

use serde_json::Value;

use super::inner::each_inner;
use crate::schema::problem::{FieldError, Path};

#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Number,
    Count,
    Texts,
    List,
    Schemas,
    Fields,
    Schema,
    SchemaOrFlag,
}

/// The keywords that are read, by shape. Unknown keywords are dropped, as the API server drops unknown fields.
const KEYWORDS: [(&str, Shape); 32] = [
    ("type", Shape::Text),
    ("format", Shape::Text),
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("pattern", Shape::Text),
    ("x-kubernetes-list-type", Shape::Text),
    ("x-kubernetes-map-type", Shape::Text),
    ("nullable", Shape::Flag),
    ("uniqueItems", Shape::Flag),
    ("exclusiveMaximum", Shape::Flag),
    ("exclusiveMinimum", Shape::Flag),
    ("x-kubernetes-preserve-unknown-fields", Shape::Flag),
    ("x-kubernetes-embedded-resource", Shape::Flag),
    ("x-kubernetes-int-or-string", Shape::Flag),
    ("maximum", Shape::Number),
    ("minimum", Shape::Number),
    ("multipleOf", Shape::Number),
    ("maxLength", Shape::Count),
    ("minLength", Shape::Count),
    ("maxItems", Shape::Count),
    ("minItems", Shape::Count),
    ("maxProperties", Shape::Count),
    ("minProperties", Shape::Count),
    ("required", Shape::Texts),
    ("x-kubernetes-list-map-keys", Shape::Texts),
    ("enum", Shape::List),
    ("x-kubernetes-validations", Shape::List),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("oneOf", Shape::Schemas),
    ("properties", Shape::Fields),
    ("not", Shape::Schema),
];

impl Shape {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Count => value.is_i64(),
            Self::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::List => value.is_array(),
            Self::Schemas => value.as_array().is_some_and(|items| items.iter().all(Value::is_object)),
            Self::Fields => value
                .as_object()
                .is_some_and(|fields| fields.values().all(Value::is_object)),
            Self::Schema => value.is_object(),
            Self::SchemaOrFlag => value.is_object() || value.is_boolean(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "a boolean",
            Self::Number => "a number",
            Self::Count => "an integer",
            Self::Texts => "a list of strings",
            Self::List => "a list",
            Self::Schemas => "a list of schemas",
            Self::Fields => "a map of schemas",
            Self::Schema => "a schema",
            Self::SchemaOrFlag => "a schema or a boolean",
        }
    }
}

pub(super) fn check(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.is_object() {
        errors.push(FieldError::invalid(path.to_string(), schema, "must be a schema"));
        return;
    }
    let items = schema
        .get("items")
        .filter(|items| !items.is_array())
        .map(|_| ("items", Shape::Schema));
    let additional = Some(("additionalProperties", Shape::SchemaOrFlag));
    for (keyword, shape) in KEYWORDS.into_iter().chain(items).chain(additional) {
        match schema.get(keyword) {
            None | Some(Value::Null) => {}
            Some(value) if shape.accepts(value) => {}
            Some(value) => {
                let field = Path::Field(path, keyword).to_string();
                errors.push(FieldError::invalid(field, value, &format!("must be {}", shape.words())));
            }
        }
    }
    each_inner(schema, path, |_, inner, path| check(inner, path, errors));
}
