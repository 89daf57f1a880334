//! Each validation with a value that passes and one that fails, with the API server's message.

use serde_json::json;

use super::*;

fn errors(schema: Value, value: Value) -> Vec<String> {
    let schema = Structural::parse(&schema).unwrap();
    validate(&schema, &value)
        .iter()
        .map(|error| format!("{}|{error}", error.reason.as_str()))
        .collect()
}

/// A root schema with one property `spec`.
fn spec(schema: Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

#[test]
fn entries_of_long_list_maps_are_found_by_their_keys() {
    let schema = Structural::parse(&json!({"type": "object", "properties": {"list": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "n": {"type": "integer", "maximum": 5}}}}}}))
    .unwrap();
    // Compared one with each other, these would be ten thousand million pairs.
    let entry = |at: usize| json!({"name": at.to_string(), "n": 7});
    let old = json!({"list": (0..100_000).map(entry).collect::<Vec<_>>()});
    let new = json!({"list": (0..100_000).rev().map(entry).collect::<Vec<_>>()});
    assert!(validate_update(&schema, &new, Some(&old)).is_empty());
    let errors = validate_update(&schema, &new, None);
    assert_eq!(errors.len(), 1000, "what is wrong is told a thousand times at most");
}

#[test]
fn a_wrong_type_is_named_with_what_was_found() {
    let schema = spec(json!({"type": "object", "properties": {
        "tier": {"type": "integer"}, "port": {"x-kubernetes-int-or-string": true}, "on": {"type": "boolean"}}}));
    assert_eq!(
        errors(schema, json!({"spec": {"tier": "x", "port": true, "on": null}})),
        [
            r#"FieldValueTypeInvalid|spec.on: Invalid value: "null": spec.on in body must be of type boolean: "null""#,
            r#"FieldValueTypeInvalid|spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#,
            r#"FieldValueTypeInvalid|spec.tier: Invalid value: "string": spec.tier in body must be of type integer: "string""#,
        ]
    );
}

#[test]
fn a_whole_float_is_an_integer_and_null_fits_nullable() {
    let schema = spec(
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "t": {"type": "string", "nullable": true}}}),
    );
    assert_eq!(errors(schema.clone(), json!({"spec": {"n": 2.0, "t": null}})), [""; 0]);
    assert_eq!(
        errors(schema, json!({"spec": {"n": 2.5}})),
        [
            r#"FieldValueTypeInvalid|spec.n: Invalid value: "number": spec.n in body must be of type integer: "number""#,
            r#"FieldValueInvalid|<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.n"#,
        ]
    );
}

#[test]
fn required_and_enum() {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string", "enum": ["x", "y"]}, "c": {"type": "integer", "enum": [1, 2]}}}}});
    assert_eq!(
        errors(schema.clone(), json!({})),
        ["FieldValueRequired|spec: Required value"]
    );
    assert_eq!(
        errors(schema, json!({"spec": {"b": "z", "c": 3}})),
        [
            r#"FieldValueNotSupported|spec.b: Unsupported value: "z": supported values: "x", "y""#,
            r#"FieldValueNotSupported|spec.c: Unsupported value: 3: supported values: "1", "2""#,
            "FieldValueRequired|spec.a: Required value",
        ]
    );
}

#[test]
fn limits_of_numbers() {
    let schema = spec(json!({"type": "object", "properties": {
        "a": {"type": "integer", "minimum": 1}, "b": {"type": "number", "maximum": 1.5, "exclusiveMaximum": true},
        "c": {"type": "integer", "multipleOf": 3}}}));
    assert_eq!(
        errors(schema, json!({"spec": {"a": 0, "b": 1.5, "c": 7}})),
        [
            "FieldValueInvalid|spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1",
            "FieldValueInvalid|spec.b: Invalid value: 1.5: spec.b in body should be less than 1.5",
            "FieldValueInvalid|spec.c: Invalid value: 7: spec.c in body should be a multiple of 3",
        ]
    );
}

