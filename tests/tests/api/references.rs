//! References on objects: set, read and released over HTTP, against deletions and for whoever may speak for a holder.

use std::sync::{Arc, Mutex};

use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::alone::SQL_ONLY_MODELS;
use super::stage::{FINAL, KINDS, MODELS, Stage, manifest, model as model_at, send, send_with};

const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OTHER: &str = "cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";

const NOBODY: &str = "model.michelangelo.api/00000000-f1cc-4f3b-b1c0-232ae8d852ce";

/// With models in the cluster, and with models of a SQL-only kind: the references of both are the same to everybody.
fn both_sides() -> [&'static [&'static Kind]; 2] {
    [KINDS, SQL_ONLY_MODELS]
}

fn of(name: &str) -> String {
    format!("/api/v1/models/default/{name}/references")
}

fn one(name: &str, reference: &str) -> String {
    format!("{}/{}", of(name), reference.replace('/', "%2F"))
}

pub(super) async fn get(stage: &Stage, path: &str) -> (u16, Value) {
    send(&stage.api, "GET", path, &Value::Null).await
}

pub(super) async fn put(stage: &Stage, path: &str) -> (u16, Value) {
    send(&stage.api, "PUT", path, &Value::Null).await
}

async fn delete(stage: &Stage, path: &str) -> (u16, Value) {
    send(&stage.api, "DELETE", path, &Value::Null).await
}

fn names(answer: &Value) -> Vec<&str> {
    let references = answer["references"].as_array().unwrap();
    references.iter().map(|held| held["name"].as_str().unwrap()).collect()
}

