//! The version check, and how rows pass between live, archived and deleted.

use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::{Life, Revive};
use kindex_store::{RowWrite, Written};
use serde_json::json;

use super::backend::Backend;
use super::direct::expect_whole;
use super::widget::{WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    a_stale_write_never_wins,
    every_permutation_of_a_history_ends_in_the_same_row,
    soft_delete_is_idempotent_and_by_uid,
    a_late_write_never_revives_a_deleted_row,
    a_row_is_revived_only_when_the_cluster_shows_it_alive,
    a_row_is_brought_back_only_from_the_state_that_was_seen,
    a_final_version_reaches_a_row_that_is_deleted_already,
    eviction_and_return_keep_the_first_times,
    a_rewound_row_takes_whatever_the_cluster_shows,
    one_batch_reports_each_write_in_its_order,
    labels_and_annotations_follow_each_for_itself,
);

async fn labels_and_annotations_follow_each_for_itself(backend: Backend) {
    for (version, label, annotation) in [(10, "1", "1"), (11, "1", "2"), (12, "2", "2")] {
        let object = widget("u1", "a", version).label("l", label).annotation("n", annotation);
        backend.write(object.live(), at(0)).await;
        expect_whole(&backend, "u1").await;
    }
}

async fn a_stale_write_never_wins(backend: Backend) {
    let newer = widget("u1", "a", 200).label("step", "new");
    let older = widget("u1", "a", 100).label("step", "old");
    assert_eq!(backend.write(newer.live(), at(0)).await, Written::Inserted);
    assert_eq!(backend.write(older.live(), at(1)).await, Written::Superseded);
    for life in [Life::Archived, Life::Deleted] {
        let write = older.store(life, Revive::FromAny);
        assert_eq!(backend.write(write, at(2)).await, Written::Superseded);
    }
    expect_row(&backend, &newer, Life::Live).await;
}

/// The object's text, state and side rows are all of one version.
async fn expect_row(backend: &Backend, expected: &Widget, life: Life) {
    let stored = backend
        .store
        .get_by_id(&WIDGET, &Uid::from(expected.uid.as_str()))
        .await;
    let stored = stored.expect("readable").expect("stored");
    assert_eq!(stored.object.text(), expected.text());
    assert_eq!(stored.life, life);
    let state = backend.state(&expected.uid).await.expect("there is a row");
    assert_eq!(state.res_version.pack(), ResourceVersion(expected.version));
    assert_eq!(state.hash, Some(expected.project().hash));
    for (side, map) in [("labels", &expected.labels), ("annotations", &expected.annotations)] {
        let sql = format!(
            "SELECT `key`, `value` FROM widget_{side} WHERE obj_uid = '{}' ORDER BY `key`, id",
            expected.uid
        );
        let Some(rows) = backend.rows(&sql).await else {
            continue;
        };
        let wanted: Vec<Vec<Option<String>>> = map
            .iter()
            .map(|(key, value)| vec![Some(key.clone()), value.as_str().map(str::to_owned)])
            .collect();
        assert_eq!(rows, wanted, "{side}");
    }
}

async fn every_permutation_of_a_history_ends_in_the_same_row(backend: Backend) {
    for (number, order) in permutations(4).into_iter().enumerate() {
        let uid = format!("u{number}");
        let history = [
            widget(&uid, &uid, 10).label("a", "1"),
            widget(&uid, &uid, 20).label("a", "1").annotation("n", "2"),
            widget(&uid, &uid, 30)
                .label("a", "3")
                .label("b", "3")
                .annotation("n", "2"),
            widget(&uid, &uid, 40).label("b", "3").spec(json!({"order": 4})),
        ];
        for (step, index) in order.into_iter().enumerate() {
            let last = index == history.len() - 1;
            let life = if last { Life::Deleted } else { Life::Live };
            let write = history[index].store(life, Revive::Never);
            let now = at(i64::try_from(step).expect("small"));
            backend.write(write, now).await;
        }
        expect_row(&backend, &history[3], Life::Deleted).await;
    }
}

