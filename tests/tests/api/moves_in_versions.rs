//! Fields that name other objects, written in another version of the holder's kind, and as YAML: what is being deleted
//! is named by none of them.

use kindex_api::operations::{Operations, RightsOf};
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference::{Named, OnDelete, Reference, Target};
use kindex_tests::trials::{KIND, REGISTRY};
use kube::Client;
use serde_json::{Value, json};

use super::stage::{Stage, client_of, send, send_with, serve};
use super::versions::{V1, V2, archived, at};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Version 1 calls the field `spec.method`.
const ALGORITHM: Reference = Reference {
    name: "algorithm",
    targets: &[Target {
        service: None,
        group: "traps.dev",
        kind: "Trial",
    }],
    kind_column: None,
    path: &["spec", "algorithm"],
    named: Named::Name,
    columns: &[],
    owned: false,
    on_delete: OnDelete::Block,
};
/// Both versions have the field.
const PHASE: Reference = Reference {
    name: "phase",
    path: &["status", "phase"],
    ..ALGORITHM
};
/// Trials name trials.
static HOLDING: Kind = Kind {
    references: &[ALGORITHM, PHASE],
    ..KIND
};
static HOLDERS: &[&Kind] = &[&HOLDING];

/// One more API server over the same, which knows what trials name.
async fn api(stage: &Stage) -> Client {
    let registry = Registry {
        kinds: HOLDERS,
        ..REGISTRY
    };
    let operations = Operations::new(registry, stage.ground.config(), stage.store.clone(), RightsOf::Server);
    client_of(serve(operations.unwrap(), None, stage.ground.stop()).await)
}

fn trial(name: &str, method: &str) -> Value {
    json!({"apiVersion": "traps.dev/v1", "kind": "Trial", "metadata": {"name": name, "namespace": "default"},
        "spec": {"method": method, "rate": 0.5, "hours": 2}})
}