/// Waits until SQL has a model.
pub(super) async fn stored(stage: &Stage, name: &str) {
    eventually("stored", async || stage.life(name).await == Some(Life::Live)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_stays_as_long_as_somebody_holds_it() {
    for kinds in both_sides() {
        stays_while_it_is_held(Stage::of_kinds(kinds).await).await;
    }
}

async fn stays_while_it_is_held(stage: Stage) {
    let created = stage.create("a", json!({}), json!({})).await;
    stored(&stage, "a").await;
    let (code, answer) = put(&stage, &one("a", HOLDER)).await;
    assert_eq!(code, 200, "{answer}");
    let target = json!({"apiVersion": "michelangelo.api/v2", "kind": "Model", "namespace": "default", "name": "a",
        "uid": created["metadata"]["uid"], "state": "Live"});
    let held = json!({"name": HOLDER, "kind": "cluster", "group": "compute.example.com",
        "uid": "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce"});
    assert_eq!(answer, json!({"target": target, "references": [held]}));
    let (_, before) = get(&stage, &model_at("a")).await;
    assert!(
        before["metadata"]["finalizers"]
            .as_array()
            .unwrap()
            .contains(&json!(HOLDER))
    );
    let (code, _) = put(&stage, &format!("{}/references/{HOLDER}", model_at("a"))).await;
    let (_, again) = get(&stage, &model_at("a")).await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(
        (code, version(&again)),
        (200, version(&before)),
        "what is so already is not written"
    );

    let (code, leaving) = delete(&stage, &model_at("a")).await;
    assert_eq!(code, 200, "{leaving}");
    assert!(
        leaving["metadata"]["deletionTimestamp"].is_string(),
        "a tombstone at once: {leaving}"
    );
    let (code, refused) = put(&stage, &one("a", OTHER)).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    assert!(
        refused["message"].as_str().unwrap().contains("is being deleted"),
        "{refused}"
    );
    let (code, answer) = put(&stage, &one("a", HOLDER)).await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Deleting")),
        "who has it keeps it"
    );
    let (_, answer) = get(&stage, &of("a")).await;
    assert_eq!(names(&answer), [HOLDER]);
    assert_eq!(
        stage.life("a").await,
        Some(Life::Live),
        "a blocked object is not a deleted one"
    );

    for _ in 0..2 {
        let (code, answer) = delete(&stage, &one("a", HOLDER)).await;
        assert_eq!((code, names(&answer).len()), (200, 0), "{answer}");
    }
    stage.wait_until_deleted("a").await;
    let (code, answer) = delete(&stage, &one("a", HOLDER)).await;
    assert_eq!(code, 200, "also where the object is gone: {answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_stays_as_long_as_somebody_holds_it() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({})).await;
    for _ in 0..2 {
        let (code, answer) = put(&stage, &one("a", HOLDER)).await;
        assert_eq!(
            (code, &answer["target"]["state"]),
            (200, &json!("Archived")),
            "{answer}"
        );
    }
    let (code, leaving) = delete(&stage, &model_at("a")).await;
    assert_eq!(code, 202, "it is held: {leaving}");
    let (_, found) = get(&stage, &model_at("a")).await;
    for shown in [&leaving, &found] {
        assert!(shown["metadata"]["deletionTimestamp"].is_string(), "{shown}");
    }
    let of_user = json!({"metadata": {"labels": {"n": "1"}, "deletionTimestamp": null}});
    let (code, changed) = send(&stage.api, "PATCH", &model_at("a"), &of_user).await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(
        changed["metadata"]["deletionTimestamp"], found["metadata"]["deletionTimestamp"],
        "nobody takes it back"
    );
    let (code, refused) = put(&stage, &one("a", OTHER)).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let (code, answer) = put(&stage, &one("a", HOLDER)).await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Deleting")),
        "{answer}"
    );
    let (_, answer) = get(&stage, &of("a")).await;
    assert_eq!(names(&answer), [HOLDER]);
    assert_eq!(answer["target"]["archived"], json!(true), "{answer}");
    let (_, tree) = get(&stage, &(of("a") + "?resolve=true&depth=1")).await;
    assert_eq!(
        (&tree["state"], &tree["holders"][0]["holds"]),
        (&json!("Deleting"), &json!(true)),
        "{tree}"
    );
    assert_eq!(stage.life("a").await, Some(Life::Archived));
    for _ in 0..2 {
        let (code, answer) = delete(&stage, &one("a", HOLDER)).await;
        assert_eq!((code, names(&answer).len()), (200, 0), "{answer}");
    }
    assert_eq!(stage.life("a").await, Some(Life::Deleted), "with its last reference");
    let (code, refused) = put(&stage, &one("a", HOLDER)).await;
    assert_eq!(code, 404, "{refused}");
    stage.end().await;
}

/// The cluster is deleting it already, and nobody has.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_on_its_way_to_the_archive_takes_references() {
    let stage = Stage::on_sqlite().await;
    stage.create_held("a", json!({})).await;
    let (code, answer) = put(&stage, &one("a", HOLDER)).await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Archived")),
        "{answer}"
    );
    stage.release("a").await;
    let (_, answer) = get(&stage, &of("a")).await;
    assert_eq!(names(&answer), [HOLDER]);
    let (code, answer) = delete(&stage, &one("a", HOLDER)).await;
    assert_eq!(code, 200, "{answer}");
    let (_, answer) = get(&stage, &of("a")).await;
    assert_eq!(names(&answer).len(), 0);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_reference_is_said() {
    for kinds in both_sides() {
        errors_are_said(Stage::of_kinds(kinds).await).await;
    }
}

