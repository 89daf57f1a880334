//! Deleting collections: what a selector does not match stays, what the cluster has is left to the
//! cluster, and nothing is deleted because something was left out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_query::{LabelSelector, Life, Revive, Select};
use kindex_store::{BatchOutcome, DeleteCollection, Found, StoreError};

use super::backend::Backend;
use super::widget::{WIDGET, at, soft_delete, widget};

scenarios!(
    what_the_selector_does_not_match_stays,
    what_the_cluster_has_is_named_and_left_alone,
    nothing_said_deletes_nothing,
    batches_go_on_where_the_last_one_ended,
    a_batch_is_the_last_where_nothing_follows_whatever_the_order_of_the_query,
    a_row_that_changed_meanwhile_is_asked_again,
    no_selector_and_no_token_is_sql,
);

/// Archived: a0 to a3 of team a, b0 to b3 of team b. Live: a4, b4. Deleted: a5, b5.
async fn fill(backend: &Backend) {
    let mut batch = Vec::new();
    for team in ["a", "b"] {
        for number in 0..6 {
            let uid = format!("{team}{number}");
            let life = if number < 4 { Life::Archived } else { Life::Live };
            batch.push(widget(&uid, &uid, 10).label("team", team).store(life, Revive::Never));
        }
    }
    backend.write_all(&batch, at(0)).await;
    backend.write_all(&["a5", "b5"].map(soft_delete), at(1)).await;
}

fn selecting(labels: &str, fields: &str) -> Select {
    let mut select = Select::all(&WIDGET);
    select
        .filter_by_labels(&LabelSelector::parse(labels).expect("a selector"))
        .expect("small enough");
    select.filter_by_fields(fields).expect("a selector");
    select
}

fn request(select: Select) -> DeleteCollection {
    DeleteCollection {
        select,
        everything: false,
        needs_tombstones: false,
        rows: 100,
    }
}

async fn delete(backend: &Backend, request: &DeleteCollection) -> BatchOutcome {
    let answer = backend.store.delete_collection(request, None, at(9)).await;
    answer.expect("deleted")
}

fn names(found: &[Found]) -> Vec<&str> {
    found.iter().map(|found| found.name.as_str()).collect()
}

/// The names of the rows that are not deleted.
async fn left(backend: &Backend) -> Vec<String> {
    let page = backend.store.list(&WIDGET, &Default::default()).await.expect("listed");
    page.iter().map(|row| row.object.metadata.name.clone()).collect()
}

async fn what_the_selector_does_not_match_stays(backend: Backend) {
    fill(&backend).await;
    let gone = delete(&backend, &request(selecting("team=a", "metadata.name!=a2"))).await;
    assert_eq!(names(&gone.deleted), ["a0", "a1", "a3"]);
    assert_eq!((names(&gone.live), gone.continue_token), (vec!["a4"], None));
    assert_eq!(left(&backend).await, ["a2", "a4", "b0", "b1", "b2", "b3", "b4"]);
    let row = backend
        .store
        .get_by_id(&WIDGET, &"a0".into())
        .await
        .expect("readable")
        .expect("stored");
    assert_eq!(
        (row.life, row.delete_time, row.evicted_time),
        (Life::Deleted, Some(at(9)), Some(at(0)))
    );
    let kept = backend
        .store
        .get_by_id(&WIDGET, &"a5".into())
        .await
        .expect("readable")
        .expect("stored");
    assert_eq!(kept.delete_time, Some(at(1)), "deleted before, and not again");
    let again = delete(&backend, &request(selecting("team=a", "metadata.name!=a2"))).await;
    assert_eq!((names(&again.deleted), names(&again.live)), (vec![], vec!["a4"]));
    let none = delete(&backend, &request(selecting("team=nobody", ""))).await;
    assert_eq!(none, BatchOutcome::default());
}

