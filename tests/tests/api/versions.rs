//! A kind in several versions: in each that is served, the API server adopts, shows, changes and deletes objects as in
//! the kind's own, whether they live in the cluster or in SQL, and whichever version their rows are in.

use futures::{AsyncBufReadExt, StreamExt};
use kindex_harness::wait::eventually;
use kindex_query::Life;
use kindex_tests::trials::{KIND, PLATFORM};
use serde_json::{Value, json};
use sqlx::Connection;

use super::by_hand::connect;
use super::program::{kubectl, kubectl_is_there};
use super::stage::{Stage, names, send, send_with};

pub(super) const V1: &str = "/apis/traps.dev/v1/namespaces/default/trials";
pub(super) const V2: &str = "/apis/traps.dev/v2/namespaces/default/trials";

pub(super) fn at(version: &str, name: &str) -> String {
    format!("{version}/{name}")
}

fn old(name: &str, method: &str) -> Value {
    json!({"apiVersion": "traps.dev/v1", "kind": "Trial", "metadata": {"name": name, "namespace": "default"},
        "spec": {"method": method, "rate": 0.5, "hours": 2, "notes": ["first"]}})
}

/// The same seen in the own version.
fn own_spec(method: &str) -> Value {
    json!({"algorithm": method, "optimizer": {"rate": 0.5}, "mode": "MODE_LEGACY", "retries": 3, "seconds": 7200})
}

async fn get(stage: &Stage, path: &str) -> Value {
    let (code, found) = send(&stage.api, "GET", path, &Value::Null).await;
    assert_eq!(code, 200, "{path}: {found}");
    found
}

/// Creates trials through v1 and archives them.
pub(super) async fn archived(stage: &Stage, names: &[&str]) {
    for name in names {
        let mut trial = old(name, "xgboost");
        trial["metadata"]["annotations"] = json!({PLATFORM.immutable: "true"});
        let (code, answer) = send(&stage.api, "POST", V1, &trial).await;
        assert_eq!(code, 201, "{answer}");
        eventually(&format!("{name} is archived"), async || {
            let row = stage.store.get_by_name(&KIND, "default", name).await.unwrap();
            let (code, _) = send(&stage.cluster, "GET", &at(V2, name), &Value::Null).await;
            code == 404 && row.is_some_and(|row| row.life == Life::Archived)
        })
        .await;
    }
}