async fn errors_are_said(stage: Stage) {
    let created = stage.create("a", json!({}), json!({})).await;
    let itself = format!(
        "model.michelangelo.api/{}",
        created["metadata"]["uid"].as_str().unwrap()
    );
    for (method, path, code, said) in [
        ("PUT", of("a") + "/nonsense", 400, "it has to be KIND.GROUP/UID"),
        ("PUT", of("a") + "/cluster/uid", 400, "names no kind and group"),
        ("PUT", of("a") + "/a.b/c/d", 400, "it has to be KIND.GROUP/UID"),
        ("DELETE", of("a") + "/nonsense", 400, "it has to be KIND.GROUP/UID"),
        ("PUT", of("a") + "/michelangelo.api/deletion", 400, "is not a UUID"),
        ("DELETE", of("a") + "/example.com/backup", 400, "is not a UUID"),
        ("PUT", one("b", HOLDER), 404, "not found"),
        ("GET", of("b"), 404, "not found"),
        ("GET", one("a", HOLDER), 404, "has no reference"),
        ("PUT", one("a", &itself), 422, "the object itself"),
        ("POST", of("a"), 405, "does not allow this method"),
        ("DELETE", of("a"), 405, "does not allow this method"),
        ("GET", of("a") + "?resolve=true&depth=0", 400, "not a number of steps"),
        (
            "GET",
            of("a") + "?resolve=maybe",
            400,
            "resolve: Invalid value: \"maybe\"",
        ),
        (
            "GET",
            format!("/api/v1/references/{}", NOBODY),
            404,
            "no object has references",
        ),
    ] {
        let (answered, refused) = send(&stage.api, method, &path, &Value::Null).await;
        assert_eq!(
            (answered, &refused["kind"]),
            (code, &json!("Status")),
            "{method} {path}: {refused}"
        );
        assert!(
            refused["message"].as_str().unwrap().contains(said),
            "{method} {path}: {refused}"
        );
    }
    let (code, _) = get(&stage, "/api/v1/namespaces/default").await;
    assert_eq!(code, 200, "the core group's paths are the cluster's");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_reference_and_a_deletion_at_the_same_time_one_wins() {
    for kinds in both_sides() {
        one_of_two_wins(Stage::behind_a_proxy_with(kinds).await).await;
    }
}

/// Between what a request has read and what it writes, the other one happens.
async fn one_of_two_wins(stage: Stage) {
    let (registry, store) = (stage.ground.registry(), stage.store.clone());
    let beside = kindex::sql_only::with_cluster(stage.cluster.clone(), &registry, store).await;
    let beside = beside.unwrap();
    for name in ["a", "b", "c"] {
        // So that it is there until the test is at its end.
        let metadata = json!({"name": name, "finalizers": ["example.com/hold"]});
        let (code, created) = send(&stage.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
        assert_eq!(code, 201, "{created}");
        stored(&stage, name).await;
    }
    let aside = |method: &'static str, path: String| {
        let (client, said) = (beside.clone(), Arc::new(Mutex::new(0)));
        let code = said.clone();
        let work = async move { *code.lock().unwrap() = send(&client, method, &path, &Value::Null).await.0 };
        (work, said)
    };
    // The deletion comes between the reading and the writing of the reference.
    let (work, deleted) = aside("DELETE", model_at("a"));
    stage.ground.proxy.overtake("PATCH", &model_at("a"), work);
    let (code, refused) = put(&stage, &one("a", HOLDER)).await;
    assert_eq!((code, *deleted.lock().unwrap()), (409, 200), "{refused}");
    // It comes before the reading.
    let (work, deleted) = aside("DELETE", model_at("c"));
    stage.ground.proxy.overtake("GET", &model_at("c"), work);
    let (code, refused) = put(&stage, &one("c", HOLDER)).await;
    assert_eq!((code, *deleted.lock().unwrap()), (409, 200), "{refused}");
    // The reference comes between the reading and the deletion.
    let (_, found) = get(&stage, &model_at("b")).await;
    let mut finalizers = found["metadata"]["finalizers"].clone();
    finalizers.as_array_mut().unwrap().push(json!(HOLDER));
    let work = async move {
        let holding = json!({"metadata": {"finalizers": finalizers}});
        let (code, answer) = send(&beside, "PATCH", &model_at("b"), &holding).await;
        assert_eq!(code, 200, "{answer}");
    };
    stage.ground.proxy.overtake("DELETE", &model_at("b"), work);
    let (code, leaving) = delete(&stage, &model_at("b")).await;
    assert_eq!(code, 200, "{leaving}");
    assert!(stage.ground.proxy.has_overtaken());
    let (_, answer) = get(&stage, &of("b")).await;
    assert_eq!(
        (names(&answer), &answer["target"]["state"]),
        (vec![HOLDER], &json!("Deleting"))
    );
    stage.end().await;
}

/// Between what a request has read and what it writes, the object leaves for the archive.
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_follows_its_object_into_the_archive() {
    let stage = Stage::behind_a_proxy().await;
    let created = stage.create("a", json!({}), json!({})).await;
    stored(&stage, "a").await;
    let (go_on, halted) = oneshot::channel();
    let wait = async move { halted.await.unwrap() };
    stage.ground.proxy.overtake("PATCH", &model_at("a"), wait);
    let eviction = async {
        eventually("the reference is to be written", async || {
            stage.ground.proxy.has_overtaken()
        })
        .await;
        let last = json!({"metadata": {"annotations": {FINAL: "true"}}});
        let (code, answer) = send(&stage.cluster, "PATCH", &model_at("a"), &last).await;
        assert_eq!(code, 200, "{answer}");
        stage.wait_until_archived("a").await;
        go_on.send(()).unwrap();
    };
    let path = one("a", HOLDER);
    let ((code, answer), ()) = tokio::join!(put(&stage, &path), eviction);
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Archived")),
        "{answer}"
    );
    let uid = Uid::from(created["metadata"]["uid"].as_str().unwrap());
    let rows = stage.store.references(&model::KIND, &[uid]).await.unwrap();
    assert_eq!(rows.iter().map(|row| &*row.name).collect::<Vec<_>>(), [HOLDER]);
    let (_, answer) = get(&stage, &of("a")).await;
    assert_eq!(
        (names(&answer), &answer["target"]["archived"]),
        (vec![HOLDER], &json!(true)),
        "{answer}"
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_its_holders() {
    for kinds in both_sides() {
        is_its_holders(Stage::with_rights_to(kinds).await).await;
    }
}

async fn is_its_holders(stage: Stage) {
    let ask_as = async |user: &str, method: &str, path: &str| {
        let token = format!("Bearer {user}-token");
        send_with(&stage.api, method, path, &[("authorization", &token)], String::new()).await
    };
    let create = async |name: &str| {
        let headers = [
            ("authorization", "Bearer root-token"),
            ("content-type", "application/json"),
        ];
        let body = manifest(json!({"name": name}), json!({})).to_string();
        let (code, created) = send_with(&stage.api, "POST", MODELS, &headers, body).await;
        assert_eq!(code, 201, "{created}");
        stored(&stage, name).await;
        format!(
            "model.michelangelo.api/{}",
            created["metadata"]["uid"].as_str().unwrap()
        )
    };
    create("target").await;
    let holder = create("holder").await;
    let mine = one("target", &holder);
    // Jane reads and deletes, and may not update references of the holder.
    for (method, user) in [
        ("PUT", "jane"),
        ("DELETE", "jane"),
        ("PUT", "only-update/references"),
        ("GET", "nobody"),
    ] {
        let (code, refused) = ask_as(user, method, &mine).await;
        assert_eq!(
            (code, &refused["reason"]),
            (403, &json!("Forbidden")),
            "{user} {method}: {refused}"
        );
    }
    let (_, refused) = ask_as("jane", "PUT", &mine).await;
    let said = refused["message"].as_str().unwrap();
    assert!(said.contains("cannot update resource \"models/references\""), "{said}");
    let (code, answer) = ask_as("only-get+update/references", "PUT", &mine).await;
    assert_eq!(code, 200, "{answer}");
    let held = json!({"namespace": "default", "name": "holder", "state": "Live"});
    assert_eq!(answer["references"][0]["holder"], held);
    let reviewed = stage.ground.proxy.reviewed.lock().unwrap().clone();
    let asked = reviewed.iter().map(|spec| &spec["resourceAttributes"]);
    let expected = json!({"verb": "update", "group": "michelangelo.api", "version": "*", "resource": "models",
        "subresource": "references", "namespace": "default", "name": "holder"});
    assert!(
        asked.clone().any(|asked| *asked == expected),
        "{:?}",
        asked.collect::<Vec<_>>()
    );
    // Who speaks for models speaks for no cluster.
    let (code, refused) = ask_as("only-get+update/references", "PUT", &one("target", HOLDER)).await;
    assert_eq!(code, 403, "{refused}");
    let (code, answer) = ask_as("jane", "GET", &of("target")).await;
    assert_eq!((code, names(&answer)), (200, vec![holder.as_str()]));
    stage.end().await;
}
