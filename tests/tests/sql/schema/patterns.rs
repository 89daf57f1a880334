//! The statements of the page for operators: each runs on each engine, and finds what the page says that it finds.

use kindex_generated::kinds::{model, pipeline, pipeline_run, revision};
use kindex_generated::registry;
use kindex_query::Life;
use kindex_store::{Address, MetadataStorage};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::{engines, patient};
use serde_json::json;

use super::root;
use super::rows::{delete, put, put_as};
use crate::store::backend::rows;

#[tokio::test]
async fn every_statement_of_the_page_finds_something_on_each_engine() {
    for engine in engines(&[Flavor::Plain]) {
        println!("on {}", engine.name);
        everything(&engine.address).await;
    }
}

async fn everything(address: &Address) {
    let store = kindex_store::open(address, registry(), &patient()).expect("an address");
    store.prepare().await.expect("prepared");
    fill(&*store).await;
    let statements = statements();
    assert!(statements.len() > 10, "the page was read: {statements:?}");
    for statement in statements {
        let found = rows(address, &statement)
            .await
            .expect("a database that others can open");
        assert!(!found.is_empty(), "nothing is found: {statement}");
    }
    let short = rows(address, "SELECT uid FROM pipelinerun WHERE state = 'FAILED'").await;
    assert_eq!(short, Some(Vec::new()), "the page says that it finds nothing");
    store.close().await;
}

/// The blocks of SQL on the page.
fn statements() -> Vec<String> {
    let page = root().join("docs/src/how-to/query-with-sql.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let blocks = page.split("```sql\n").skip(1);
    let statement = |block: &str| block.split("```").next().expect("a first part").trim().to_owned();
    blocks.map(statement).collect()
}

async fn fill(store: &dyn MetadataStorage) {
    let fraud = json!({
        "metadata": {
            "namespace": "default",
            "labels": {"team": "fraud"},
            "annotations": {"note": "why"},
        },
        "spec": {"algorithm": "xgboost", "owner": {"name": "ada"}},
    });
    put(store, &model::KIND, "m1", "my-model", fraud).await;
    let unlabeled = json!({"metadata": {"namespace": "default"}, "spec": {"owner": {"name": "ada"}}});
    put_as(store, &model::KIND, Life::Archived, "m2", "archived", unlabeled).await;
    put(store, &pipeline::KIND, "p1", "old", json!({})).await;
    delete(store, &pipeline::KIND, "p1", 1).await;
    let of_train = json!({"spec": {
        "baseType": {"kind": "Pipeline"}, "baseResource": {"namespace": "ml", "name": "train"},
        "commit": {"branch": "main", "gitRef": "abc"},
    }});
    put(store, &revision::KIND, "r1", "r1", of_train).await;
    for (uid, state) in [
        ("u1", "PIPELINE_RUN_STATE_FAILED"),
        ("u2", "PIPELINE_RUN_STATE_RUNNING"),
    ] {
        let rest = json!({
            "spec": {"pipeline": {"name": "train"}, "revision": {"name": "r1"}, "input": {"path": "glue"}},
            "status": {"state": state},
        });
        put(store, &pipeline_run::KIND, uid, uid, rest).await;
    }
}
