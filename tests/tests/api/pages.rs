//! Pages of lists: how long they are, in which order, in which form, and of which version of the cluster.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kindex_api::operations::Sizes;
use kindex_harness::wait::eventually;
use kube::Client;
use serde_json::{Value, json};

use super::following::list_version;
use super::stage::{FINAL, MODELS, Stage, client_of, manifest, model, names, send, send_with, serve};

async fn listed(client: &Client, query: &str) -> Value {
    let (code, list) = send(client, "GET", &format!("{MODELS}?{query}"), &Value::Null).await;
    assert_eq!(code, 200, "{query}: {list}");
    list
}

async fn found(client: &Client, query: &str) -> Vec<String> {
    names(&listed(client, query).await)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_no_more_objects_than_the_server_reads_at_once_and_the_last_one_has_some() {
    let stage = Stage::on_sqlite().await;
    for name in ["a", "b", "c", "d"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let sizes = Sizes {
        page_max: 3,
        ..Sizes::default()
    };
    let api = stage.served_by(sizes).await;
    let first = listed(&api, "limit=1000").await;
    assert_eq!(names(&first), ["a", "b", "c"]);
    assert_eq!(
        found(&api, &format!("limit=1000&continue={}", token(&first))).await,
        ["d"]
    );
    // Nothing is archived, and who asks for the rest of a full page would be given none.
    let first = listed(&api, "limit=2").await;
    let last = listed(&api, &format!("limit=2&continue={}", token(&first))).await;
    assert_eq!((names(&last), token(&last)), (vec!["c", "d"], ""));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_objects_come_in_the_order_of_their_names() {
    let stage = Stage::on_sqlite().await;
    for name in ["c", "a", "b"] {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    stage.create("z", json!({}), json!({})).await;
    assert_eq!(found(&stage.api, "").await, ["z", "a", "b", "c"]);
    stage.end().await;
}

/// To one server the first two have left the cluster, and SQL shows them: nothing stands before the second page. To the
/// other they have just left it, and the cluster shows them: nothing is left for the last page.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_a_limit_is_json_where_pages_of_it_are_empty() {
    let stage = Stage::on_sqlite().await;
    for name in ["a", "b"] {
        stage.create_held(name, json!({})).await;
    }
    for name in ["c", "d", "e"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let sizes = Sizes {
        page: 2,
        ..Sizes::default()
    };
    let later = || Timestamp::now() + SignedDuration::from_hours(1);
    let operations = stage.operations().with_sizes(sizes).with_clock(later);
    let of_two = client_of(serve(operations, None, stage.ground.stop()).await);
    let at_once = stage.served_by(sizes).await;
    for (form, items) in [("", "items"), ("PartialObjectMetadataList", "items"), ("Table", "rows")] {
        let accept = match form {
            "" => "application/json".to_owned(),
            form => format!("application/json;as={form};g=meta.k8s.io;v=v1"),
        };
        for api in [&of_two, &at_once] {
            let (_, list) = send_with(api, "GET", MODELS, &[("accept", &accept)], String::new()).await;
            assert_eq!(list[items].as_array().map(Vec::len), Some(5), "{form}: {list}");
        }
    }
    assert_eq!(found(&of_two, "").await, ["c", "d", "e", "a", "b"]);
    let (code, refused) = send_with(&of_two, "GET", MODELS, &[("accept", "application/yaml")], String::new()).await;
    assert_eq!(code, 400, "{refused}");
    stage.end().await;
}

/// A server remembers what the cluster had at a version, and a list of a part of it says nothing of the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_some_objects_is_not_taken_for_one_of_all() {
    let stage = Stage::on_sqlite().await;
    for selector in ["labelSelector=team%3Dx", "fieldSelector=metadata.name%3Da"] {
        for (name, team) in [("a", "x"), ("b", "y"), ("c", "y")] {
            stage.create(name, json!({"team": team}), json!({})).await;
        }
        let mut page = listed(&stage.api, "limit=1").await;
        assert_eq!(found(&stage.api, selector).await, ["a"]);
        let evict = json!({"metadata": {"annotations": {FINAL: "true"}}});
        assert_eq!(send(&stage.api, "PATCH", &model("b"), &evict).await.0, 200);
        stage.wait_until_archived("b").await;
        let mut all: Vec<String> = names(&page).into_iter().map(str::to_owned).collect();
        while !token(&page).is_empty() {
            page = listed(&stage.api, &format!("limit=1&continue={}", token(&page))).await;
            all.extend(names(&page).into_iter().map(str::to_owned));
        }
        assert_eq!(all, ["a", "b", "c"], "{selector}");
        for name in ["a", "b", "c"] {
            assert_eq!(send(&stage.api, "DELETE", &model(name), &Value::Null).await.0, 200);
            stage.wait_until_deleted(name).await;
        }
    }
    stage.end().await;
}

/// As kubectl asks, whose default is pages of 500.
#[tokio::test(flavor = "multi_thread")]
async fn pages_in_every_form_say_where_the_list_goes_on_and_of_which_version_it_is() {
    let stage = Stage::on_sqlite().await;
    for name in ["a", "b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let version = list_version(&stage.api).await;
    for form in ["Table", "PartialObjectMetadataList"] {
        let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
        let page = async |query: String| {
            let path = format!("{MODELS}?limit=1{query}");
            send_with(&stage.api, "GET", &path, &[("accept", &accept)], String::new())
                .await
                .1
        };
        let first = page(String::new()).await;
        let last = page(format!("&continue={}", token(&first))).await;
        let name = |page: &Value| match form {
            "Table" => page["rows"][0]["cells"][0].clone(),
            _ => page["items"][0]["metadata"]["name"].clone(),
        };
        assert_eq!((name(&first), name(&last)), (json!("a"), json!("b")), "{form}");
        for page in [&first, &last] {
            assert_eq!(page["metadata"]["resourceVersion"], json!(version), "{form}");
        }
        assert_eq!(token(&last), "", "{form}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_carries_as_much_of_its_objects_as_is_asked_for() {
    let stage = Stage::on_sqlite().await;
    let created = stage.create("a", json!({}), json!({"algorithm": "one"})).await;
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    for path in [MODELS.to_owned(), model("a")] {
        for (include, kind, spec) in [
            ("", json!("PartialObjectMetadata"), Value::Null),
            ("None", Value::Null, Value::Null),
            ("Metadata", json!("PartialObjectMetadata"), Value::Null),
            ("Object", json!("Model"), created["spec"].clone()),
        ] {
            let path = format!("{path}?includeObject={include}");
            let (_, table) = send_with(&stage.api, "GET", &path, &table, String::new()).await;
            let object = &table["rows"][0]["object"];
            assert_eq!((&object["kind"], &object["spec"]), (&kind, &spec), "{path}: {table}");
        }
    }
    let (_, one) = send_with(&stage.api, "GET", &model("a"), &table, String::new()).await;
    let version = one["metadata"]["resourceVersion"].as_str().map(str::parse::<u64>);
    assert!(matches!(version, Some(Ok(_))), "{one}");
    let (_, done) = send_with(&stage.api, "DELETE", MODELS, &table, String::new()).await;
    assert_eq!(
        done["kind"], "Status",
        "it is neither an object nor a row of a table: {done}"
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_of_the_version_of_the_cluster_that_is_asked_for() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    let version = list_version(&stage.api).await;
    stage.create("b", json!({}), json!({})).await;
    let of = |matches: &str| format!("resourceVersion={version}&resourceVersionMatch={matches}");
    assert_eq!(found(&stage.api, &of("Exact")).await, ["a"]);
    assert_eq!(found(&stage.api, &of("NotOlderThan")).await, ["a", "b"]);
    let page = listed(&stage.api, &format!("limit=500&{}", of("NotOlderThan"))).await;
    assert_eq!(names(&page), ["a", "b"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_comes_in_pages_of_one_namespace_and_without_selectors() {
    let stage = Stage::on_sqlite().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    send(&stage.cluster, "POST", "/api/v1/namespaces", &namespace).await;
    for name in ["a", "b", "c"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let elsewhere = MODELS.replace("default", "other");
    let object = manifest(json!({"name": "d"}), json!({}));
    assert_eq!(send(&stage.api, "POST", &elsewhere, &object).await.0, 201);
    let past = async |path: &str, more: &str| {
        let path = format!("{path}?at={}{more}", Timestamp::now());
        send(&stage.api, "GET", &path, &Value::Null).await
    };
    let everywhere = "/apis/michelangelo.api/v2/models";
    eventually("all are stored", async || {
        names(&past(everywhere, "").await.1).len() == 4
    })
    .await;
    let then = Timestamp::now();
    let page = async |more: String| listed(&stage.api, &format!("at={then}&limit=2{more}")).await;
    let first = page(String::new()).await;
    let last = page(format!("&continue={}", token(&first))).await;
    let mut all = [names(&first), names(&last)].concat();
    assert_eq!((names(&first).len(), token(&last)), (2, ""));
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c"]);
    for selector in ["&labelSelector=a", "&fieldSelector=metadata.name%3Da"] {
        let (code, refused) = past(MODELS, selector).await;
        assert_eq!(code, 400, "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("selectors do not apply to the past"), "{message}");
    }
    for parameter in ["at=2026-11-01T12:00:00Z", "includeDeleted=true"] {
        let path = format!("{MODELS}?watch=true&{parameter}");
        let watch = send(&stage.api, "GET", &path, &Value::Null);
        let (code, refused) = tokio::time::timeout(Duration::from_secs(60), watch)
            .await
            .expect("an answer");
        assert_eq!(code, 400, "{parameter}: {refused}");
    }
    stage.end().await;
}
