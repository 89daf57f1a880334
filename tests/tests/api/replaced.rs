//! An archived object whose name somebody takes in the cluster, past the API server: it stays findable by its uid, and
//! everybody is told what happened.

use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use kindex_model::object::Uid;
use kindex_query::Life;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, send};

async fn stays_findable_by_its_uid(stage: Stage) {
    let old = stage.create_archived("a", json!({}), json!({"algorithm": "one"})).await;
    let old_uid = old["metadata"]["uid"].as_str().unwrap();
    let other = manifest(json!({"name": "a"}), json!({"algorithm": "two"}));
    let (code, new) = send(&stage.cluster, "POST", MODELS, &other).await;
    assert_eq!(code, 201, "{new}");
    let new_uid = new["metadata"]["uid"].as_str().unwrap();
    eventually("the new one is stored", async || {
        stage.life("a").await == Some(Life::Live)
    })
    .await;

    let row = stage
        .store
        .get_by_id(&model::KIND, &Uid::from(old_uid))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.replaced_by, Some(Uid::from(new_uid)));
    assert_eq!((row.life, row.evicted_time.is_some()), (Life::Deleted, true));

    // By its uid, and by no other name than its own.
    let path = format!("{}?uid={old_uid}", model("a"));
    let (code, found) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!((code, &found["spec"]["algorithm"]), (200, &json!("one")), "{found}");
    assert_eq!(found["metadata"]["uid"], old_uid);
    let (code, found) = send(
        &stage.api,
        "GET",
        &format!("{}?uid={new_uid}", model("a")),
        &Value::Null,
    )
    .await;
    assert_eq!((code, &found["spec"]["algorithm"]), (200, &json!("two")), "{found}");
    for path in [
        format!("{}?uid={old_uid}", model("b")),
        format!("{}?uid=no-such", model("a")),
    ] {
        let (code, answer) = send(&stage.api, "GET", &path, &Value::Null).await;
        assert_eq!(code, 404, "{answer}");
    }
    let (code, warning) = warning_of(&stage, &path).await;
    assert_eq!(code, 200);
    assert!(
        warning.contains(new_uid) && warning.contains("kindex restore model --uid"),
        "{warning}"
    );

    let mut message = String::new();
    eventually("the event", async || {
        let (_, events) = send(&stage.cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let found = events.iter().find(|event| event["reason"] == "ArchivedObjectReplaced");
        let Some(event) = found.filter(|event| event["involvedObject"]["uid"] == new_uid) else {
            return false;
        };
        assert_eq!(
            (&event["type"], &event["involvedObject"]["name"]),
            (&json!("Warning"), &json!("a"))
        );
        message = event["message"].as_str().unwrap().to_owned();
        true
    })
    .await;
    let command = format!("`kindex restore model --uid {old_uid} --as NEW-NAME`");
    assert!(message.contains(&command), "{message}");
    stage.end().await;
}

/// What the server says beside the object.
async fn warning_of(stage: &Stage, path: &str) -> (u16, String) {
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = stage.api.send(request).await.unwrap();
    let warnings = response.headers().get_all("warning").iter();
    let warnings: Vec<&str> = warnings.map(|value| value.to_str().unwrap()).collect();
    (response.status().as_u16(), warnings.join("; "))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_whose_name_was_taken_stays_findable_by_its_uid_on_sqlite() {
    stays_findable_by_its_uid(Stage::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_whose_name_was_taken_stays_findable_by_its_uid_on_mariadb() {
    if let Some(stage) = Stage::on_mariadb().await {
        stays_findable_by_its_uid(stage).await;
    }
}
