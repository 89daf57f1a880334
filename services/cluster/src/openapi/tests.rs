//! What the documents must hold so that kubectl explains and validates with them.

use super::*;

fn widget(namespaced: bool) -> ResourceDoc {
    ResourceDoc {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Widget".to_owned(),
        list_kind: "WidgetList".to_owned(),
        plural: "widgets".to_owned(),
        namespaced,
        status: true,
        schema: json!({"type": "object", "description": "A widget.", "properties": {"spec": {"type": "object"}, "metadata": {"type": "object"}}}),
    }
}

#[test]
fn a_patch_of_a_kind_says_that_fields_are_validated() {
    let document = document("example.com/v1", &[widget(true)]);
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "example.com", "version": "v1", "kind": "Widget"})
    );
    let names: Vec<_> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (&p["name"], &p["in"]))
        .collect();
    for name in ["fieldValidation", "dryRun", "fieldManager", "force"] {
        assert!(names.contains(&(&json!(name), &json!("query"))), "{name}");
    }
}

#[test]
fn a_schema_is_found_by_its_kind_and_has_type_and_metadata() {
    let document = document("example.com/v1", &[widget(true)]);
    let schemas = &document["components"]["schemas"];
    let schema = &schemas["com.example.v1.Widget"];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "example.com", "version": "v1", "kind": "Widget"}])
    );
    assert_eq!(schema["description"], "A widget.");
    assert_eq!(schema["properties"]["kind"]["type"], "string");
    let reference = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(schema["properties"]["metadata"]["allOf"][0]["$ref"], reference);
    assert_eq!(
        schemas["com.example.v1.WidgetList"]["properties"]["items"]["items"]["$ref"],
        "#/components/schemas/com.example.v1.Widget"
    );
}

#[test]
fn every_reference_leads_to_a_schema() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document("example.com/v1", &[widget(true)]);
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
    }
}

#[test]
fn paths_follow_scope_and_group() {
    let paths = |group_version: &str, resource: ResourceDoc| {
        let document = document(group_version, &[resource]);
        document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut namespaced = paths("example.com/v1", widget(true));
    namespaced.sort();
    assert_eq!(
        namespaced,
        [
            "/apis/example.com/v1/namespaces/{namespace}/widgets",
            "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}",
            "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status",
            "/apis/example.com/v1/widgets",
        ]
    );
    let core = ResourceDoc {
        group: String::new(),
        status: false,
        ..widget(false)
    };
    let mut cluster = paths("v1", core.clone());
    cluster.sort();
    assert_eq!(cluster, ["/api/v1/widgets", "/api/v1/widgets/{name}"]);
    assert_eq!(core.schema_name("Widget"), "io.k8s.api.core.v1.Widget");
}
