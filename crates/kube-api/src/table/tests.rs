//! What kubectl is shown for columns of each type.

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::list::LIST_END;

fn now() -> Timestamp {
    "2024-01-01T00:10:00Z".parse().unwrap()
}

fn object() -> Value {
    json!({"apiVersion": "g/v1", "kind": "A", "metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"s": "text", "n": 3, "f": 1.5, "b": true, "m": {"x": 1}, "z": null, "when": "2024-01-01T00:09:55Z", "bad": "soon",
            "list": ["first", "second"]}})
}

fn column(kind: &str, path: &str) -> PrinterColumn {
    PrinterColumn::deserialize(json!({"name": "X", "type": kind, "jsonPath": path})).unwrap()
}

fn cells(columns: &[PrinterColumn]) -> Value {
    rows(columns, &[object()], IncludeObject::None, now())[0]["cells"].clone()
}

#[test]
fn a_table_begins_with_names_and_carries_metadata_beside_its_rows() {
    let table = of_object(
        &[column("date", ".metadata.creationTimestamp")],
        &object(),
        IncludeObject::Metadata,
        now(),
    );
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["cells"], json!(["a", "10m"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"], object()["metadata"]);
    assert_eq!(table["rows"][0]["object"].get("spec"), None);
    let whole = rows(&[], &[object()], IncludeObject::Object, now());
    assert_eq!(whole[0]["object"], object());
}

#[test]
fn a_table_has_the_version_of_its_object_or_the_metadata_of_its_list() {
    let mut of_version = object();
    of_version["metadata"]["resourceVersion"] = "7".into();
    let one = of_object(&[], &of_version, IncludeObject::None, now());
    assert_eq!(one["metadata"], json!({"resourceVersion": "7"}));
    let meta = ListMeta {
        resource_version: "9".to_owned(),
        continue_token: Some("t".to_owned()),
        ..ListMeta::default()
    };
    let many = of_list(&[], &[of_version], IncludeObject::None, now(), &meta);
    assert_eq!(many["metadata"], meta.to_value());
    assert_eq!(many["rows"], one["rows"]);
}

#[test]
fn a_table_that_is_written_piece_by_piece_is_the_whole_one() {
    let (columns, objects) = ([column("string", ".spec.s")], [object(), object()]);
    let meta = ListMeta {
        resource_version: "7".to_owned(),
        ..ListMeta::default()
    };
    let start = head(&columns, &meta);
    let metadata = r#"{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"7"},"#;
    assert!(start.starts_with(metadata), "{start}");
    let shown = rows(&columns, &objects, IncludeObject::Metadata, now());
    let shown: Vec<String> = shown.iter().map(Value::to_string).collect();
    let written = start + &shown.join(",") + LIST_END;
    assert_eq!(
        serde_json::from_str::<Value>(&written).unwrap(),
        of_list(&columns, &objects, IncludeObject::Metadata, now(), &meta)
    );
}

#[test]
fn a_watch_shows_columns_once_and_nothing_else_of_a_bookmark_than_its_metadata() {
    let mut table = of_object(&[], &object(), IncludeObject::None, now());
    let before = table.clone();
    remove_columns(&mut table);
    assert!(before["columnDefinitions"].is_array() && table["columnDefinitions"].is_null());
    assert_eq!(table["rows"], before["rows"]);
    assert_eq!(
        of_bookmark(&object()).to_string(),
        r#"{"apiVersion":"meta.k8s.io/v1","columnDefinitions":null,"kind":"Table","metadata":"#.to_owned()
            + &object()["metadata"].to_string()
            + r#","rows":[]}"#
    );
}

#[test]
fn a_string_column_shows_any_value_as_text_and_takes_the_first_result() {
    let paths = [
        ".spec.s",
        ".spec.n",
        ".spec.f",
        ".spec.b",
        ".spec.m",
        ".spec.none",
        ".spec.z",
        ".spec.list[*]",
    ];
    assert_eq!(
        cells(&paths.map(|path| column("string", path))),
        json!([
            "a",
            "text",
            "3",
            "1.5",
            "true",
            r#"{"x":1}"#,
            null,
            "<no value>",
            "first"
        ])
    );
}

#[test]
fn typed_columns_show_only_values_of_their_type() {
    let columns = [
        column("integer", ".spec.n"),
        column("integer", ".spec.f"),
        column("integer", ".spec.s"),
        column("number", ".spec.f"),
        column("boolean", ".spec.b"),
        column("boolean", ".spec.n"),
        column("date", ".spec.when"),
        column("date", ".spec.bad"),
        column("date", ".spec.none"),
    ];
    assert_eq!(
        cells(&columns),
        json!(["a", 3, 1, null, 1.5, true, null, "5s", "<invalid>", null])
    );
}

#[test]
fn a_column_has_its_priority_and_its_source() {
    let columns = [PrinterColumn {
        priority: 1,
        ..column("string", ".spec.s")
    }];
    assert_eq!(
        definitions(&columns)[1],
        json!({"name": "X", "type": "string", "format": "", "priority": 1,
            "description": "Custom resource definition column (in JSONPath format): .spec.s"})
    );
}

#[test]
fn a_path_that_cannot_be_read_shows_nothing() {
    assert_eq!(cells(&[column("string", ".spec[")]), json!(["a", null]));
}
