//! References that are placed by a write in any case, and releases that depend on a version of the object: one that
//! comes late takes nothing off.

use kindex_harness::wait::eventually;
use kindex_query::Life;
use serde_json::{Value, json};

use super::stage::{Stage, model, send};

const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OF_A: &str = "/api/v1/models/default/a/references";

/// A request about the reference of the holder on the only model.
async fn ask(stage: &Stage, method: &str, query: &str) -> (u16, Value) {
    send(&stage.api, method, &format!("{OF_A}/{HOLDER}{query}"), &Value::Null).await
}

async fn release_at(stage: &Stage, version: &str) -> (u16, Value) {
    ask(stage, "DELETE", &format!("?resourceVersion={version}")).await
}

/// The model as the API shows it beside its references, and how many it has.
async fn target(stage: &Stage) -> (Value, usize) {
    let (code, answer) = send(&stage.api, "GET", OF_A, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let count = answer["references"].as_array().map_or(0, Vec::len);
    (answer["target"].clone(), count)
}

fn version(target: &Value) -> String {
    target["resourceVersion"].as_str().expect("a version").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_takes_nothing_after_the_reference_was_renewed() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    let (code, answer) = ask(&stage, "PUT", "?renew=true").await;
    assert_eq!(
        (code, &answer["references"][0]["name"]),
        (200, &json!(HOLDER)),
        "{answer}"
    );
    assert!(answer["target"]["resourceVersion"].is_null(), "{answer}");

    let (read, _) = target(&stage).await;
    let (_, object) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    assert_eq!(read["resourceVersion"], object["metadata"]["resourceVersion"], "{read}");
    let (code, answer) = ask(&stage, "PUT", "?renew=false").await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(target(&stage).await.0, read, "what is so already is not written");
    let (code, answer) = ask(&stage, "PUT", "?renew=true").await;
    assert_eq!(
        (code, &answer["references"][0]["name"]),
        (200, &json!(HOLDER)),
        "{answer}"
    );

    let (code, refused) = release_at(&stage, &version(&read)).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let (renewed, count) = target(&stage).await;
    assert_eq!(count, 1, "it has the reference still");
    for _ in 0..2 {
        let (code, answer) = release_at(&stage, &version(&renewed)).await;
        assert_eq!(code, 200, "also where it is not there any more: {answer}");
        assert_eq!(target(&stage).await.1, 0);
    }
    stage.end().await;
}

/// Its references are rows, which have no part in its version. Whoever has read one has read it in the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_loses_no_reference_in_a_version_that_it_had_in_the_cluster() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({})).await;
    for _ in 0..2 {
        let (code, answer) = ask(&stage, "PUT", "?renew=true").await;
        assert_eq!(
            (code, &answer["target"]["state"]),
            (200, &json!("Archived")),
            "{answer}"
        );
    }
    let (shown, count) = target(&stage).await;
    assert!(shown["resourceVersion"].is_null() && count == 1, "{shown}");
    let (code, refused) = release_at(&stage, "1").await;
    assert_eq!((code, target(&stage).await.1), (409, 1), "{refused}");
    let (code, answer) = ask(&stage, "DELETE", "").await;
    assert_eq!((code, target(&stage).await.1), (200, 0), "{answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_is_not_held_anew() {
    let stage = Stage::on_sqlite().await;
    let (code, absent) = ask(&stage, "PUT", "?renew=true").await;
    assert_eq!(code, 404, "{absent}");
    stage.create("a", json!({}), json!({})).await;
    for (method, query) in [("PUT", "?renew=maybe"), ("DELETE", "?resourceVersion=x")] {
        let (code, refused) = ask(&stage, method, query).await;
        assert_eq!((code, &refused["reason"]), (400, &json!("BadRequest")), "{refused}");
    }
    let other = format!("{OF_A}/cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce");
    let (code, answer) = send(&stage.api, "PUT", &other, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let (code, refused) = ask(&stage, "PUT", "?renew=true").await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let renewed = send(&stage.api, "PUT", &format!("{other}?renew=true"), &Value::Null).await;
    assert_eq!(
        (renewed.0, &renewed.1["target"]["state"]),
        (200, &json!("Deleting")),
        "{}",
        renewed.1
    );
    stage.end().await;
}