async fn what_the_cluster_has_is_named_and_left_alone(backend: Backend) {
    fill(&backend).await;
    let mut select = Select::all(&WIDGET);
    select.in_namespace("shop");
    let gone = delete(&backend, &request(select)).await;
    assert_eq!(gone.deleted.len(), 8);
    assert_eq!(names(&gone.live), ["a4", "b4"]);
    let live = &gone.live[0];
    assert_eq!(
        (&*live.uid.0, live.namespace.as_str(), live.res_version.pack().0),
        ("a4", "shop", 10)
    );
    assert_eq!(left(&backend).await, ["a4", "b4"]);
    assert_eq!(backend.life("a4").await, Some(Life::Live));
}

async fn nothing_said_deletes_nothing(backend: Backend) {
    fill(&backend).await;
    let mut alive = Select::all(&WIDGET);
    alive.filter_by("delete_time is null").expect("a condition");
    for select in [Select::all(&WIDGET), selecting("", ""), alive] {
        let refused = backend.store.delete_collection(&request(select), None, at(9)).await;
        let refused = refused.expect_err("refused");
        assert!(matches!(refused, StoreError::UnlimitedDelete(_)), "{refused:?}");
        assert!(refused.to_string().contains("every object of the kind"), "{refused}");
    }
    assert_eq!(left(&backend).await.len(), 10);
    let all = DeleteCollection {
        everything: true,
        needs_tombstones: false,
        ..request(Select::all(&WIDGET))
    };
    assert_eq!(delete(&backend, &all).await.deleted.len(), 8);
}

async fn batches_go_on_where_the_last_one_ended(backend: Backend) {
    fill(&backend).await;
    let three = DeleteCollection {
        rows: 3,
        ..request(selecting("team in (a, b)", ""))
    };
    let (mut batches, mut token) = (Vec::new(), None::<String>);
    loop {
        let batch = backend.store.delete_collection(&three, token.as_deref(), at(9)).await;
        let batch = batch.expect("deleted");
        batches.push((names(&batch.deleted).concat(), names(&batch.live).concat()));
        token = batch.continue_token;
        if token.is_none() {
            break;
        }
    }
    let batches: Vec<(&str, &str)> = batches.iter().map(|(deleted, live)| (&**deleted, &**live)).collect();
    assert_eq!(batches, [("a0a1a2", ""), ("a3b0", "a4"), ("b1b2b3", ""), ("", "b4")]);
    assert_eq!(left(&backend).await, ["a4", "b4"]);
}

async fn a_batch_is_the_last_where_nothing_follows_whatever_the_order_of_the_query(backend: Backend) {
    fill(&backend).await;
    let mut select = selecting("team=a", "");
    select.order_by("name:desc").expect("a column");
    let of_rows = |rows| DeleteCollection {
        rows,
        ..request(select.clone())
    };
    let batch = backend.store.delete_collection(&of_rows(2), None, at(9)).await;
    let batch = batch.expect("deleted");
    assert_eq!(names(&batch.deleted), ["a0", "a1"]);
    let token = batch.continue_token.expect("three follow");
    let batch = backend.store.delete_collection(&of_rows(3), Some(&token), at(9)).await;
    let batch = batch.expect("deleted");
    assert_eq!(
        (names(&batch.deleted), names(&batch.live)),
        (vec!["a2", "a3"], vec!["a4"])
    );
    assert_eq!(batch.continue_token, None);
}