/// An apply in a version, with these fields.
fn apply(version: &str, name: &str, spec: &str) -> (&'static str, String, &'static str, String) {
    let api_version = version.split('/').skip(2).take(2).collect::<Vec<_>>().join("/");
    let text = format!("apiVersion: {api_version}\nkind: Trial\nmetadata:\n  name: {name}\nspec: {{{spec}}}\n");
    let path = format!("{}?fieldManager=me&force=true", at(version, name));
    ("PATCH", path, APPLY, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_is_named_in_no_version() {
    named_in_no_version(Stage::of_trials().await).await;
}

/// Of what this test sends, kube-apiserver reads more than the embedded cluster.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_is_named_in_no_version_of_kube_apiserver() {
    if let Some(stage) = Stage::of_trials_on_control_plane().await {
        named_in_no_version(stage).await;
    }
}

/// As if only requests in the own version were looked at, only by the paths of that version, or only those in JSON; and
/// as if what cannot be converted, or is read by the cluster alone, were not looked at.
async fn named_in_no_version(stage: Stage) {
    let api = api(&stage).await;
    archived(&stage, &["gone"]).await;
    let mut going = trial("going", "none");
    going["metadata"]["finalizers"] = json!(["example.com/hold"]);
    for created in [going, trial("staying", "none"), trial("holder", "staying")] {
        let (code, answer) = send(&api, "POST", V1, &created).await;
        assert_eq!(code, 201, "{answer}");
    }
    let (code, answer) = send(&stage.cluster, "DELETE", &at(V2, "going"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");

    let (_, mut replaced) = send(&api, "GET", &at(V1, "holder"), &Value::Null).await;
    replaced["spec"]["method"] = "going".into();
    let mut odd = trial("odd", "none");
    odd["spec"]["hours"] = "many".into();
    odd["status"] = json!({"phase": "going"});
    let moved = json!({"spec": {"method": "going"}}).to_string();
    let step = json!([{"op": "replace", "path": "/spec/method", "value": "going"}]).to_string();
    for (method, path, media, body) in [
        ("POST", V1.to_owned(), JSON, trial("new", "going").to_string()),
        ("PUT", at(V1, "holder"), JSON, replaced.to_string()),
        ("PATCH", at(V1, "holder"), MERGE, moved.clone()),
        ("PATCH", at(V1, "holder"), JSON_PATCH, step),
        ("PATCH", at(V1, "gone"), MERGE, moved),
        apply(V1, "holder", "method: going"),
        apply(V1, "new", "method: going"),
        apply(V2, "holder", "algorithm: going"),
        apply(V2, "new", "algorithm: going"),
        ("POST", V1.to_owned(), JSON, odd.to_string()),
    ] {
        let (code, refused) = send_with(&api, method, &path, &[("content-type", media)], body).await;
        let is_why = refused["message"]
            .to_string()
            .contains(" trial/default/going, which is being deleted");
        assert!(code == 409 && is_why, "{method} {path} {media}: {code} {refused}");
    }

    let (open, close) = ("[".repeat(200), "]".repeat(200));
    let deep = format!(r#"{{"spec": {{"method": "going", "more": {open}{close}}}}}"#);
    for (method, path, media, body) in [
        apply(V1, "holder", "method: staying, method: going"),
        apply(V2, "holder", "algorithm: staying, algorithm: going"),
        ("PATCH", at(V1, "holder"), MERGE, deep),
    ] {
        let (code, refused) = send_with(&api, method, &path, &[("content-type", media)], body).await;
        // A cluster that reads it says what it names.
        assert!(code == 400 || code == 409, "{method} {path} {media}: {code} {refused}");
    }

    let faster = json!({"spec": {"rate": 0.25}}).to_string();
    for (expected, (method, path, media, body)) in [
        (200, ("PATCH", at(V1, "holder"), MERGE, faster.clone())),
        (200, ("PATCH", at(V1, "gone"), MERGE, faster)),
        (200, apply(V1, "holder", "method: staying")),
        (201, apply(V1, "new", "method: staying")),
    ] {
        let (code, answer) = send_with(&api, method, &path, &[("content-type", media)], body).await;
        assert_eq!(code, expected, "{method} {path} {media}: {answer}");
    }
    what_the_cluster_makes_of_it_counts(&stage, &api).await;
    what_can_be_created_can_be_replaced(&api).await;
    stage.end().await;
}

/// As if the server applied patches itself: it would not see a name that an apply takes away by not mentioning it, nor
/// one that only kube-apiserver's JSON patches put where there was none, and would refuse what the cluster takes.
async fn what_the_cluster_makes_of_it_counts(stage: &Stage, api: &Client) {
    let mut leaving = trial("leaving", "none");
    leaving["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let mut free = trial("free", "none");
    free["spec"] = json!({"rate": 0.5, "notes": ["a", "b"]});
    for created in [leaving, free] {
        let (code, answer) = send(api, "POST", V1, &created).await;
        assert_eq!(code, 201, "{answer}");
    }
    for (method, path, media, body) in [
        apply(V1, "bound", "method: leaving, rate: 0.5"),
        apply(V2, "tied", "algorithm: leaving, retries: 2"),
    ] {
        let (code, answer) = send_with(api, method, &path, &[("content-type", media)], body).await;
        assert_eq!(code, 201, "{answer}");
    }
    let (code, answer) = send(&stage.cluster, "DELETE", &at(V2, "leaving"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");

    for (method, path, media, body) in [
        apply(V1, "bound", "rate: 0.5"),
        apply(V2, "tied", "retries: 2"),
        apply(V2, "tied", "algorithm: staying, retries: 2"),
    ] {
        for path in [format!("{path}&dryRun=All"), path] {
            let (code, refused) = send_with(api, method, &path, &[("content-type", media)], body.clone()).await;
            let is_why = refused["message"]
                .to_string()
                .contains("named trial/default/leaving, which is being deleted");
            assert!(code == 409 && is_why, "{path}: {code} {refused}");
        }
    }

    let patch = [("content-type", JSON_PATCH)];
    for (version, field) in [(V1, "/spec/method"), (V2, "/spec/algorithm")] {
        let step = |op: &str, value: Value| json!({"op": op, "path": field, "value": value});
        for steps in [
            json!([step("replace", "leaving".into())]),
            json!([step("test", Value::Null), step("add", "leaving".into())]),
        ] {
            let (code, refused) = send_with(api, "PATCH", &at(version, "free"), &patch, steps.to_string()).await;
            // The embedded cluster finds nothing there to be replaced or tested.
            assert!(code == 409 || code == 422, "{version} {steps}: {code} {refused}");
        }
    }
    for (media, body) in [
        (JSON_PATCH, r#"[{"op": "remove", "path": "/spec/notes/-1"}]"#),
        (JSON_PATCH, r#"[{"op": "add", "path": "/spec/a~b", "value": 1}]"#),
        (JSON_PATCH, r#"[{"op": "add", "path": "/spec/notes"}]"#),
        (JSON_PATCH, "null"),
        (MERGE, "null"),
    ] {
        let (path, headers) = (at(V1, "free"), [("content-type", media)]);
        let dry = format!("{path}?dryRun=All");
        let (expected, _) = send_with(&stage.cluster, "PATCH", &dry, &headers, body.to_owned()).await;
        let (code, answer) = send_with(api, "PATCH", &path, &headers, body.to_owned()).await;
        assert_eq!(code, expected, "{body}: {answer}");
    }
}

/// As if a replacement were read as a whole, and a new object only as far as it names others. The embedded cluster
/// takes so many values from neither.
async fn what_can_be_created_can_be_replaced(api: &Client) {
    let many = Value::from(vec![json!({"a": 0}); 40_000]);
    let mut large = trial("large", "none");
    large["spec"]["more"] = many.clone();
    let (created, answer) = send(api, "POST", V1, &large).await;
    assert!(created == 201 || created == 400, "{created} {answer}");
    for version in [V1, V2].into_iter().filter(|_| created == 201) {
        let (_, mut replaced) = send(api, "GET", &at(version, "large"), &Value::Null).await;
        replaced["spec"]["more"] = many.clone();
        let (code, answer) = send(api, "PUT", &at(version, "large"), &replaced).await;
        assert_eq!(code, 200, "{version}: {answer}");
    }
}
