//! What a row's references lead to, columns in place of objects, and rows as a stream: typed queries
//! of the shipped kinds over rows on each engine.

use futures::TryStreamExt;
use kindex_generated::kinds::{pipeline, pipeline_run, revision};
use kindex_generated::registry;
use kindex_query::{Life, Narrowed, Stored};
use kindex_store::{Address, MetadataStorage, StoreError};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::{engines, patient};
use serde_json::json;

use super::rows::{delete, put};

#[tokio::test]
async fn each_engine_follows_references() {
    for engine in engines(&[Flavor::Plain]) {
        println!("on {}", engine.name);
        everything(&engine.address).await;
    }
}

async fn everything(address: &Address) {
    let store = kindex_store::open(address, registry(), &patient()).expect("an address");
    let store = &*store;
    store.prepare().await.expect("prepared");
    fill(store).await;
    a_reference_leads_to_the_newest_object_of_its_name(store).await;
    a_column_says_the_kind_that_is_referred_to(store).await;
    pages_and_streams_hold_the_same_rows(store).await;
    columns_come_with_their_types(store).await;
    store.close().await;
}

/// Revision `twice` was deleted two times, `again` deleted and made anew, `kept` never; `gone` never was.
async fn fill(store: &dyn MetadataStorage) {
    put(store, &pipeline::KIND, "p1", "train", json!({})).await;
    let of_train = json!({"spec": {
        "baseType": {"kind": "Pipeline"}, "baseResource": {"namespace": "ml", "name": "train"},
    }});
    let of_nothing = json!({"spec": {
        "baseType": {"kind": "Unheard"}, "baseResource": {"namespace": "ml", "name": "train"},
    }});
    for (uid, name, spec, deleted) in [
        ("r1", "twice", &of_train, Some(10)),
        ("r2", "twice", &of_train, Some(20)),
        ("r3", "again", &of_train, Some(10)),
        ("r4", "again", &of_nothing, None),
        ("r5", "kept", &json!({}), None),
    ] {
        put(store, &revision::KIND, uid, name, spec.clone()).await;
        if let Some(second) = deleted {
            delete(store, &revision::KIND, uid, second).await;
        }
    }
    for (index, revision) in ["twice", "again", "kept", "gone", ""].into_iter().enumerate() {
        let mut spec = json!({"pipeline": {"name": "train"}, "actor": {"name": format!("a{index}")}});
        if !revision.is_empty() {
            spec["revision"] = json!({"namespace": "ml", "name": revision});
        }
        let state = ["PIPELINE_RUN_STATE_FAILED", "PIPELINE_RUN_STATE_DREAMING"][index % 2];
        let rest = json!({"spec": spec, "status": {"state": state}});
        put(
            store,
            &pipeline_run::KIND,
            &format!("u{index}"),
            &format!("run{index}"),
            rest,
        )
        .await;
    }
}

fn runs() -> pipeline_run::Query<Narrowed> {
    pipeline_run::query().pipeline("ml", "train").live()
}

fn uid(stored: &Stored) -> String {
    stored.object.metadata.uid.to_string()
}

async fn a_reference_leads_to_the_newest_object_of_its_name(store: &dyn MetadataStorage) {
    use pipeline_run::reference::{PIPELINE, REVISION};
    let with_both = runs().order_by(pipeline_run::NAME).asc().with((REVISION, PIPELINE));
    let page = with_both.fetch(store).await.expect("a page");
    let found: Vec<_> = page
        .items
        .iter()
        .map(|(run, (revision, pipeline))| (uid(run), revision.as_ref().map(uid), pipeline.as_ref().map(uid)))
        .collect();
    let row = |run: &str, revision: Option<&str>| (run.to_owned(), revision.map(str::to_owned), Some("p1".to_owned()));
    let expected = [
        row("u0", Some("r2")),
        row("u1", Some("r4")),
        row("u2", Some("r5")),
        row("u3", None),
        row("u4", None),
    ];
    assert_eq!(found, expected);
    let of_twice = page.items[0].1.0.as_ref().expect("the one that was deleted last");
    assert_eq!(of_twice.life, Life::Deleted);
}

