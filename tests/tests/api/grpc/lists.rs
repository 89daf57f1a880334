//! Lists over gRPC: live and archived objects as one, and conditions on columns.

use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use super::client::Client;
use crate::api::stage::Stage;

async fn list(client: &Client, request: Value) -> Value {
    let answer = client.call(&model::KIND, "List*", request.clone()).await;
    let mut answer = answer.unwrap_or_else(|status| panic!("{request}: {status:?}"));
    answer["modelList"].take()
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Two archived models and three live ones, all of them in SQL.
async fn models(stage: &Stage, client: &Client) {
    for (name, algorithm) in [("b", "xgboost"), ("d", "lasso")] {
        let labels = json!({"team": "fraud"});
        stage
            .create_archived(name, labels, json!({"algorithm": algorithm, "description": name}))
            .await;
    }
    for (name, spec) in [
        ("a", json!({"algorithm": "xgboost"})),
        ("c", json!({"algorithm": "lasso"})),
        ("e", json!({})),
    ] {
        stage.create(name, json!({}), spec).await;
    }
    eventually("all are stored", async || {
        let all = list(client, json!({"namespace": "default", "listOptionsExt": {}})).await;
        names(&all).len() == 5
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_and_archived_objects_are_one_list() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    models(&stage, &client).await;
    let whole = list(&client, json!({"namespace": "default"})).await;
    let mut found = names(&whole);
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c", "d", "e"]);
    assert_eq!(
        whole["typeMeta"],
        json!({"kind": "ModelList", "apiVersion": "michelangelo.api/v2"})
    );
    let version = whole["metadata"]["resourceVersion"].as_str().unwrap();
    assert!(version.parse::<u64>().is_ok(), "{version}");

    let mut walked = Vec::new();
    let mut token = json!("");
    loop {
        let options = json!({"limit": 2, "continue": token});
        let page = list(&client, json!({"namespace": "default", "listOptions": options})).await;
        assert!(names(&page).len() <= 2);
        walked.extend(names(&page).into_iter().map(str::to_owned));
        token = page["metadata"]["continue"].clone();
        if token.is_null() {
            break;
        }
    }
    walked.sort_unstable();
    assert_eq!(walked, found);
    let fraud = list(&client, json!({"listOptions": {"labelSelector": "team=fraud"}})).await;
    assert_eq!(names(&fraud), ["b", "d"]);
    let other = json!({"listOptions": {"limit": 2, "continue": "nonsense"}});
    let refused = client.call(&model::KIND, "List*", other).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    stage.end().await;
}

fn text(text: &str) -> Value {
    json!({"@type": "type.googleapis.com/google.protobuf.StringValue", "value": text})
}

fn texts(texts: &[&str]) -> Value {
    json!({"@type": "type.googleapis.com/google.protobuf.ListValue", "value": texts})
}

fn criterion(field: &str, operator: &str, value: Value) -> Value {
    let mut criterion = json!({"fieldName": field, "operator": format!("CRITERION_OPERATOR_{operator}")});
    if !value.is_null() {
        criterion["matchValue"] = value;
    }
    criterion
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_on_columns_find_objects_wherever_they_live() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    models(&stage, &client).await;
    let xgboost = || criterion("spec.algorithm", "EQUAL", text("xgboost"));
    let name = |operator: &str, value: Value| criterion("metadata.name", operator, value);
    let both = |criteria: Value| json!({"criterion": criteria});
    for (operation, found) in [
        (both(json!([xgboost()])), vec!["a", "b"]),
        (both(json!([xgboost(), name("NOT_EQUAL", text("a"))])), vec!["b"]),
        (both(json!([name("GREATER_THAN", text("c"))])), vec!["d", "e"]),
        (
            both(json!([name("GREATER_THAN_OR_EQUAL_TO", text("d"))])),
            vec!["d", "e"],
        ),
        (both(json!([name("LESS_THAN", text("b"))])), vec!["a"]),
        (both(json!([name("LESS_THAN_OR_EQUAL_TO", text("b"))])), vec!["a", "b"]),
        (both(json!([name("IN", texts(&["a", "e", "z"]))])), vec!["a", "e"]),
        (both(json!([name("NOT_IN", texts(&["a", "b"]))])), vec!["c", "d", "e"]),
        (
            both(json!([criterion("algorithm", "LIKE", text("xg%"))])),
            vec!["a", "b"],
        ),
        (both(json!([criterion("algorithm", "IS_NULL", Value::Null)])), vec!["e"]),
        (
            both(json!([criterion("algorithm", "IS_NOT_NULL", Value::Null), xgboost()])),
            vec!["a", "b"],
        ),
        (
            json!({"logicalOperator": "LOGICAL_OPERATOR_OR", "criterion": [name("EQUAL", text("e"))],
                "subOperations": [{"criterion": [xgboost(), name("EQUAL", text("b"))]}]}),
            vec!["b", "e"],
        ),
    ] {
        let ext = json!({"operation": operation});
        let request = json!({"namespace": "default", "listOptionsExt": ext});
        assert_eq!(names(&list(&client, request).await), found, "{operation}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_columns_has_an_order_pages_and_only_the_fields_that_are_wanted() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    models(&stage, &client).await;
    let latest = json!([{"field": "metadata.creation_timestamp", "dir": "SORT_ORDER_DESC"},
        {"field": "metadata.name", "dir": "SORT_ORDER_DESC"}]);
    let with =
        |ext: Value, options: Value| json!({"namespace": "default", "listOptions": options, "listOptionsExt": ext});
    let by_name = json!([{"field": "name", "dir": "SORT_ORDER_DESC"}]);
    for (ext, options, found) in [
        (json!({"orderBy": by_name}), json!({}), vec!["e", "d", "c", "b", "a"]),
        (
            json!({"orderBy": by_name, "pagination": {"limit": 2}}),
            json!({}),
            vec!["e", "d"],
        ),
        (
            json!({"orderBy": by_name, "pagination": {"offset": 1, "limit": 2}}),
            json!({}),
            vec!["d", "c"],
        ),
        (
            json!({"orderBy": by_name, "pagination": {"offset": 4, "limit": 2}}),
            json!({}),
            vec!["a"],
        ),
        (
            json!({"orderBy": by_name, "pagination": {"offset": 9}}),
            json!({}),
            vec![],
        ),
        (
            json!({"orderBy": by_name}),
            json!({"labelSelector": "team=fraud"}),
            vec!["d", "b"],
        ),
    ] {
        let found_now = list(&client, with(ext.clone(), options)).await;
        assert_eq!(names(&found_now), found, "{ext}");
    }
    assert_eq!(
        names(&list(&client, with(json!({"orderBy": latest}), json!({}))).await).len(),
        5
    );

    let first = list(&client, with(json!({"orderBy": by_name}), json!({"limit": 3}))).await;
    assert_eq!(names(&first), ["e", "d", "c"]);
    let options = json!({"limit": 3, "continue": first["metadata"]["continue"]});
    let second = list(&client, with(json!({"orderBy": by_name}), options)).await;
    assert_eq!(names(&second), ["b", "a"]);

    let skip = json!({"orderBy": by_name, "returnedFieldSkipList": ["spec.description", "metadata.managed_fields"]});
    let without = list(&client, with(skip, json!({"labelSelector": "team=fraud"}))).await;
    for item in without["items"].as_array().unwrap() {
        assert!(
            item["spec"]["description"].is_null() && item["metadata"]["managedFields"].is_null(),
            "{item}"
        );
        assert!(item["spec"]["algorithm"].is_string(), "{item}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_are_none_are_refused_with_the_reason() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let struct_value = json!({"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}});
    for (ext, message) in [
        (
            json!({"operation": {"criterion": [criterion("spec.color", "EQUAL", text("x"))]}}),
            "no column",
        ),
        (
            json!({"operation": {"criterion": [criterion("name", "INVALID", text("x"))]}}),
            "operator",
        ),
        (
            json!({"operation": {"criterion": [criterion("name", "EQUAL", Value::Null)]}}),
            "1 value",
        ),
        (
            json!({"operation": {"criterion": [criterion("name", "EQUAL", struct_value)]}}),
            "StringValue",
        ),
        (
            json!({"operation": {"logicalOperator": 9, "criterion": []}}),
            "LogicalOperator",
        ),
        (json!({"orderBy": [{"field": "color"}]}), "no column"),
        (json!({"pagination": {"offset": -1}}), "less than 0"),
        (json!({"pagination": {"offset": 2_000_000}}), "token"),
    ] {
        let answer = client.call(&model::KIND, "List*", json!({"listOptionsExt": ext})).await;
        let status = answer.expect_err(&ext.to_string());
        assert_eq!(status.code(), Code::InvalidArgument, "{ext}: {status:?}");
        assert!(status.message().contains(message), "{ext}: {status:?}");
        assert!(status.get_error_details().error_info().is_some(), "{ext}: {status:?}");
    }
    stage.end().await;
}