async fn a_row_that_changed_meanwhile_is_asked_again(backend: Backend) {
    // Relabeled, or back in the cluster, while batches go on: each of them is deleted, or found as it is now.
    let objects: Vec<String> = (0..40).map(|number| format!("u{number:02}")).collect();
    let archived_object = |uid: &String, version: u64, team: &str| widget(uid, uid, version).label("team", team);
    let batch: Vec<_> = objects
        .iter()
        .map(|uid| archived_object(uid, 10, "a").archived())
        .collect();
    backend.write_all(&batch, at(0)).await;
    let relabel = async {
        for (number, uid) in objects.iter().enumerate() {
            let write = match number % 2 {
                0 => archived_object(uid, 20, "b").archived(),
                _ => archived_object(uid, 20, "a").live(),
            };
            backend.write(write, at(1)).await;
        }
    };
    let purge = async {
        let (mut token, mut deleted, mut live) = (None::<String>, Vec::new(), Vec::new());
        let few = DeleteCollection {
            rows: 2,
            ..request(selecting("team=a", ""))
        };
        loop {
            let batch = backend.store.delete_collection(&few, token.as_deref(), at(2)).await;
            let batch = batch.expect("deleted");
            deleted.extend(batch.deleted.into_iter().map(|found| found.name));
            live.extend(batch.live.into_iter().map(|found| found.name));
            token = batch.continue_token;
            if token.is_none() {
                return (deleted, live);
            }
        }
    };
    let ((), (deleted, live)) = futures::join!(relabel, purge);
    for (number, uid) in objects.iter().enumerate() {
        let row = backend.store.get_by_id(&WIDGET, &uid.as_str().into()).await;
        let row = row.expect("readable").expect("stored");
        let metadata = &row.object.metadata;
        let team = metadata.labels["team"].as_str();
        let expected = match (row.life, number % 2) {
            (Life::Deleted, _) => ("a", 10, true, false),
            (Life::Archived, 0) => ("b", 20, false, false),
            (Life::Live, 1) => ("a", 20, false, true),
            other => panic!("{uid}: {other:?}"),
        };
        let named = [&deleted, &live].map(|named| named.contains(uid));
        assert_eq!(
            (team, metadata.resource_version.0, named[0], named[1]),
            expected,
            "{uid}: a late write never revives, and neither another team nor the cluster's was asked for"
        );
    }
}

async fn no_selector_and_no_token_is_sql(backend: Backend) {
    fill(&backend).await;
    for text in ["a' OR '1'='1", "a\") OR 1=1 -- ", "`; DROP TABLE widget"] {
        let mut select = Select::all(&WIDGET);
        select.label_one_of(text, &[text]);
        assert_eq!(delete(&backend, &request(select)).await, BatchOutcome::default());
        let escaped = text.replace('=', r"\=");
        let gone = delete(&backend, &request(selecting("", &format!("metadata.name={escaped}")))).await;
        assert_eq!(gone, BatchOutcome::default(), "{text}");
    }
    let one = DeleteCollection {
        rows: 1,
        ..request(selecting("team=a", ""))
    };
    let token = delete(&backend, &one).await.continue_token.expect("more");
    let other = DeleteCollection {
        rows: 1,
        ..request(selecting("team=b", ""))
    };
    let foreign = backend.store.delete_collection(&other, Some(&token), at(9)).await;
    assert!(matches!(foreign, Err(StoreError::Continue(_))), "{foreign:?}");
    let genuine = URL_SAFE_NO_PAD.decode(&token).expect("Base64");
    let genuine = String::from_utf8(genuine).expect("JSON");
    for (from, to) in [("{\"Text\":\"a0\"}", "{\"Int\":1}"), ("{\"Text\":\"a0\"}", "\"Null\"")] {
        let forged = URL_SAFE_NO_PAD.encode(genuine.replace(from, to));
        let refused = backend.store.delete_collection(&one, Some(&forged), at(9)).await;
        assert!(matches!(refused, Err(StoreError::Continue(_))), "{to}: {refused:?}");
    }
    let harmless = URL_SAFE_NO_PAD.encode(genuine.replace("a0", "a' OR '1'='1"));
    let batch = backend.store.delete_collection(&one, Some(&harmless), at(9)).await;
    assert_eq!(names(&batch.expect("a place in the order").deleted), ["a1"]);
    assert_eq!(left(&backend).await.len(), 8);
}
