//! The schema against real declarations, with a validator for the part of Draft 4 that the schema uses.

use serde_json::Value;

use super::{PATH, emit};
use crate::artifact::RelativePath;

const SHIPPED: &str = include_str!("../../../../crds.toml");
const REFERENCE: &str = include_str!("../../reference.toml");

fn schema() -> Value {
    let text = &emit()[&RelativePath::new(PATH)];
    serde_json::from_str(text).expect("valid JSON")
}

/// Where the declaration breaks the schema, as JSON pointers with reasons.
fn violations(toml: &str) -> Vec<String> {
    let value: Value = toml::from_str(toml).expect("valid TOML");
    let root = schema();
    let mut found = Vec::new();
    validate(&root, &root, &value, "", &mut found);
    found
}

fn validate(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().expect("text").trim_start_matches('#');
                let target = root.pointer(pointer).expect("the target exists");
                validate(root, target, value, at, found);
            }
            "type" if !has_type(value, rule.as_str().expect("text")) => {
                found.push(format!("{at}: not {rule}"));
            }
            "enum" if !rule.as_array().expect("list").contains(value) => {
                found.push(format!("{at}: not one of {rule}"));
            }
            "minimum" if value.as_i64() < rule.as_i64() => found.push(format!("{at}: too small")),
            "maximum" if value.as_i64() > rule.as_i64() => found.push(format!("{at}: too large")),
            "minItems" if value.as_array().is_some_and(Vec::is_empty) => {
                found.push(format!("{at}: empty"));
            }
            "required" => {
                for key in rule.as_array().expect("list") {
                    if value.get(key.as_str().expect("text")).is_none() {
                        found.push(format!("{at}: without {key}"));
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    validate(root, rule, item, at, found);
                }
            }
            "anyOf" => {
                let fits = rule.as_array().expect("list").iter().any(|option| {
                    let mut inner = Vec::new();
                    validate(root, option, value, at, &mut inner);
                    inner.is_empty()
                });
                if !fits {
                    found.push(format!("{at}: fits nothing"));
                }
            }
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "description"
            | "definitions"
            | "title"
            | "$schema"
            | "$comment"
            | "type"
            | "enum"
            | "minimum"
            | "maximum"
            | "minItems" => {}
            other => panic!("the validator does not know {other}"),
        }
    }
    validate_keys(root, schema, value, at, found);
}

fn validate_keys(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{key}");
        let named = schema.get("properties").and_then(|keys| keys.get(key));
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let matching = patterns
            .into_iter()
            .flatten()
            .find(|(pattern, _)| matches(pattern, key))
            .map(|(_, schema)| schema);
        match (named.or(matching), schema.get("additionalProperties")) {
            (Some(schema), _) => validate(root, schema, inner, &at, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{at}: unknown")),
            (None, Some(schema @ Value::Object(_))) => validate(root, schema, inner, &at, found),
            (None, _) => {}
        }
    }
}

fn has_type(value: &Value, word: &str) -> bool {
    match word {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        other => panic!("the validator does not know the type {other}"),
    }
}

/// Patterns of the form `^[first][rest]*$`.
fn matches(pattern: &str, text: &str) -> bool {
    let inner = pattern.strip_prefix("^[").and_then(|rest| rest.strip_suffix("]*$"));
    let (first, rest) = inner.and_then(|inner| inner.split_once("][")).expect("the known form");
    let mut chars = text.chars();
    chars.next().is_some_and(|c| in_class(first, c)) && chars.all(|c| in_class(rest, c))
}

fn in_class(class: &str, c: char) -> bool {
    let class: Vec<char> = class.chars().collect();
    let mut at = 0;
    while at < class.len() {
        if class.get(at + 1) == Some(&'-') && at + 2 < class.len() {
            if (class[at]..=class[at + 2]).contains(&c) {
                return true;
            }
            at += 3;
        } else if class[at] == c {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

#[test]
fn the_shipped_declaration_and_the_reference_fit() {
    assert_eq!(violations(SHIPPED), [""; 0]);
    assert_eq!(violations(REFERENCE), [""; 0]);
}

#[test]
fn errors_do_not_fit() {
    for (good, bad, pointer) in [
        ("version   = \"v2\"", "version   = 2", "/platform/version"),
        ("version   = \"v2\"", "", "/platform: without \"version\""),
        ("[kinds.Cluster]", "[kinds.cluster]", "/kinds/cluster: unknown"),
        (
            "doc     = \"A place",
            "docs    = \"A place",
            "/kinds/Cluster/docs: unknown",
        ),
        (
            "on_delete = \"block\"",
            "on_delete = \"blocks\"",
            "/kinds/Model/references/model_family/on_delete",
        ),
        (
            "source                  = \"spec.source\"",
            "source = 5",
            "/kinds/Model/columns/source: fits nothing",
        ),
    ] {
        assert!(SHIPPED.contains(good), "{good}");
        let found = violations(&SHIPPED.replacen(good, bad, 1)).join("\n");
        assert!(found.contains(pointer), "{bad}: {found}");
    }
}

#[test]
fn every_key_is_described() {
    fn walk(schema: &Value, at: &str) {
        for (key, inner) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let at = format!("{at}/{key}");
            let described = inner.get("description").and_then(Value::as_str);
            let is_part = key == "spec" || key == "status";
            assert!(is_part || described.is_some_and(|text| text.len() > 10), "{at}");
            walk(inner, &at);
        }
    }
    walk(&schema(), "");
}