fn permutations(of: usize) -> Vec<Vec<usize>> {
    if of == 0 {
        return vec![Vec::new()];
    }
    permutations(of - 1)
        .into_iter()
        .flat_map(|shorter| {
            (0..of).map(move |place| {
                let mut longer = shorter.clone();
                longer.insert(place, of - 1);
                longer
            })
        })
        .collect()
}

async fn soft_delete_is_idempotent_and_by_uid(backend: Backend) {
    backend.write(widget("u1", "a", 1).live(), at(0)).await;
    backend.write(widget("u2", "b", 2).live(), at(0)).await;
    assert_eq!(backend.write(soft_delete("u1"), at(5)).await, Written::Updated);
    assert_eq!(backend.write(soft_delete("u1"), at(9)).await, Written::Unchanged);
    assert_eq!(
        backend.write(soft_delete("never-seen"), at(9)).await,
        Written::Unchanged
    );
    let stored = backend.store.get_by_id(&WIDGET, &Uid::from("u1")).await;
    let stored = stored.expect("readable").expect("stored");
    assert_eq!(stored.delete_time, Some(at(5)), "the first time stays");
    assert_eq!(stored.update_time, Some(at(5)), "the last write that changed the row");
    assert_eq!(backend.life("u2").await, Some(Life::Live));
    assert_eq!(backend.life("never-seen").await, None);
}

