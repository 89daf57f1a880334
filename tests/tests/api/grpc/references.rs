//! References over gRPC: the same answers as over HTTP.

use kindex_harness::wait::eventually;
use kindex_query::Life;
use prost_reflect::DescriptorPool;
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::client::{Body, Client};
use crate::api::cluster_scoped::{PROJECTS, create, kinds};
use crate::api::stage::{MODELS, Stage, model, send};

const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OTHER: &str = "cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";

/// A call of the service of references.
async fn call(client: &Client, name: &str, request: Value) -> Result<Value, Status> {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/api/proto");
    let files = protox::compile(["kindex/references/v1/references.proto"], [proto]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let service = pool.get_service_by_name("kindex.references.v1.References").unwrap();
    let method = service.methods().find(|method| method.name() == name).unwrap();
    client
        .answered_by(&method, Body::Json(&request))
        .await
        .map(|(answer, _)| answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_set_listed_and_released() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let created = stage.create("a", json!({}), json!({})).await;
    let target = json!({"resource": "models", "namespace": "default", "name": "a"});
    let put = json!({"target": target, "reference": HOLDER});
    for _ in 0..2 {
        let answer = call(&client, "PutReference", put.clone()).await.unwrap();
        assert_eq!(answer["references"][0]["name"], HOLDER, "{answer}");
    }
    let qualified = json!({"resource": "models.michelangelo.api", "namespace": "default", "name": "a"});
    let answer = call(&client, "ListReferences", json!({"target": qualified}))
        .await
        .unwrap();
    assert_eq!(answer["target"]["uid"], created["metadata"]["uid"], "{answer}");
    assert_eq!(answer["references"].as_array().map(Vec::len), Some(1), "{answer}");
    for (limit, shown) in [(0, 0), (1, 1)] {
        let answer = call(&client, "ListReferences", json!({"target": target, "limit": limit}))
            .await
            .unwrap();
        assert_eq!(answer["target"]["uid"], created["metadata"]["uid"], "{answer}");
        let references = answer["references"].as_array().map_or(0, Vec::len);
        assert_eq!(references, shown, "{answer}");
    }
    let renewed = json!({"target": target, "reference": HOLDER, "renew": true});
    call(&client, "PutReference", renewed).await.unwrap();
    let release = |at: &Value| json!({"target": target, "reference": HOLDER, "resourceVersion": at});
    let earlier = &created["metadata"]["resourceVersion"];
    for (at, code) in [
        (earlier, Code::FailedPrecondition),
        (&json!("x"), Code::InvalidArgument),
    ] {
        let refused = call(&client, "DeleteReference", release(at)).await.unwrap_err();
        assert_eq!(refused.code(), code, "{at}: {refused}");
    }
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    let answer = call(&client, "ListReferences", json!({"target": target}))
        .await
        .unwrap();
    let at = &answer["target"]["resourceVersion"];
    let answer = call(&client, "DeleteReference", release(at)).await.unwrap();
    assert_eq!(answer["target"]["state"], "Live", "{answer}");
    let answer = call(&client, "ListReferences", json!({"target": target}))
        .await
        .unwrap();
    let last = answer["target"]["releasedReference"].as_str().unwrap_or_default();
    assert!(last.starts_with(HOLDER), "{answer}");
    assert_eq!(answer["target"]["releasedReferences"], json!([last]), "{answer}");

    let of = |target: Value, reference: &str| json!({"target": target, "reference": reference});
    let absent = json!({"resource": "models", "namespace": "default", "name": "b"});
    for (request, code) in [
        (of(target.clone(), "nonsense"), Code::InvalidArgument),
        (of(absent, HOLDER), Code::NotFound),
        (of(json!({"resource": "nodes", "name": "a"}), HOLDER), Code::NotFound),
        (of(Value::Null, HOLDER), Code::InvalidArgument),
    ] {
        let refused = call(&client, "PutReference", request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{request}: {refused}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_reference_is_shown_by_its_name() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    stage.create("a", json!({}), json!({})).await;
    let of = |name: &str, reference: &str| {
        let target = json!({"resource": "models", "namespace": "default", "name": name});
        json!({"target": target, "reference": reference})
    };
    call(&client, "PutReference", of("a", HOLDER)).await.unwrap();
    let answer = call(&client, "GetReference", of("a", HOLDER)).await.unwrap();
    assert_eq!(answer["reference"]["name"], HOLDER, "{answer}");
    assert_eq!(answer["target"]["name"], "a", "{answer}");
    for (request, code) in [
        (of("a", OTHER), Code::NotFound),
        (of("b", HOLDER), Code::NotFound),
        (of("a", "nonsense"), Code::InvalidArgument),
    ] {
        let refused = call(&client, "GetReference", request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{request}: {refused}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_going_and_the_object_itself_are_refused_as_over_http() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let created = stage.create("a", json!({}), json!({})).await;
    let target = json!({"resource": "models", "namespace": "default", "name": "a"});
    let put = |reference: &str, renew: bool| json!({"target": target, "reference": reference, "renew": renew});
    let itself = format!(
        "model.michelangelo.api/{}",
        created["metadata"]["uid"].as_str().unwrap()
    );
    for renew in [false, true] {
        let refused = call(&client, "PutReference", put(&itself, renew)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains("the object itself"), "{refused}");
    }
    call(&client, "PutReference", put(HOLDER, false)).await.unwrap();
    let (code, leaving) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200, "{leaving}");
    for renew in [false, true] {
        let refused = call(&client, "PutReference", put(OTHER, renew)).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(refused.message().contains("is being deleted"), "{refused}");
        let answer = call(&client, "PutReference", put(HOLDER, renew)).await.unwrap();
        assert_eq!(answer["target"]["state"], "Deleting", "who has it keeps it: {answer}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_its_holders_over_grpc_too() {
    let stage = Stage::with_rights().await;
    let client = Client::plain(stage.address).await;
    let as_user = |user: &str| client.with_token(&format!("{user}-token"));
    create(&stage, MODELS, "Model", json!({"name": "target"})).await;
    let uid = create(&stage, MODELS, "Model", json!({"name": "holder"})).await;
    eventually("stored", async || stage.life("holder").await == Some(Life::Live)).await;
    let own = format!("model.michelangelo.api/{uid}");
    let target = json!({"resource": "models", "namespace": "default", "name": "target"});
    let of = |reference: &str| json!({"target": target, "reference": reference});
    let all = json!({"target": target});
    let speaker = "only-get+update/references";
    for (user, name, request) in [
        ("jane", "PutReference", of(&own)),
        ("jane", "DeleteReference", of(&own)),
        ("only-update/references", "PutReference", of(&own)),
        ("only-update/references", "DeleteReference", of(&own)),
        ("nobody", "GetReference", of(&own)),
        ("nobody", "ListReferences", all.clone()),
        // Who speaks for models speaks for no cluster.
        (speaker, "PutReference", of(HOLDER)),
    ] {
        let refused = call(&as_user(user), name, request).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{user} {name}: {refused}");
    }
    let refused = call(&client, "PutReference", of(&own)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    call(&as_user(speaker), "PutReference", of(&own)).await.unwrap();
    let answer = call(&as_user("jane"), "ListReferences", all).await.unwrap();
    assert_eq!(answer["references"][0]["name"], json!(own), "{answer}");
    call(&as_user(speaker), "DeleteReference", of(&own)).await.unwrap();
    stage.end().await;
}

/// As if a right in a namespace were one to what is in no namespace.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_the_whole_cluster_is_named_without_a_namespace() {
    let stage = Stage::with_rights_to(kinds(true)).await;
    let client = Client::plain(stage.address).await;
    let (root, jane) = (client.with_token("root-token"), client.with_token("jane-token"));
    create(&stage, PROJECTS, "Project", json!({"name": "a"})).await;
    create(&stage, MODELS, "Model", json!({"name": "m"})).await;
    let of = |target: Value| json!({"target": target, "reference": HOLDER});
    let project = json!({"resource": "projects", "name": "a"});
    let in_namespace = json!({"resource": "projects", "namespace": "default", "name": "a"});
    let without_namespace = json!({"resource": "models", "name": "m"});
    let answer = call(&root, "PutReference", of(project.clone())).await.unwrap();
    assert_eq!(
        (&answer["target"]["name"], &answer["target"]["namespace"]),
        (&json!("a"), &Value::Null),
        "{answer}"
    );
    for (client, target, code) in [
        (&jane, &project, Code::PermissionDenied),
        (&jane, &in_namespace, Code::InvalidArgument),
        (&root, &in_namespace, Code::InvalidArgument),
        (&root, &without_namespace, Code::InvalidArgument),
    ] {
        for name in ["PutReference", "DeleteReference", "GetReference"] {
            let refused = call(client, name, of(target.clone())).await.unwrap_err();
            assert_eq!(refused.code(), code, "{name} {target}: {refused}");
        }
        let listed = call(client, "ListReferences", json!({"target": target})).await;
        assert_eq!(listed.err().map(|refused| refused.code()), Some(code), "{target}");
    }
    let answer = call(&root, "ListReferences", json!({"target": project})).await.unwrap();
    assert_eq!(answer["references"][0]["name"], HOLDER, "{answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_holders_are_those_that_rest_shows() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    stage.create("a", json!({}), json!({})).await;
    let holder = stage.create("holder", json!({}), json!({})).await;
    eventually("stored", async || stage.life("holder").await == Some(Life::Live)).await;
    let own = format!("model.michelangelo.api/{}", holder["metadata"]["uid"].as_str().unwrap());
    let target = json!({"resource": "models", "namespace": "default", "name": "a"});
    for reference in [HOLDER, &own] {
        let put = json!({"target": target, "reference": reference});
        call(&client, "PutReference", put).await.unwrap();
    }
    let path = "/api/v1/models/default/a/references?resolve=true&depth=2";
    let (code, mut expected) = send(&stage.api, "GET", path, &Value::Null).await;
    assert_eq!(
        (code, expected["holders"].as_array().map(Vec::len)),
        (200, Some(2)),
        "{expected}"
    );
    // What is false is left out of messages.
    assert_eq!(expected.as_object_mut().unwrap().remove("holds"), Some(json!(false)));
    let resolved = |depth: u32| json!({"target": target, "resolve": true, "depth": depth});
    let answer = call(&client, "ListReferences", resolved(2)).await.unwrap();
    assert_eq!(answer, json!({"tree": expected}));
    for depth in [0, 17] {
        let refused = call(&client, "ListReferences", resolved(depth)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{depth}: {refused}");
    }
    stage.end().await;
}

/// As if the tree of an object in the cluster had none, or as if one API showed a part of them as another one.
#[tokio::test(flavor = "multi_thread")]
async fn the_phases_of_a_deletion_are_those_that_rest_shows() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    stage.create("a", json!({}), json!({})).await;
    let target = json!({"resource": "models", "namespace": "default", "name": "a"});
    let put = json!({"target": target, "reference": HOLDER});
    call(&client, "PutReference", put).await.unwrap();
    let phases = json!([
        {"type": "Deleting", "status": "True", "reason": "InUse", "message": "others hold it",
            "lastTransitionTime": "2026-11-24T11:55:00Z"},
        {"type": "Draining", "status": "True", "reason": "NotInUse", "message": "machines are left",
            "lastTransitionTime": "2026-11-24T11:58:00Z"},
    ]);
    let recorded = json!({"metadata": {"annotations": {"michelangelo.api/deletion-phases": phases.to_string()}}});
    let (code, answer) = send(&stage.cluster, "PATCH", &model("a"), &recorded).await;
    assert_eq!(code, 200, "{answer}");
    let path = "/api/v1/models/default/a/references?resolve=true";
    let (code, live) = send(&stage.api, "GET", path, &Value::Null).await;
    assert_eq!(
        (code, &live["phases"]),
        (200, &Value::Null),
        "nobody has deleted it: {live}"
    );

    let (code, answer) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let (code, tree) = send(&stage.api, "GET", path, &Value::Null).await;
    assert_eq!(
        (code, &tree["state"], &tree["phases"]),
        (200, &json!("Deleting"), &phases),
        "{tree}"
    );
    let resolved = json!({"target": target, "resolve": true, "depth": 1});
    let answer = call(&client, "ListReferences", resolved).await.unwrap();
    assert_eq!(answer["tree"]["phases"], phases, "{answer}");
    stage.end().await;
}
