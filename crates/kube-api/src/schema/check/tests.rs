//! Which schemas are structural, and how the others are refused.

use serde_json::json;

use super::*;

fn refusals(schema: Value) -> Vec<String> {
    match Structural::parse_at(&schema, "s") {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

fn with_spec(spec: Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

#[test]
fn the_patterns_of_a_schema_are_bounded_together() {
    let with_patterns = |count: usize| {
        let field = |at: usize| (format!("f{at}"), json!({"type": "string", "pattern": "^\\pL{40}$"}));
        let fields: serde_json::Map<String, Value> = (0..count).map(field).collect();
        Structural::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}))
    };
    assert!(with_patterns(3).is_ok());
    let refused = with_patterns(300).unwrap_err();
    assert_eq!(
        refused[0].message,
        "Forbidden: the patterns of a schema may take at most 67108864 bytes of memory together"
    );
}

#[test]
fn a_usual_schema_is_accepted() {
    let schema = json!({"type": "object", "description": "d", "required": ["spec"], "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}}}});
    assert_eq!(refusals(schema), [""; 0]);
}

#[test]
fn every_value_has_a_type() {
    let schema = json!({"properties": {"spec": {"description": "x"}, "list": {"type": "array", "items": {}}}});
    assert_eq!(
        refusals(schema),
        [
            "s.properties[list].items.type: Required value: must not be empty for specified array items",
            "s.properties[spec].type: Required value: must not be empty for specified object fields",
            "s.type: Required value: must not be empty at the root",
        ]
    );
}

#[test]
fn junctors_hold_rules_about_values_of_known_fields_only() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [
        {"type": "object", "description": "d", "properties": {"a": {"default": "x"}, "b": {}}}]});
    assert_eq!(
        refusals(schema),
        [
            "s.anyOf[0].description: Forbidden: must be empty to be structural",
            "s.anyOf[0].properties[a].default: Forbidden: must be undefined to be structural",
            "s.anyOf[0].type: Forbidden: must be empty to be structural",
            "s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]",
        ]
    );
}

#[test]
fn metadata_may_only_restrict_the_name() {
    let names = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}});
    assert_eq!(refusals(names), [""; 0]);
    let labels = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}});
    assert_eq!(
        refusals(labels),
        [
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
        ]
    );
}

#[test]
fn keywords_that_the_api_server_does_not_have_are_refused() {
    let schema = with_spec(json!({"type": "zip", "$ref": "#/x", "patternProperties": {"a": {}}, "uniqueItems": true}));
    assert_eq!(
        refusals(schema),
        [
            "s.properties[spec].$ref: Forbidden: $ref is not supported",
            "s.properties[spec].patternProperties: Forbidden: patternProperties is not supported",
            r#"s.properties[spec].type: Unsupported value: "zip": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            "s.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ]
    );
}

#[test]
fn rules_that_would_not_be_evaluated_are_refused_not_ignored() {
    let with_rule = |rule: Value| {
        let spec = json!({"type": "object", "x-kubernetes-validations": [rule], "properties": {
            "a": {"type": "string"}, "time": {"type": "string", "format": "date-time"},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}});
        refusals(with_spec(spec))
    };
    assert_eq!(with_rule(json!({"rule": "self.a == 'x'", "message": "m"})), [""; 0]);
    for (rule, what) in [
        (
            json!({"rule": "self.a.matches('x')"}),
            "rule: Forbidden: function 'matches'",
        ),
        (
            json!({"rule": "self.time == self.time"}),
            "rule: Forbidden: a string of format date-time",
        ),
        (
            json!({"rule": "self == oldSelf"}),
            "rule: Forbidden: a comparison of values that hold lists of type set or map",
        ),
        (
            json!({"rule": "true", "fieldPath": ".a"}),
            "fieldPath: Forbidden: fieldPath",
        ),
        (
            json!({"rule": "true", "messageExpression": "'x'"}),
            "messageExpression: Forbidden: messageExpression",
        ),
    ] {
        let at = "s.properties[spec].x-kubernetes-validations[0].";
        assert_eq!(
            with_rule(rule),
            [format!("{at}{what} is not supported by the embedded cluster")]
        );
    }
}

#[test]
fn rules_have_the_types_of_their_schema() {
    let with_rule = |rule: &str| {
        let spec = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {
            "a": {"type": "string"}, "n": {"type": "integer"}}});
        refusals(with_spec(spec))
    };
    for (rule, why) in [
        ("self.b == 'x'", "undefined field 'b'"),
        ("self.metadata.name == 'x'", "undefined field 'metadata'"),
        ("self.a", "must evaluate to a bool"),
        ("self.a == self.n", "found no matching overload"),
        ("self.a + 1 == 'x'", "found no matching overload for '_+_'"),
    ] {
        let found = with_rule(rule);
        assert_eq!(found.len(), 1, "{rule}");
        assert!(found[0].ends_with(&format!("compilation failed: {why}")), "{found:?}");
    }
}

#[test]
fn entries_that_cannot_be_found_before_have_no_transition_rules() {
    let rules = json!([{"rule": "self == oldSelf"}]);
    let items = json!({"type": "string", "x-kubernetes-validations": rules});
    let found = refusals(with_spec(json!({"type": "array", "items": items})));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("oldSelf cannot be used on the uncorrelatable portion of the schema"),
        "{found:?}"
    );
}

#[test]
fn a_list_map_names_required_scalar_keys() {
    let list = |keys: Value, items: Value| {
        with_spec(
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}),
        )
    };
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "o": {"type": "object"}}});
    assert_eq!(
        refusals(list(json!(["name", "x"]), item.clone())),
        [
            "s.properties[spec].items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            r#"s.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["name","x"]: entries must all be names of item properties"#,
        ]
    );
    assert_eq!(
        refusals(list(json!([]), item)),
        [
            "s.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
        ]
    );
}

#[test]
fn a_default_fits_its_own_schema() {
    let schema =
        with_spec(json!({"type": "object", "default": {"a": 1, "zip": 2}, "properties": {"a": {"type": "string"}}}));
    assert_eq!(
        refusals(schema),
        [
            r#"s.properties[spec].default: Invalid value: {"a":1,"zip":2}: must not have unknown fields"#,
            r#"s.properties[spec].default.a: Invalid value: "integer": a in body must be of type string: "integer""#,
        ]
    );
}

#[test]
fn a_keyword_of_the_wrong_json_type_is_refused_before_anything_else() {
    assert_eq!(
        refusals(json!({"type": 5, "properties": [], "maxLength": "x"})),
        [
            r#"s.maxLength: Invalid value: "x": must be an integer"#,
            "s.properties: Invalid value: []: must be a map of schemas",
            "s.type: Invalid value: 5: must be a string",
        ]
    );
    assert_eq!(refusals(json!("x")), [r#"s: Invalid value: "x": must be a schema"#]);
}

#[test]
fn a_pattern_is_a_regular_expression() {
    let refusals = refusals(with_spec(json!({"type": "string", "pattern": "("})));
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].starts_with(
        r#"s.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn't: "#
    ));
}