async fn a_late_write_never_revives_a_deleted_row(backend: Backend) {
    backend.write(widget("u1", "a", 10).live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    for version in [9, 10, 11] {
        for life in [Life::Live, Life::Archived] {
            let late = widget("u1", "a", version)
                .label("late", "yes")
                .store(life, Revive::Never);
            assert_eq!(backend.write(late, at(2)).await, Written::Superseded);
        }
    }
    expect_row(&backend, &widget("u1", "a", 10), Life::Deleted).await;
}

async fn a_row_is_revived_only_when_the_cluster_shows_it_alive(backend: Backend) {
    let object = widget("u1", "a", 10).label("l", "1");
    backend.write(object.live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    assert_eq!(
        backend.write(object.store(Life::Live, Revive::FromAny), at(2)).await,
        Written::Updated
    );
    expect_row(&backend, &object, Life::Live).await;

    backend.write(soft_delete("u1"), at(3)).await;
    let newer = widget("u1", "a", 11).label("l", "2");
    assert_eq!(
        backend.write(newer.store(Life::Archived, Revive::FromAny), at(4)).await,
        Written::Updated
    );
    expect_row(&backend, &newer, Life::Archived).await;

    backend.write(soft_delete("u1"), at(5)).await;
    let older = widget("u1", "a", 9);
    assert_eq!(
        backend.write(older.store(Life::Live, Revive::FromAny), at(6)).await,
        Written::Superseded
    );
    expect_row(&backend, &newer, Life::Deleted).await;
}

/// Of two ingesters that have both seen the object alive, and its row deleted, one archives it, and the other is late.
async fn a_row_is_brought_back_only_from_the_state_that_was_seen(backend: Backend) {
    let object = widget("u1", "a", 10);
    backend.write(object.live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    let from_deleted = |life| object.store(life, Revive::From(Life::Deleted));
    let archived = backend.write(from_deleted(Life::Archived), at(2)).await;
    assert_eq!(archived, Written::Updated);
    let late = backend.write(from_deleted(Life::Live), at(3)).await;
    assert_eq!(late, Written::Superseded);
    expect_row(&backend, &object, Life::Archived).await;
    let seen = object.store(Life::Live, Revive::From(Life::Archived));
    assert_eq!(backend.write(seen, at(4)).await, Written::Updated);
    expect_row(&backend, &object, Life::Live).await;
}

async fn a_final_version_reaches_a_row_that_is_deleted_already(backend: Backend) {
    backend.write(widget("u1", "a", 10).live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    let last = widget("u1", "a", 12).label("phase", "done");
    assert_eq!(
        backend.write(last.store(Life::Deleted, Revive::Never), at(2)).await,
        Written::Updated
    );
    expect_row(&backend, &last, Life::Deleted).await;
    let stored = backend.store.get_by_id(&WIDGET, &Uid::from("u1")).await;
    let stored = stored.expect("readable").expect("stored");
    assert_eq!((stored.delete_time, stored.update_time), (Some(at(1)), Some(at(2))));
}

async fn eviction_and_return_keep_the_first_times(backend: Backend) {
    let object = widget("u1", "a", 10);
    assert_eq!(backend.write(object.archived(), at(1)).await, Written::Inserted);
    assert_eq!(backend.write(object.archived(), at(2)).await, Written::Unchanged);
    let newer = widget("u1", "a", 11);
    backend.write(newer.archived(), at(3)).await;
    let evicted_time = || async {
        let stored = backend.store.get_by_id(&WIDGET, &Uid::from("u1")).await;
        stored.expect("readable").expect("stored").evicted_time
    };
    assert_eq!(evicted_time().await, Some(at(1)));
    let unseen = backend.write(newer.live(), at(4)).await;
    assert_eq!(unseen, Written::Superseded, "nobody has looked");
    assert_eq!(evicted_time().await, Some(at(1)));
    let seen = backend.write(newer.store(Life::Live, Revive::FromAny), at(4)).await;
    assert_eq!(seen, Written::Updated);
    assert_eq!(evicted_time().await, None);
    expect_row(&backend, &newer, Life::Live).await;
    backend.write(newer.archived(), at(5)).await;
    backend.write(soft_delete("u1"), at(6)).await;
    assert_eq!(
        evicted_time().await,
        Some(at(5)),
        "a deleted row remembers its eviction"
    );
    expect_row(&backend, &newer, Life::Deleted).await;
}

async fn a_rewound_row_takes_whatever_the_cluster_shows(backend: Backend) {
    let stored = widget("u1", "a", 500).label("l", "1");
    backend.write(stored.live(), at(0)).await;
    let uids = [Uid::from("u1"), Uid::from("absent")];
    backend.store.rewind(&WIDGET, &uids, at(30)).await.expect("rewound");
    assert_eq!(backend.write(stored.live(), at(1)).await, Written::Updated);
    expect_row(&backend, &stored, Life::Live).await;
    backend.store.rewind(&WIDGET, &uids, at(30)).await.expect("rewound");
    let restored = widget("u1", "a", 7).label("l", "0");
    assert_eq!(backend.write(restored.live(), at(2)).await, Written::Updated);
    expect_row(&backend, &restored, Life::Live).await;
}

async fn one_batch_reports_each_write_in_its_order(backend: Backend) {
    let same = widget("same", "same", 5);
    let archived = widget("evicted", "evicted", 5);
    let deleted = widget("deleted", "deleted", 5);
    let newer = widget("newer", "newer", 5);
    for known in [&same, &archived, &deleted, &newer] {
        backend.write(known.live(), at(0)).await;
    }
    let batch: [RowWrite; 7] = [
        widget("z-new", "z", 1).live(),
        same.live(),
        soft_delete("deleted"),
        archived.archived(),
        widget("newer", "newer", 4).live(),
        widget("a-new", "a", 1).store(Life::Deleted, Revive::Never),
        soft_delete("absent"),
    ];
    use Written::{Inserted, Superseded, Unchanged, Updated};
    assert_eq!(
        backend.write_all(&batch, at(1)).await,
        [Inserted, Unchanged, Updated, Updated, Superseded, Inserted, Unchanged]
    );
    let counts = backend.store.count(&WIDGET).await.expect("counted");
    assert_eq!((counts.live, counts.archived, counts.deleted), (3, 1, 2));
}
