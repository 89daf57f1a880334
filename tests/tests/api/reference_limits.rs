//! How many references on an object an answer has, over HTTP: at most as many as are asked for, and none is read where
//! none is asked for. And how many releases are recorded and shown.

use kindex_harness::wait::eventually;
use kindex_query::Life;
use serde_json::{Value, json};

use super::by_hand::alter;
use super::stage::{Stage, model, send};

const ONE: &str = "cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";
const TWO: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OF_A: &str = "/api/v1/models/default/a/references";

/// On the only model, rows of the second one and of one after it.
const ROWS: &str = "INSERT INTO kindex_reference \
    SELECT 'Model', uid, 'cluster.compute.example.com/' || holder, 'cluster', 'compute.example.com', holder, \
    '2026-01-01T00:00:00.000000Z', 'jane' \
    FROM model, (SELECT '7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce' AS holder \
    UNION SELECT 'ffffffff-f1cc-4f3b-b1c0-232ae8d852ce')";

async fn get(stage: &Stage, path: &str) -> (u16, Value) {
    send(&stage.api, "GET", path, &Value::Null).await
}

async fn hold(stage: &Stage) {
    for reference in [ONE, TWO] {
        let (code, answer) = send(&stage.api, "PUT", &format!("{OF_A}/{reference}"), &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }
}

async fn release(stage: &Stage, reference: &str) -> Value {
    let (code, answer) = send(&stage.api, "DELETE", &format!("{OF_A}/{reference}"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

/// With each limit so many references are shown, and the target as ever.
async fn limited(stage: &Stage) {
    let (code, all) = get(stage, OF_A).await;
    let references = all["references"].as_array().unwrap();
    assert_eq!((code, references.len()), (200, 2), "{all}");
    for (limit, shown) in [("0", 0), ("1", 1), ("2", 2), ("500", 2), ("", 2)] {
        let (code, answer) = get(stage, &format!("{OF_A}?limit={limit}")).await;
        let expected = json!({"target": all["target"], "references": references[..shown]});
        assert_eq!((code, &answer), (200, &expected), "limit {limit:?}");
    }
    let (code, one) = get(stage, &format!("{OF_A}/{TWO}?limit=0")).await;
    assert_eq!((code, &one["references"][0]["name"]), (200, &json!(TWO)), "{one}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_no_more_references_than_are_asked_for() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    hold(&stage).await;
    limited(&stage).await;
    for (path, code, said) in [
        (format!("{OF_A}?limit=x"), 400, "is not a number of references"),
        (format!("{OF_A}?limit=-1"), 400, "is not a number of references"),
        (
            "/api/v1/models/default/b/references?limit=0".to_owned(),
            404,
            "not found",
        ),
    ] {
        let (answered, refused) = get(&stage, &path).await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(answered == code && message.contains(said), "{path}: {refused}");
    }
    stage.end().await;
}

/// Otherwise `kindex deletion` of the holder's service takes it for a reference that somebody has taken off by hand. An
/// answer to a change says nothing of it: what was recorded before that change is no release since then.
#[tokio::test(flavor = "multi_thread")]
async fn the_latest_releases_are_shown_with_the_object() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    hold(&stage).await;
    for (count, reference) in [(1, ONE), (2, TWO)] {
        for _ in 0..2 {
            let target = &release(&stage, reference).await["target"];
            let said = (&target["releasedReference"], &target["releasedReferences"]);
            assert_eq!(said, (&Value::Null, &Value::Null), "{target}");
        }
        let (_, object) = get(&stage, &model("a")).await;
        let recorded = object["metadata"]["annotations"]["michelangelo.api/released-reference"].as_str();
        let releases: Vec<_> = recorded.unwrap().split(',').collect();
        assert_eq!(releases.len(), count, "{object}");
        for path in [OF_A.to_owned(), format!("{OF_A}?limit=0")] {
            let target = get(&stage, &path).await.1["target"].clone();
            assert_eq!(target["releasedReference"], releases[0], "{path}");
            assert_eq!(target["releasedReferences"], json!(releases), "{path}");
        }
    }
    stage.end().await;
}

/// As if the records of releases took the last room, and the object then stayed for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_released_where_there_is_no_room_for_the_record_of_earlier_releases() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    hold(&stage).await;
    release(&stage, ONE).await;
    let (_, mut object) = get(&stage, &model("a")).await;
    let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
    let taken: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().unwrap().len())
        .sum();
    let room = "filler".len() + 16;
    annotations.insert("filler".to_owned(), json!("x".repeat(256 * 1024 - taken - room)));
    let (code, answer) = send(&stage.api, "PUT", &model("a"), &object).await;
    assert_eq!(code, 200, "{answer}");
    release(&stage, TWO).await;
    let (_, answer) = get(&stage, OF_A).await;
    assert_eq!(answer["references"], json!([]), "{answer}");
    let releases = answer["target"]["releasedReferences"].as_array().map_or(0, Vec::len);
    assert_eq!(releases, 1, "{answer}");
    stage.end().await;
}

/// As if they were all read, of which an archived object may have very many, and cut for the answer: one of them cannot
/// be read.
#[tokio::test(flavor = "multi_thread")]
async fn references_beyond_the_limit_are_not_read() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({})).await;
    hold(&stage).await;
    let (code, all) = get(&stage, OF_A).await;
    assert_eq!(code, 200, "{all}");
    alter(
        &stage,
        "UPDATE kindex_reference SET place_time = 'x' WHERE name LIKE '%/7f7a%'",
    )
    .await;
    let (code, answer) = get(&stage, &format!("{OF_A}?limit=1")).await;
    let expected = json!({"target": all["target"], "references": [all["references"][0]]});
    assert_eq!((code, &answer), (200, &expected));
    let (code, answer) = get(&stage, &format!("{OF_A}?limit=2")).await;
    assert!(code >= 500, "{code}: {answer}");
    stage.end().await;
}

/// An object in the cluster has some itself, and has rows of archived holders. As if no more rows were read than are
/// still to be shown, of which the first one is of a reference that it has.
#[tokio::test(flavor = "multi_thread")]
async fn rows_follow_what_an_object_bears_itself_up_to_the_limit() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    hold(&stage).await;
    alter(&stage, ROWS).await;
    let (code, all) = get(&stage, OF_A).await;
    let references = all["references"].as_array().unwrap();
    assert_eq!((code, references.len()), (200, 3), "{all}");
    for limit in 0..4 {
        let (code, answer) = get(&stage, &format!("{OF_A}?limit={limit}")).await;
        let expected = json!({"target": all["target"], "references": references[..limit]});
        assert_eq!((code, &answer), (200, &expected), "limit {limit}");
    }
    stage.end().await;
}

/// It is said while nobody can read them.
#[tokio::test(flavor = "multi_thread")]
async fn how_far_an_archived_object_is_takes_none_of_its_references() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({})).await;
    hold(&stage).await;
    limited(&stage).await;
    let (code, leaving) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 202, "{leaving}");
    alter(&stage, "ALTER TABLE kindex_reference RENAME TO elsewhere").await;
    let (code, answer) = get(&stage, &format!("{OF_A}?limit=0")).await;
    alter(&stage, "ALTER TABLE elsewhere RENAME TO kindex_reference").await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Deleting")),
        "{answer}"
    );
    stage.end().await;
}
