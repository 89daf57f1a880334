//! Names of references in upper case, over HTTP: no holder has one, so that none is set, and those from earlier are
//! shown and released.

use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, send};

const LOWER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const UPPER: &str = "cluster.compute.example.com/7F7A15AB-F1CC-4F3B-B1C0-232AE8D852CE";
const OF_A: &str = "/api/v1/models/default/a/references";

/// Those of the references on the object.
async fn names(stage: &Stage) -> Vec<String> {
    let (code, answer) = send(&stage.api, "GET", OF_A, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let references = answer["references"].as_array().unwrap();
    let names = references.iter().map(|held| held["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// It would be on the object as long as that one is there, and no deletion of a holder would release it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_no_holder_can_have_is_not_set() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    for path in [
        format!("{OF_A}/{UPPER}"),
        format!("{OF_A}/{}", UPPER.replace('/', "%2F")),
        format!("{}/references/{UPPER}", model("a")),
    ] {
        let (code, refused) = send(&stage.api, "PUT", &path, &Value::Null).await;
        assert_eq!((code, &refused["reason"]), (400, &json!("BadRequest")), "{refused}");
        let said = refused["message"].as_str().unwrap();
        assert!(said.contains(&format!("write {LOWER:?}")), "{said}");
    }
    assert!(names(&stage).await.is_empty());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_in_upper_case_from_earlier_is_shown_and_released() {
    let stage = Stage::on_sqlite().await;
    let metadata = json!({"name": "a", "finalizers": [UPPER]});
    let (code, created) = send(&stage.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(names(&stage).await, [UPPER]);
    let (code, answer) = send(&stage.api, "DELETE", &format!("{OF_A}/{UPPER}"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert!(names(&stage).await.is_empty());
    stage.end().await;
}
