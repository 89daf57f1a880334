//! A kind of the whole cluster, also as a SQL-only one: its objects hold and are held as those of a namespace are, and
//! neither paths, answers nor rights have one.

use kindex_generated::kinds::{model, project};
use kindex_harness::wait::eventually;
use kindex_model::kind::{Kind, Scope};
use kindex_query::Life;
use serde_json::{Value, json};

use super::references::stored;
use super::stage::{FINAL, MODELS, Stage, send, send_with};

const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OTHER: &str = "cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";
pub(super) const PROJECTS: &str = "/apis/michelangelo.api/v2/projects";
const OF_A: &str = "/api/v1/projects/a/references";

/// Models in namespaces, and projects of the whole cluster, which may be of a SQL-only kind.
pub(super) fn kinds(are_in_cluster: bool) -> &'static [&'static Kind] {
    let definition = project::KIND.manifest.replace("scope: Namespaced", "scope: Cluster");
    let projects = Kind {
        cluster: are_in_cluster,
        events: false,
        scope: Scope::Cluster,
        manifest: Box::leak(definition.into_boxed_str()),
        ..project::KIND
    };
    Box::leak(Box::new([&model::KIND, &*Box::leak(Box::new(projects))]))
}

/// The uid of a new object, which somebody creates who may.
pub(super) async fn create(stage: &Stage, at: &str, kind: &str, metadata: Value) -> String {
    let object = json!({"apiVersion": "michelangelo.api/v2", "kind": kind, "metadata": metadata, "spec": {}});
    let headers = [
        ("authorization", "Bearer root-token"),
        ("content-type", "application/json"),
    ];
    let (code, created) = send_with(&stage.api, "POST", at, &headers, object.to_string()).await;
    assert_eq!(code, 201, "{created}");
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Where the newest project of a name lives.
async fn life(stage: &Stage, name: &str) -> Option<Life> {
    let rows = stage.store.rows_of_name(&project::KIND, "", name).await.unwrap();
    rows.first().map(|row| row.life)
}

async fn ask(stage: &Stage, method: &str, path: &str) -> (u16, Value) {
    send(&stage.api, method, path, &Value::Null).await
}

async fn until_gone(stage: &Stage, name: &str) {
    let path = format!("{PROJECTS}/{name}");
    eventually(&format!("{name} is deleted"), async || {
        ask(stage, "GET", &path).await.0 == 404 && life(stage, name).await == Some(Life::Deleted)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_a_namespace_stays_as_long_as_somebody_holds_it() {
    for are_in_cluster in [true, false] {
        stays_while_it_is_held(Stage::of_kinds(kinds(are_in_cluster)).await).await;
    }
}

async fn stays_while_it_is_held(stage: Stage) {
    let uid = create(&stage, PROJECTS, "Project", json!({"name": "a"})).await;
    eventually("stored", async || life(&stage, "a").await == Some(Life::Live)).await;
    let target = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "name": "a", "uid": uid,
        "state": "Live"});
    let held = format!("{OF_A}/{HOLDER}");
    let by_own_path = format!("{PROJECTS}/a/references/{}", HOLDER.replace('/', "%2F"));
    for path in [&held, &by_own_path] {
        let (code, answer) = ask(&stage, "PUT", path).await;
        assert_eq!((code, &answer["target"]), (200, &target), "{path}: {answer}");
    }
    for (method, path, code) in [
        ("PUT", format!("{OF_A}/project.michelangelo.api/{uid}"), 422),
        ("PUT", format!("/api/v1/projects/b/references/{HOLDER}"), 404),
        // Where objects of namespaces are.
        ("GET", "/api/v1/projects/default/a/references".to_owned(), 404),
        (
            "GET",
            PROJECTS.replace("/projects", "/namespaces/default/projects/a/references"),
            404,
        ),
    ] {
        let (answered, refused) = ask(&stage, method, &path).await;
        assert_eq!(answered, code, "{method} {path}: {refused}");
    }

    let (code, leaving) = ask(&stage, "DELETE", &format!("{PROJECTS}/a")).await;
    assert_eq!(code, 200, "{leaving}");
    assert!(leaving["metadata"]["deletionTimestamp"].is_string(), "{leaving}");
    let (code, refused) = ask(&stage, "PUT", &format!("{OF_A}/{OTHER}")).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let (code, answer) = ask(&stage, "GET", OF_A).await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Deleting")),
        "{answer}"
    );
    assert_eq!(answer["references"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(answer["references"][0]["name"], HOLDER, "{answer}");
    assert_eq!(life(&stage, "a").await, Some(Life::Live), "it is held");
    let (code, answer) = ask(&stage, "DELETE", &held).await;
    assert_eq!(code, 200, "{answer}");
    until_gone(&stage, "a").await;
    let (code, answer) = ask(&stage, "DELETE", &held).await;
    assert_eq!(code, 200, "also where the object is gone: {answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_without_a_namespace_goes_with_its_last_reference() {
    let stage = Stage::of_kinds(kinds(true)).await;
    let metadata = json!({"name": "a", "annotations": {FINAL: "true"}});
    create(&stage, PROJECTS, "Project", metadata).await;
    let path = format!("{PROJECTS}/a");
    eventually("it is archived", async || {
        let (code, _) = send(&stage.cluster, "GET", &path, &Value::Null).await;
        code == 404 && life(&stage, "a").await == Some(Life::Archived)
    })
    .await;
    let held = format!("{OF_A}/{HOLDER}");
    let (code, answer) = ask(&stage, "PUT", &held).await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Archived")),
        "{answer}"
    );
    let (code, leaving) = ask(&stage, "DELETE", &path).await;
    assert_eq!(code, 202, "it is held: {leaving}");
    let (code, tree) = ask(&stage, "GET", &format!("{OF_A}?resolve=true&depth=1")).await;
    assert_eq!((code, &tree["state"]), (200, &json!("Deleting")), "{tree}");
    assert_eq!(tree["holders"][0]["holds"], json!(true), "{tree}");
    let (code, answer) = ask(&stage, "DELETE", &held).await;
    assert_eq!((code, life(&stage, "a").await), (200, Some(Life::Deleted)), "{answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_speaks_for_an_object_without_a_namespace_has_the_right_in_the_whole_cluster() {
    for are_in_cluster in [true, false] {
        rights_are_of_the_whole_cluster(Stage::with_rights_to(kinds(are_in_cluster)).await).await;
    }
}

/// A project holds one model, and another one holds the project.
async fn rights_are_of_the_whole_cluster(stage: Stage) {
    let ask_as = async |user: &str, method: &str, path: &str| {
        let token = format!("Bearer {user}-token");
        send_with(&stage.api, method, path, &[("authorization", &token)], String::new()).await
    };
    let uid = create(&stage, PROJECTS, "Project", json!({"name": "a"})).await;
    let project = format!("project.michelangelo.api/{uid}");
    create(&stage, MODELS, "Model", json!({"name": "held"})).await;
    let uid = create(&stage, MODELS, "Model", json!({"name": "holder"})).await;
    let model = format!("model.michelangelo.api/{uid}");
    stored(&stage, "holder").await;
    eventually("stored", async || life(&stage, "a").await == Some(Life::Live)).await;

    let of_model = format!("/api/v1/models/default/held/references/{project}");
    let of_project = format!("{OF_A}/{model}");
    // Jane reads whatever is in her namespace.
    for (user, path) in [
        ("only-get+update/references", &of_model),
        ("only-get+update/references", &of_project),
        ("jane", &of_project),
    ] {
        let (code, refused) = ask_as(user, "PUT", path).await;
        assert_eq!(code, 403, "{user} {path}: {refused}");
        let said = refused["message"].as_str().unwrap();
        assert!(said.contains("at the cluster scope"), "{user} {path}: {said}");
    }
    let speaker = "only-get+get@projects+update/references@projects";
    let (code, answer) = ask_as(speaker, "PUT", &of_model).await;
    assert_eq!(code, 200, "{answer}");
    let holder = json!({"name": "a", "state": "Live"});
    assert_eq!(answer["references"][0]["holder"], holder, "{answer}");
    let (code, answer) = ask_as("only-get@projects+update/references", "PUT", &of_project).await;
    assert_eq!(code, 200, "{answer}");
    let reviewed = stage.ground.proxy.reviewed.lock().unwrap().clone();
    let expected = json!({"verb": "update", "group": "michelangelo.api", "version": "*", "resource": "projects",
        "subresource": "references", "namespace": "", "name": "a"});
    let is_asked = reviewed.iter().any(|spec| spec["resourceAttributes"] == expected);
    assert!(is_asked, "{reviewed:?}");

    // Of a holder, the tree has what is stored.
    eventually("both are above the model", async || {
        let of_held = "/api/v1/models/default/held/references?resolve=true";
        let (_, tree) = ask_as("root", "GET", of_held).await;
        let above = &tree["holders"][0];
        assert_eq!(
            (&above["name"], &above["namespace"]),
            (&json!("a"), &Value::Null),
            "{tree}"
        );
        above["holders"][0]["name"] == "holder"
    })
    .await;
    let (code, tree) = ask_as("root", "GET", &format!("/api/v1/references/{project}")).await;
    assert_eq!((code, &tree["name"]), (200, &json!("a")), "{tree}");
    assert_eq!(tree["holders"][0]["namespace"], "default", "{tree}");
    stage.end().await;
}