#[test]
fn limits_of_texts_lists_and_maps() {
    let schema = spec(json!({"type": "object", "maxProperties": 5, "properties": {
        "a": {"type": "string", "maxLength": 2}, "b": {"type": "string", "minLength": 2}, "c": {"type": "string", "pattern": "^a"},
        "d": {"type": "string", "format": "date-time"},
        "e": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
        "f": {"type": "array", "minItems": 1, "items": {"type": "string"}}}}));
    assert_eq!(
        errors(
            schema,
            json!({"spec": {"a": "日本語", "b": "é", "c": "b", "d": "now", "e": ["a", "b"], "f": []}})
        ),
        [
            "FieldValueTooMany|spec: Too many: 6: must have at most 5 items",
            "FieldValueTooLong|spec.a: Too long: may not be more than 2 bytes",
            r#"FieldValueInvalid|spec.b: Invalid value: "é": spec.b in body should be at least 2 chars long"#,
            r#"FieldValueInvalid|spec.c: Invalid value: "b": spec.c in body should match '^a'"#,
            r#"FieldValueTypeInvalid|spec.d: Invalid value: "now": spec.d in body must be of type date-time: "now""#,
            "FieldValueTooMany|spec.e: Too many: 2: must have at most 1 item",
            "FieldValueInvalid|spec.f: Invalid value: 0: spec.f in body should have at least 1 items",
        ]
    );
}

#[test]
fn paths_lead_through_lists_and_maps() {
    let schema = spec(json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}}}}));
    assert_eq!(
        errors(schema, json!({"spec": {"list": [{}, {"n": []}], "map": {"k": 1}}})),
        [
            r#"FieldValueTypeInvalid|spec.list[1].n: Invalid value: "array": spec.list[1].n in body must be of type integer: "array""#,
            r#"FieldValueTypeInvalid|spec.map.k: Invalid value: "integer": spec.map.k in body must be of type string: "integer""#,
        ]
    );
}

#[test]
fn junctors_name_the_rule_and_the_closest_alternative() {
    let schema = |junctor: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        schema
            .as_object_mut()
            .unwrap()
            .append(junctor.as_object().cloned().as_mut().unwrap());
        spec(schema)
    };
    let required = |names: &[&str]| json!({ "required": names });
    assert_eq!(
        errors(
            schema(json!({"oneOf": [required(&["a"]), required(&["b"])]})),
            json!({"spec": {"a": 1, "b": 1}})
        ),
        [
            r#"FieldValueInvalid|<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert_eq!(
        errors(
            schema(json!({"anyOf": [required(&["a"]), required(&["b"])]})),
            json!({"spec": {}})
        ),
        [
            r#"FieldValueInvalid|<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)"#,
            "FieldValueRequired|spec.a: Required value",
        ]
    );
    assert_eq!(
        errors(schema(json!({"allOf": [required(&["a"])]})), json!({"spec": {}})),
        [
            "FieldValueRequired|spec.a: Required value",
            r#"FieldValueInvalid|<nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated"#,
        ]
    );
    assert_eq!(
        errors(schema(json!({"not": required(&["a"])})), json!({"spec": {"a": 1}})),
        [r#"FieldValueInvalid|<nil>: Invalid value: "": "spec" must not validate the schema (not)"#]
    );
}

#[test]
fn sets_and_list_maps_have_no_duplicates() {
    let schema = spec(json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}}}}));
    assert_eq!(
        errors(
            schema,
            json!({"spec": {"set": ["a", "b", "a", "a"], "map": [{"name": "x", "v": 1}, {"name": "x"}]}})
        ),
        [
            r#"FieldValueDuplicate|spec.map[1]: Duplicate value: {"name":"x"}"#,
            r#"FieldValueDuplicate|spec.set[2]: Duplicate value: "a""#,
        ]
    );
}

