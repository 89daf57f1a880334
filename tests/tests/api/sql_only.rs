//! Kinds that no cluster has: the API server creates, changes, watches and deletes their objects in SQL, as a cluster
//! would, and nothing that follows the cluster touches them.

use std::sync::Arc;

use futures::future::join_all;
use futures::{AsyncBufReadExt, StreamExt};
use kindex_harness::wait::eventually;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_query::Life;
use kindex_runtime::{Ingester, Sharding, settings::Settings};
use kindex_tests::databases::patient;
use kube::Client;
use serde_json::{Value, json};

use super::alone::{ALONE, SQL_ONLY_PROJECT};
use super::request::install;
use super::stage::{Ground, MODELS, Stage, manifest, names, send, send_with};

const PROJECTS: &str = "/apis/michelangelo.api/v2/namespaces/nowhere/projects";
const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

fn project(name: &str) -> String {
    format!("{PROJECTS}/{name}")
}

fn body(name: &str, description: &str) -> Value {
    json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": {"name": name},
        "spec": {"description": description}})
}

async fn create(api: &Client, name: &str) -> Value {
    let (code, created) = send(api, "POST", PROJECTS, &body(name, "one")).await;
    assert_eq!(code, 201, "{created}");
    created
}

async fn get(api: &Client, path: &str) -> (u16, Value) {
    send(api, "GET", path, &Value::Null).await
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_live_in_sql_as_they_would_in_a_cluster() {
    let stage = Stage::with_sql_only_projects().await;
    let created = create(&stage.api, "a").await;
    let metadata = &created["metadata"];
    assert_eq!(
        (&metadata["generation"], &metadata["namespace"]),
        (&json!(1), &json!("nowhere"))
    );
    for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
        assert!(!metadata[field].is_null(), "{field} of {metadata}");
    }
    let (code, refused) = send(&stage.api, "POST", PROJECTS, &body("a", "two")).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")), "{refused}");
    let mut changed = created.clone();
    changed["spec"]["description"] = "two".into();
    let (code, updated) = send(&stage.api, "PUT", &project("a"), &changed).await;
    assert_eq!(
        (code, &updated["metadata"]["generation"]),
        (200, &json!(2)),
        "{updated}"
    );
    let (code, refused) = send(&stage.api, "PUT", &project("a"), &changed).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let apply = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{}?fieldManager=somebody", project("b"));
    let (code, applied) = send_with(&stage.api, "PATCH", &path, &apply, body("b", "x").to_string()).await;
    assert_eq!(code, 201, "{applied}");
    let path = format!("{}?dryRun=All", project("a"));
    assert_eq!(send(&stage.api, "DELETE", &path, &Value::Null).await.0, 200);
    let strict = format!("{PROJECTS}?fieldValidation=Strict");
    let mut unknown = body("c", "x");
    unknown["spec"]["no_such_field"] = 1.into();
    assert_eq!(send(&stage.api, "POST", &strict, &unknown).await.0, 400);
    let (_, list) = get(&stage.api, "/apis/michelangelo.api/v2/projects").await;
    assert_eq!(names(&list), ["a", "b"]);
    let row = stage
        .store
        .get_by_name(&SQL_ONLY_PROJECT, "nowhere", "a")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.life, row.object.metadata.resource_version.to_string()),
        (
            Life::Live,
            updated["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
        )
    );
    let (code, _) = get(&stage.cluster, PROJECTS).await;
    assert_eq!(code, 404, "no cluster serves them");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_stays_until_its_last_finalizer_and_its_last_reference_are_gone() {
    let stage = Stage::with_sql_only_projects().await;
    create(&stage.api, "a").await;
    let reference = format!("/api/v1/projects/nowhere/a/references/{}", HOLDER.replace('/', "%2F"));
    let (code, answer) = send(&stage.api, "PUT", &reference, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let hold = json!({"metadata": {"finalizers": [HOLDER, "example.com/hold"]}});
    assert_eq!(send(&stage.api, "PATCH", &project("a"), &hold).await.0, 200);
    let (code, left) = send(&stage.api, "DELETE", &project("a"), &Value::Null).await;
    assert_eq!(code, 200, "{left}");
    assert!(left["metadata"]["deletionTimestamp"].is_string(), "{left}");
    let other = reference.replace("7f7a15ab", "00000000");
    assert_eq!(
        send(&stage.api, "PUT", &other, &Value::Null).await.0,
        409,
        "it takes no new ones"
    );
    let free = json!({"metadata": {"finalizers": [HOLDER]}});
    assert_eq!(send(&stage.api, "PATCH", &project("a"), &free).await.0, 200);
    assert_eq!(get(&stage.api, &project("a")).await.0, 200, "its holder has not let go");
    let (code, refused) = send(&stage.api, "POST", PROJECTS, &body("a", "two")).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")), "{refused}");
    assert_eq!(send(&stage.api, "DELETE", &reference, &Value::Null).await.0, 200);
    assert_eq!(get(&stage.api, &project("a")).await.0, 404);
    let (_, deleted) = get(&stage.api, &format!("{PROJECTS}?includeDeleted=true")).await;
    assert_eq!(names(&deleted), ["a"]);
    create(&stage.api, "a").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sees_every_change_through_its_selector() {
    let stage = Stage::with_sql_only_projects().await;
    let (_, list) = get(&stage.api, PROJECTS).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{PROJECTS}?watch=true&labelSelector=team%3Da&resourceVersion={version}");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();
    create(&stage.api, "x").await;
    for team in ["a", "b", "a"] {
        let label = json!({"metadata": {"labels": {"team": team}}});
        assert_eq!(send(&stage.api, "PATCH", &project("x"), &label).await.0, 200);
    }
    assert_eq!(send(&stage.api, "DELETE", PROJECTS, &Value::Null).await.0, 200);
    let mut versions = Vec::new();
    for wanted in ["ADDED", "DELETED", "ADDED", "DELETED"] {
        let event: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(event["type"], wanted, "{event}");
        let version = event["object"]["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .to_owned();
        versions.push(version.parse::<u64>().unwrap());
    }
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    // Who lost the connection goes on where it was.
    let path = format!(
        "{PROJECTS}?watch=true&labelSelector=team%3Da&resourceVersion={}",
        versions[1]
    );
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();
    for wanted in ["ADDED", "DELETED"] {
        let event: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(event["type"], wanted, "{event}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sees_what_another_server_writes() {
    let stage = Stage::with_sql_only_projects().await;
    let registry = stage.ground.registry();
    let other = kindex::sql_only::client(&registry, stage.store.clone())
        .await
        .unwrap()
        .unwrap();
    let request = http::Request::get(format!("{PROJECTS}?watch=true"))
        .body(Vec::new())
        .unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();
    create(&other, "x").await;
    let event: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("x"))
    );
    stage.end().await;
}

/// Pages are of one version, whatever changes between them.
#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_list_are_of_one_version() {
    let stage = Stage::with_sql_only_projects().await;
    for name in ["a", "c", "d", "f"] {
        create(&stage.api, name).await;
    }
    let (_, first) = get(&stage.api, &format!("{PROJECTS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "c"]);
    let token = first["metadata"]["continue"].as_str().unwrap();
    for name in ["b", "e"] {
        create(&stage.api, name).await;
    }
    let label = json!({"metadata": {"labels": {"late": "yes"}}});
    assert_eq!(send(&stage.api, "PATCH", &project("d"), &label).await.0, 200);
    assert_eq!(send(&stage.api, "DELETE", &project("f"), &Value::Null).await.0, 200);
    let (_, second) = get(&stage.api, &format!("{PROJECTS}?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["d", "f"], "{second}");
    assert!(second["items"][0]["metadata"]["labels"].is_null());
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let (_, now) = get(&stage.api, PROJECTS).await;
    assert_eq!(names(&now), ["a", "b", "c", "d", "e"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_names_them_beside_what_the_cluster_has() {
    let stage = Stage::with_sql_only_projects().await;
    let plural = |resources: &Value, key: &str| -> Vec<String> {
        let resources = resources.as_array().unwrap().iter();
        resources.map(|it| it[key].as_str().unwrap().to_owned()).collect()
    };
    let (_, list) = get(&stage.api, "/apis/michelangelo.api/v2").await;
    let found = plural(&list["resources"], "name");
    for name in ["models", "projects"] {
        assert!(found.contains(&name.to_owned()), "{found:?}");
    }
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let headers = [("accept", aggregated)];
    let (_, all) = send_with(&stage.api, "GET", "/apis", &headers, String::new()).await;
    let group = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["metadata"]["name"] == "michelangelo.api");
    let found = plural(&group.unwrap()["versions"][0]["resources"], "resource");
    assert!(
        found.contains(&"models".to_owned()) && found.contains(&"projects".to_owned()),
        "{found:?}"
    );
    let (_, document) = get(&stage.api, "/openapi/v3/apis/michelangelo.api/v2").await;
    let schemas = &document["components"]["schemas"];
    assert!(schemas["api.michelangelo.v2.Project"].is_object() && schemas["api.michelangelo.v2.Model"].is_object());
    let (_, index) = get(&stage.api, "/openapi/v3").await;
    assert!(index["paths"]["apis/michelangelo.api/v2"].is_object(), "{index}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_takes_the_same_rights() {
    let stage = Stage::with_rights_to(ALONE).await;
    let path = PROJECTS.replace("nowhere", "other");
    for (method, path) in [
        ("POST", path.clone()),
        ("GET", path.clone()),
        ("GET", format!("{path}/a")),
        ("PUT", format!("{path}/a")),
        ("DELETE", format!("{path}/a")),
        ("DELETE", path.clone()),
        ("GET", format!("{path}?watch=true")),
    ] {
        let headers = [
            ("authorization", "Bearer jane-token"),
            ("content-type", "application/json"),
        ];
        let (code, refused) = send_with(&stage.api, method, &path, &headers, body("a", "x").to_string()).await;
        assert_eq!(
            (code, &refused["reason"]),
            (403, &json!("Forbidden")),
            "{method} {path}: {refused}"
        );
        let (code, _) = send_with(&stage.api, method, &path, &headers[1..], body("a", "x").to_string()).await;
        assert_eq!(code, 401, "{method} {path}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_create_one_name_at_two_servers_one_is_done() {
    let stage = Stage::with_sql_only_projects().await;
    let registry = stage.ground.registry();
    let other = kindex::sql_only::client(&registry, stage.store.clone())
        .await
        .unwrap()
        .unwrap();
    let wanted = body("a", "x");
    let all = (0..10).map(|n| send(if n % 2 == 0 { &stage.api } else { &other }, "POST", PROJECTS, &wanted));
    let mut codes: Vec<u16> = join_all(all).await.into_iter().map(|(code, _)| code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [vec![201], vec![409; 9]].concat());
    stage.end().await;
}

/// A cluster may have the definition and none of the objects: that says nothing of what SQL keeps.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_lacks_is_not_gone() {
    let ground = Ground::embedded().await;
    let registry = kindex_model::kind::Registry {
        kinds: ALONE,
        ..ground.registry()
    };
    let cluster = Client::try_from(ground.config()).unwrap();
    install(&cluster, ALONE, &Value::Null).await;
    let store = kindex_store::open(&ground.sqlite(), registry, &patient()).unwrap();
    store.prepare().await.unwrap();
    let api = kindex::sql_only::client(&registry, store.clone())
        .await
        .unwrap()
        .unwrap();
    create(&api, "a").await;
    let (code, answer) = send(&cluster, "POST", MODELS, &manifest(json!({"name": "m"}), json!({}))).await;
    assert_eq!(code, 201, "{answer}");
    let kube_cluster = Arc::new(KubeCluster::new(ground.config()).unwrap());
    let ingester = Ingester::start(registry, kube_cluster, store.clone(), Sharding::Alone, |_| {
        Settings::default()
    });
    eventually("all is ingested", async || {
        let model = store.get_by_name(ALONE[0], "default", "m").await.unwrap();
        model.is_some() && ingester.status().is_caught_up()
    })
    .await;
    let row = store.get_by_name(&SQL_ONLY_PROJECT, "nowhere", "a").await.unwrap();
    assert_eq!(
        row.map(|row| row.life),
        Some(Life::Live),
        "no cluster says what becomes of it"
    );
    ingester.shutdown().await;
    ground.stop().cancel();
    store.close().await;
}
