//! What did not change is not written, and what changed is written once.

use kindex_store::Written;
use serde_json::json;

use super::backend::Backend;
use super::widget::{at, soft_delete, widget};

scenarios!(
    storing_the_same_version_again_touches_no_row,
    only_the_side_table_that_changed_is_rewritten,
    a_row_of_another_program_is_adopted_with_its_side_rows,
);

const MAIN: &str = "SELECT uid, update_time, res_version FROM widget ORDER BY uid";
const LABELS: &str = "SELECT id, obj_uid, `key`, `value` FROM widget_labels ORDER BY id";
const ANNOTATIONS: &str = "SELECT id, obj_uid, `key`, `value` FROM widget_annotations ORDER BY id";

async fn storing_the_same_version_again_touches_no_row(backend: Backend) {
    let live = widget("u1", "a", 1).label("l", "1").annotation("n", "1");
    let gone = widget("u2", "b", 2).label("l", "2").annotation("n", "2");
    backend.write_all(&[live.live(), gone.live()], at(0)).await;
    backend.write(soft_delete("u2"), at(0)).await;
    let mut before = Vec::new();
    for table in [MAIN, LABELS, ANNOTATIONS] {
        before.push(backend.rows(table).await);
    }
    let again = backend.write_all(&[live.live(), soft_delete("u2")], at(9)).await;
    assert_eq!(again, [Written::Unchanged; 2]);
    for (table, before) in [MAIN, LABELS, ANNOTATIONS].into_iter().zip(before) {
        assert_eq!(backend.rows(table).await, before, "{table}");
    }
}

async fn only_the_side_table_that_changed_is_rewritten(backend: Backend) {
    let object = widget("u1", "a", 1).label("l", "1").annotation("n", "1");
    backend.write(object.live(), at(0)).await;
    let (labels, annotations) = (backend.rows(LABELS).await, backend.rows(ANNOTATIONS).await);

    let mut status_only = object.clone().status(json!({"ready": true}));
    status_only.version = 2;
    assert_eq!(backend.write(status_only.live(), at(1)).await, Written::Updated);
    assert_eq!(backend.rows(LABELS).await, labels);
    assert_eq!(backend.rows(ANNOTATIONS).await, annotations);

    let mut relabeled = status_only.clone().label("l", "2");
    relabeled.version = 3;
    assert_eq!(backend.write(relabeled.live(), at(2)).await, Written::Updated);
    assert_eq!(backend.rows(ANNOTATIONS).await, annotations);
    if let Some(found) = backend.rows(LABELS).await {
        assert_eq!(found.len(), 1);
        assert_eq!(found[0][3].as_deref(), Some("2"));
    }
}

async fn a_row_of_another_program_is_adopted_with_its_side_rows(backend: Backend) {
    let foreign = "INSERT INTO widget (uid, group_ver, namespace, name, res_version, create_time, json) \
                   VALUES ('u1', 'test.kindex/v1', 'shop', 'a', 5, '2024-01-01 00:00:00', '{}')";
    if backend.rows(foreign).await.is_none() {
        return;
    }
    let label = "INSERT INTO widget_labels (obj_uid, `key`, `value`) VALUES ('u1', 'l', 'old')";
    for _ in 0..2 {
        backend.rows(label).await;
    }
    let state = backend.state("u1").await.expect("the row is seen");
    assert_eq!(state.hash, None);
    assert_eq!(
        backend.write(widget("u1", "a", 4).live(), at(1)).await,
        Written::Superseded
    );
    let same = widget("u1", "a", 5).label("l", "new");
    assert_eq!(backend.write(same.live(), at(1)).await, Written::Updated);
    let found = backend.rows(LABELS).await.expect("not in memory");
    assert_eq!(found.len(), 1, "doubled rows of the reference are gone");
    assert_eq!(found[0][3].as_deref(), Some("new"));
}