async fn a_column_says_the_kind_that_is_referred_to(store: &dyn MetadataStorage) {
    use revision::reference::BASE_RESOURCE;
    let all = revision::query()
        .base_resource("ml", "train")
        .order_by(revision::UID)
        .asc();
    let page = all.with(BASE_RESOURCE).fetch(store).await.expect("a page");
    let found: Vec<_> = page
        .items
        .iter()
        .map(|(revision, base)| (uid(revision), base.as_ref().map(uid)))
        .collect();
    let row = |revision: &str, base: Option<&str>| (revision.to_owned(), base.map(str::to_owned));
    let expected = [
        row("r1", Some("p1")),
        row("r2", Some("p1")),
        row("r3", Some("p1")),
        row("r4", None),
    ];
    assert_eq!(found, expected, "no kind is called `Unheard`");
}

async fn pages_and_streams_hold_the_same_rows(store: &dyn MetadataStorage) {
    let expected = ["u0", "u1", "u2", "u3", "u4"].map(str::to_owned);
    for rows in [1, 2, 5, 100] {
        let query = runs().limit(rows);
        let stored: Vec<Stored> = query.stream(store).try_collect().await.expect("a stream");
        assert_eq!(stored.iter().map(uid).collect::<Vec<_>>(), expected);
        let columns = runs().limit(rows).select((pipeline_run::UID,));
        let streamed: Vec<(String,)> = columns.stream(store).try_collect().await.expect("a stream");
        assert_eq!(streamed.into_iter().map(|row| row.0).collect::<Vec<_>>(), expected);
        let joined = runs().limit(rows).with(pipeline_run::reference::REVISION);
        let streamed: Vec<_> = joined.stream(store).try_collect().await.expect("a stream");
        assert_eq!(streamed.iter().map(|(run, _)| uid(run)).collect::<Vec<_>>(), expected);
        assert_eq!(streamed.iter().filter(|(_, revision)| revision.is_some()).count(), 3);
    }
    let query = runs().limit(3);
    let columns = runs().limit(3).select((pipeline_run::UID, pipeline_run::ACTOR));
    let joined = runs().limit(3).with(pipeline_run::reference::REVISION);
    let token = query
        .fetch(store)
        .await
        .expect("a page")
        .continue_token
        .expect("there is more");
    let rows = columns
        .fetch_after(store, &token)
        .await
        .expect("the token is that of the query");
    assert_eq!(rows.items[0].0, "u3");
    assert_eq!(joined.fetch_after(store, &token).await.expect("as well").items.len(), 2);
    let other = runs().actor().eq("a1").select((pipeline_run::UID,));
    let refused = other.fetch_after(store, &token).await;
    assert!(matches!(refused, Err(StoreError::Continue(_))));
}

async fn columns_come_with_their_types(store: &dyn MetadataStorage) {
    use pipeline_run::{CREATE_TIME, DELETE_TIME, END_TIME, NAME, PipelineRunState, RES_VERSION, STATE};
    let columns = (NAME, STATE, RES_VERSION, CREATE_TIME, DELETE_TIME, END_TIME);
    let query = runs().order_by(NAME).desc().limit(2).select(columns);
    let page = query.fetch(store).await.expect("a page");
    let (name, state, version, create_time, delete_time, end_time) = &page.items[0];
    assert_eq!(
        (name.as_str(), *version, *delete_time, *end_time),
        ("run4", 7, None, None)
    );
    assert_eq!(*create_time, "2026-10-01T12:00:00Z".parse().expect("a time"));
    assert_eq!(
        state.as_ref().and_then(|state| state.known()),
        Some(&PipelineRunState::Failed)
    );
    let of_the_future = page.items[1].1.as_ref().expect("a name");
    assert_eq!(
        (of_the_future.known(), of_the_future.as_str()),
        (None, "PIPELINE_RUN_STATE_DREAMING")
    );
}