#[test]
fn what_was_wrong_before_and_has_not_changed_is_forgiven() {
    let schema = Structural::parse(&spec(json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "maxLength": 1}}})))
    .unwrap();
    let old = json!({"spec": {"a": "long", "b": "x"}});
    assert_eq!(
        validate_update(&schema, &json!({"spec": {"a": "long", "b": "y"}}), Some(&old)),
        []
    );
    let changed = validate_update(&schema, &json!({"spec": {"a": "longer", "b": "x"}}), Some(&old));
    assert_eq!(
        changed.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(),
        ["spec.a"]
    );
}

#[test]
fn an_embedded_resource_has_a_type_and_readable_metadata() {
    let schema = spec(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
    );
    assert_eq!(
        errors(schema, json!({"spec": {"kind": "", "metadata": {"name": 1}}})),
        [
            "FieldValueRequired|spec.apiVersion: Required value",
            r#"FieldValueInvalid|spec.kind: Invalid value: "": must not be empty"#,
            r#"FieldValueInvalid|spec.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
        ]
    );
}

#[test]
fn sets_and_embedded_resources_are_checked_wherever_they_are() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let embedded =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let cases = [
        (set, json!(["a", "a"]), "FieldValueDuplicate|"),
        (embedded, json!({"kind": "A"}), "FieldValueRequired|"),
    ];
    for (schema, value, problem) in cases {
        let outer = [
            (
                json!({"type": "object", "properties": {"a": schema}}),
                json!({"a": value}),
            ),
            (
                json!({"type": "object", "additionalProperties": schema}),
                json!({"a": value}),
            ),
            (json!({"type": "array", "items": schema}), json!([value])),
        ];
        for (schema, value) in outer {
            let found = errors(spec(schema), json!({"spec": value}));
            assert!(
                found.len() == 1 && found[0].starts_with(problem),
                "{problem} in {value}: {found:?}"
            );
        }
    }
}

#[test]
fn broken_rules_are_told_with_the_scalar_that_breaks_them() {
    let rules = |rule: &str| json!([{"rule": rule}]);
    let schema = spec(
        json!({"type": "object", "x-kubernetes-validations": rules("self.a == 'x' || self.n > 1"),
        "properties": {"a": {"type": "string"}, "n": {"type": "integer", "x-kubernetes-validations": rules("self < 5")}}}),
    );
    assert_eq!(errors(schema.clone(), json!({"spec": {"a": "x", "n": 4}})), [""; 0]);
    assert_eq!(
        errors(schema.clone(), json!({"spec": {"a": "y", "n": 1}})),
        ["FieldValueInvalid|spec: Invalid value: failed rule: self.a == 'x' || self.n > 1"]
    );
    assert_eq!(
        errors(schema.clone(), json!({"spec": {"a": "y", "n": 7}})),
        ["FieldValueInvalid|spec.n: Invalid value: 7: failed rule: self < 5"]
    );
    assert_eq!(
        errors(schema, json!({"spec": {"a": "y"}})),
        [
            r#"FieldValueInvalid|spec: Invalid value: "object": no such key: n evaluating rule: self.a == 'x' || self.n > 1"#
        ]
    );
}

#[test]
fn transition_rules_are_asked_on_updates_and_others_where_something_changed() {
    let rules = json!([{"rule": "self == oldSelf", "message": "never changes"}]);
    let schema = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {"a": {"type": "string"}}});
    let schema = Structural::parse(&spec(schema)).unwrap();
    let (old, new) = (json!({"spec": {"a": "x"}}), json!({"spec": {"a": "y"}}));
    assert_eq!(validate(&schema, &new), []);
    assert_eq!(validate_update(&schema, &old, Some(&old)), []);
    assert_eq!(
        validate_update(&schema, &new, Some(&old))[0].to_string(),
        "spec: Invalid value: never changes"
    );
}
