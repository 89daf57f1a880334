//! From the JSON text of `openAPIV3Schema` to a compiled [`Structural`]. Knows nothing of the rules for schemas
//! (`check`): what is not in order is left out here, and the compiled form of such a schema is never used.

use std::collections::BTreeMap;

use serde_json::Value;

use super::formats::Format;
use super::problem::{FieldError, FieldReason};
use super::structural::{Additional, Bound, ListType, Pattern, Rules, Structural, Type, Validation};
use super::{cel, check, go_regex};

impl Structural {
    /// Compiles `openapi_v3_schema`; the paths in errors begin at its root. See [`Structural::parse_at`].
    ///
    /// # Errors
    /// Every rule of structural schemas that is broken, sorted by field.
    pub fn parse(openapi_v3_schema: &Value) -> Result<Self, Vec<FieldError>> {
        Self::parse_at(openapi_v3_schema, "")
    }

    /// Compiles `openapi_v3_schema`. `at` is the path that errors begin with: the API server says
    /// `spec.validation.openAPIV3Schema` when a definition has one version or one schema for all, else
    /// `spec.versions[1].schema.openAPIV3Schema`.
    ///
    /// # Errors
    /// Every rule of structural schemas that is broken, sorted by field. Of `x-kubernetes-validations`, what would not
    /// be evaluated is refused by name.
    pub fn parse_at(openapi_v3_schema: &Value, at: &str) -> Result<Self, Vec<FieldError>> {
        check::checked(openapi_v3_schema, at, node)
    }
}

fn node(schema: &Value) -> Structural {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    let mut node = Structural {
        kind: text("type").and_then(Type::of_name),
        nullable: flag("nullable"),
        default: schema.get("default").filter(|value| !value.is_null()).cloned(),
        properties: properties(schema),
        additional: additional(schema),
        items: schema
            .get("items")
            .filter(|items| items.is_object())
            .map(|items| Box::new(node(items))),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        list_type: match text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map,
            _ => ListType::Atomic,
        },
        list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
        atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
        rules: rules(schema),
        validations: validations(schema),
        is_validated: false,
        has_keyed_lists: false,
        has_embedded: false,
    };
    node.is_validated = !node.validations.is_empty() || is_inside(&node, |inner| inner.is_validated);
    node.has_keyed_lists = node.list_type != ListType::Atomic || is_inside(&node, |inner| inner.has_keyed_lists);
    node.has_embedded = node.embedded_resource || is_inside(&node, |inner| inner.has_embedded);
    node
}

/// Whether something holds of a field or an entry.
fn is_inside(node: &Structural, holds: impl Fn(&Structural) -> bool) -> bool {
    let additional = match &node.additional {
        Additional::Schema(schema) => holds(schema),
        Additional::Absent | Additional::Refused | Additional::Any => false,
    };
    additional || node.items.as_deref().is_some_and(&holds) || node.properties.values().any(holds)
}

fn validations(schema: &Value) -> Vec<Validation> {
    let all = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(validation).collect()
}

fn validation(rule: &Value) -> Option<Validation> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str);
    let expression = cel::parse(text("rule")?).ok()?;
    Some(Validation {
        rule: text("rule")?.trim().to_owned(),
        message: text("message").unwrap_or_default().trim().to_owned(),
        reason: match text("reason") {
            Some("FieldValueForbidden") => FieldReason::Forbidden,
            Some("FieldValueRequired") => FieldReason::Required,
            Some("FieldValueDuplicate") => FieldReason::Duplicate,
            Some(_) | None => FieldReason::Invalid,
        },
        is_transition: expression.is_transition(),
        expression,
    })
}

fn properties(schema: &Value) -> BTreeMap<String, Structural> {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.clone(), node(property)))
        .collect()
}

fn additional(schema: &Value) -> Additional {
    match schema.get("additionalProperties") {
        None | Some(Value::Null) => Additional::Absent,
        Some(Value::Bool(false)) => Additional::Refused,
        Some(Value::Bool(true)) => Additional::Any,
        Some(schema) => Additional::Schema(Box::new(node(schema))),
    }
}

/// Formats that are about numbers.
const NUMBER_FORMATS: &[&str] = &["int32", "int64", "float", "double"];

fn rules(schema: &Value) -> Rules {
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let float = |name: &str| schema.get(name).and_then(Value::as_f64);
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    let text = |name: &str| schema.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let all = |name: &str| {
        schema
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(node)
            .collect()
    };
    Rules {
        required: texts(schema, "required"),
        choices: schema
            .get("enum")
            .and_then(Value::as_array)
            .filter(|values| !values.is_empty())
            .cloned(),
        number_format: text("format")
            .filter(|name| NUMBER_FORMATS.contains(name))
            .map(str::to_owned),
        format: text("format").and_then(|name| Some((name.to_owned(), Format::of_name(name)?))),
        maximum: float("maximum").map(|value| Bound {
            value,
            exclusive: flag("exclusiveMaximum"),
        }),
        minimum: float("minimum").map(|value| Bound {
            value,
            exclusive: flag("exclusiveMinimum"),
        }),
        multiple_of: float("multipleOf"),
        pattern: text("pattern").and_then(|text| {
            let regex = go_regex::compile(text).ok()?;
            Some(Pattern {
                text: text.to_owned(),
                regex,
            })
        }),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
        all_of: all("allOf"),
        any_of: all("anyOf"),
        one_of: all("oneOf"),
        not: schema
            .get("not")
            .filter(|inner| inner.is_object())
            .map(|inner| Box::new(node(inner))),
    }
}

fn texts(schema: &Value, name: &str) -> Vec<String> {
    let values = schema.get(name).and_then(Value::as_array);
    values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