/// Sets the text of a row, as an earlier release or a hand left it.
async fn rewrite(stage: &Stage, name: &str, change: impl Fn(Value) -> String) {
    let mut sqlite = connect(stage).await;
    let text = sqlx::query_scalar::<_, String>("SELECT json FROM trial WHERE name = ?").bind(name);
    let text = text.fetch_one(&mut sqlite).await.unwrap();
    let changed = change(serde_json::from_str(&text).unwrap());
    let update = sqlx::query("UPDATE trial SET json = ? WHERE name = ?");
    update.bind(changed).bind(name).execute(&mut sqlite).await.unwrap();
    sqlite.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_get_the_finalizer_and_are_shown_in_each_version() {
    finalizer_and_view(Stage::of_trials().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_get_the_finalizer_and_are_shown_in_each_version_of_kube_apiserver() {
    if let Some(stage) = Stage::of_trials_on_control_plane().await {
        finalizer_and_view(stage).await;
    }
}

async fn finalizer_and_view(stage: Stage) {
    let (code, created) = send(&stage.api, "POST", V1, &old("live", "lightgbm")).await;
    assert_eq!(code, 201, "{created}");
    let finalizers = json!([PLATFORM.finalizer]);
    assert_eq!(created["metadata"]["finalizers"], finalizers);
    let apply = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{}?fieldManager=me", at(V1, "applied"));
    let (code, applied) = send_with(
        &stage.api,
        "PATCH",
        &path,
        &apply,
        old("applied", "xgboost").to_string(),
    )
    .await;
    assert_eq!(
        (code, &applied["metadata"]["finalizers"]),
        (201, &finalizers),
        "{applied}"
    );
    let mut replaced = created.clone();
    replaced["metadata"]["finalizers"] = json!([]);
    let (code, replaced) = send(&stage.api, "PUT", &at(V1, "live"), &replaced).await;
    assert_eq!(
        (code, &replaced["metadata"]["finalizers"]),
        (200, &finalizers),
        "{replaced}"
    );

    archived(&stage, &["gone"]).await;
    let (code, taken) = send(&stage.api, "POST", V1, &old("gone", "x")).await;
    assert_eq!((code, &taken["reason"]), (409, &json!("AlreadyExists")), "{taken}");
    for (version, spec) in [(V1, old("gone", "xgboost")["spec"].clone()), (V2, own_spec("xgboost"))] {
        let found = get(&stage, &at(version, "gone")).await;
        assert_eq!(found["spec"], spec, "{version}");
        assert_eq!(
            format!("/apis/{}", found["apiVersion"].as_str().unwrap()),
            version[..18]
        );
        let list = get(&stage, version).await;
        assert_eq!(names(&list), ["applied", "live", "gone"]);
        let versions = list["items"].as_array().unwrap().iter().map(|item| &item["apiVersion"]);
        assert!(
            versions
                .chain([&list["apiVersion"]])
                .all(|it| *it == found["apiVersion"]),
            "{list}"
        );
    }
    for (version, selector, expected) in [
        (V1, "spec.method%3Dxgboost", vec!["applied", "gone"]),
        (V1, "spec.method!%3Dxgboost", vec!["live"]),
        (V1, "metadata.name%3Dgone,status.phase%3D", vec!["gone"]),
        (V2, "spec.algorithm%3Dxgboost", vec!["applied", "gone"]),
    ] {
        let list = get(&stage, &format!("{version}?fieldSelector={selector}")).await;
        assert_eq!(names(&list), expected, "{version} {selector}");
    }
    let first = get(&stage, &format!("{V1}?limit=2")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = get(&stage, &format!("{V1}?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["gone"]);
    let (code, refused) = send(&stage.api, "GET", "/apis/traps.dev/v2beta1/trials", &Value::Null).await;
    assert_eq!(code, 404, "a version that is not served: {refused}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_is_changed_watched_and_deleted_in_another_version() {
    let stage = Stage::of_trials().await;
    archived(&stage, &["a", "b", "c"]).await;
    let list = get(&stage, V1).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{V1}?watch=true&timeoutSeconds=240&resourceVersion={version}&fieldSelector=spec.method%3Dnew");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();

    let patch = json!({"spec": {"method": "new", "tries": 7}});
    let (code, patched) = send(&stage.api, "PATCH", &at(V1, "a"), &patch).await;
    assert_eq!((code, &patched["spec"]["method"]), (200, &json!("new")), "{patched}");
    assert_eq!(patched["metadata"]["generation"], 2, "{patched}");
    let row = stage.store.get_by_name(&KIND, "default", "a").await.unwrap().unwrap();
    assert_eq!(
        row.object.metadata.api_version, "traps.dev/v2",
        "SQL keeps the own version"
    );
    let mut expected = own_spec("new");
    expected["retries"] = 7.into();
    assert_eq!(get(&stage, &at(V2, "a")).await["spec"], expected);
    assert_eq!(get(&stage, &at(V1, "a")).await["spec"]["notes"], json!(["first"]));

    let event: Value = serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
    let received = (&event["type"], &event["object"]["apiVersion"], &event["object"]["spec"]);
    assert_eq!(
        received,
        (&json!("MODIFIED"), &json!("traps.dev/v1"), &patched["spec"]),
        "{event}"
    );

    let status = json!({"status": {"phase": "Done"}});
    let (code, done) = send(&stage.api, "PATCH", &format!("{}/status", at(V1, "a")), &status).await;
    assert_eq!(
        (code, &done["status"], &done["spec"]),
        (200, &status["status"], &patched["spec"])
    );
    let (code, stale) = send(&stage.api, "PUT", &at(V1, "a"), &patched).await;
    assert_eq!((code, &stale["reason"]), (409, &json!("Conflict")), "{stale}");

    let (code, deleted) = send(&stage.api, "DELETE", &at(V1, "a"), &Value::Null).await;
    assert_eq!(
        (code, &deleted["apiVersion"]),
        (200, &json!("traps.dev/v1")),
        "{deleted}"
    );
    let (code, answer) = send(
        &stage.api,
        "DELETE",
        &format!("{V1}?fieldSelector=spec.method%3Dother"),
        &Value::Null,
    )
    .await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(names(&get(&stage, V1).await), ["b", "c"]);
    let (code, answer) = send(&stage.api, "DELETE", V1, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert!(names(&get(&stage, V1).await).is_empty());
    stage.end().await;
}

/// Rows keep the text that they were written with until they are converted.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_in_another_version_is_shown_in_the_one_that_is_asked_for() {
    let stage = Stage::of_trials().await;
    archived(&stage, &["a"]).await;
    rewrite(&stage, "a", |trial| {
        kindex_convert::convert(&PLATFORM, &KIND, &trial.to_string(), "v1").unwrap()
    })
    .await;
    let row = stage.store.get_by_name(&KIND, "default", "a").await.unwrap().unwrap();
    assert_eq!(row.object.metadata.api_version, "traps.dev/v1");
    for (version, spec) in [(V1, old("a", "xgboost")["spec"].clone()), (V2, own_spec("xgboost"))] {
        assert_eq!(get(&stage, &at(version, "a")).await["spec"], spec, "{version}");
        assert_eq!(get(&stage, version).await["items"][0]["spec"], spec, "{version}");
    }
    let label = json!({"metadata": {"labels": {"seen": "true"}}});
    let (code, labeled) = send(&stage.api, "PATCH", &at(V2, "a"), &label).await;
    assert_eq!((code, &labeled["spec"]), (200, &own_spec("xgboost")), "{labeled}");
    stage.end().await;
}

/// A list without it would say that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_that_cannot_be_converted_is_named() {
    let stage = Stage::of_trials().await;
    archived(&stage, &["bad", "good"]).await;
    rewrite(&stage, "bad", |mut trial| {
        trial["spec"]["seconds"] = "many".into();
        trial.to_string()
    })
    .await;
    for path in [
        at(V1, "bad"),
        V1.to_owned(),
        format!("{V1}?watch=true&timeoutSeconds=5"),
    ] {
        let (code, refused) = send(&stage.api, "GET", &path, &Value::Null).await;
        let message = refused["message"].as_str().unwrap();
        assert_eq!(
            (code, &refused["reason"]),
            (500, &json!("InternalError")),
            "{path}: {refused}"
        );
        assert!(
            message.contains("Trial default/bad: spec.hours: not a number of seconds"),
            "{message}"
        );
    }
    assert_eq!(names(&get(&stage, V2).await), ["bad", "good"]);
    assert_eq!(
        get(&stage, &at(V1, "good")).await["spec"],
        old("good", "xgboost")["spec"]
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_in_a_deprecated_version_has_its_warning_once() {
    warned(Stage::of_trials().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_in_a_deprecated_version_of_kube_apiserver_has_its_warning_once() {
    if let Some(stage) = Stage::of_trials_on_control_plane().await {
        warned(stage).await;
    }
}

async fn warned(stage: Stage) {
    let (code, created) = send(&stage.api, "POST", V1, &old("live", "lightgbm")).await;
    assert_eq!(code, 201, "{created}");
    archived(&stage, &["gone"]).await;
    let paths = [
        (200, "/live"),
        (200, "/gone"),
        (200, ""),
        (200, "?limit=1"),
        (200, "?watch=true&timeoutSeconds=1"),
        (404, "/absent"),
        (400, "?fieldSelector=nonsense"),
    ];
    for (expected, rest) in paths {
        let text = "299 - \"traps.dev/v1 Trial is deprecated: use v2\"";
        assert_eq!(
            warnings(&stage, &format!("{V1}{rest}")).await,
            (expected, vec![text.to_owned()]),
            "{rest}"
        );
        assert_eq!(
            warnings(&stage, &format!("{V2}{rest}")).await,
            (expected, vec![]),
            "{rest}"
        );
    }
    stage.end().await;
}

/// The code and the warnings of an answer.
async fn warnings(stage: &Stage, path: &str) -> (u16, Vec<String>) {
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = stage.api.send(request).await.unwrap();
    let given = response.headers().get_all("warning").iter();
    let given = given.map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), given.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_sees_live_and_archived_objects_in_each_version() {
    if kubectl_is_there() {
        seen_by_kubectl(Stage::of_trials().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_sees_live_and_archived_objects_in_each_version_of_kube_apiserver() {
    if let Some(stage) = Stage::of_trials_on_control_plane().await
        && kubectl_is_there()
    {
        seen_by_kubectl(stage).await;
    }
}

async fn seen_by_kubectl(stage: Stage) {
    let (content, output) = kubectl(&stage, "create -f -", &old("live", "lightgbm").to_string()).await;
    assert!(content, "{output}");
    archived(&stage, &["gone"]).await;
    for (version, columns) in [
        ("v1", "NAME   ALGORITHM   RATE"),
        ("v2", "NAME   ALGORITHM   RATE   SECONDS"),
    ] {
        let (content, table) = kubectl(&stage, &format!("get trials.{version}.traps.dev"), "").await;
        assert!(content, "{table}");
        let heading = table.lines().find(|line| line.starts_with("NAME")).unwrap();
        assert!(
            heading.starts_with(columns) && heading.contains("SECONDS") == (version == "v2"),
            "{table}"
        );
        assert!(
            table.contains("live   lightgbm") && table.contains("gone   xgboost"),
            "{table}"
        );
        let line = format!("get trials.{version}.traps.dev gone -o jsonpath={{.spec}}");
        let (content, spec) = kubectl(&stage, &line, "").await;
        assert!(content && spec.contains("xgboost"), "{spec}");
        assert_eq!(spec.contains("method"), version == "v1", "{spec}");
    }
    let (mut seconds, mut watched) = (3, String::new());
    // On a busy machine, even the list before the watch may take longer than the watch is to last.
    while seconds < 100 && !(watched.contains("/live") && watched.contains("/gone")) {
        let line = "get trials.v1.traps.dev -w --output-watch-events -o name";
        (_, watched) = kubectl(&stage, &format!("{line} --request-timeout={seconds}s"), "").await;
        seconds *= 4;
    }
    assert!(watched.contains("/live") && watched.contains("/gone"), "{watched}");
    for name in ["live", "gone"] {
        let line = format!("delete trials.v1.traps.dev {name} --timeout=240s");
        let (content, output) = kubectl(&stage, &line, "").await;
        assert!(content && output.contains("deleted"), "{output}");
    }
    let (_, output) = kubectl(&stage, "get trials.v2.traps.dev", "").await;
    assert!(output.contains("No resources found"), "{output}");
    stage.end().await;
}
