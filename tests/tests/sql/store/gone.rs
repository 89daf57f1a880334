//! Rows of objects that are no longer in the cluster: which are found, and that nothing
//! else is ever removed. And what the database remembers for commands.

use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};
use kindex_store::{BACKFILL_PROGRESS, CONVERT_PROGRESS, Gone};
use serde_json::json;

use super::backend::Backend;
use super::widget::{KEEPSAKE, WIDGET, at, soft_delete, widget};

scenarios!(
    gone_rows_are_found_by_life_name_time_and_state,
    the_place_in_a_namespace_counts_from_the_last_that_went,
    a_row_is_removed_with_all_its_parts_and_never_while_it_lives,
    the_history_of_a_removed_row_goes_with_it,
    a_first_checkpoint_replaces_none,
    what_is_remembered_for_a_kind_is_the_last_that_was_saved,
    a_database_has_the_objects_of_the_cluster_that_was_recorded_first,
    a_database_that_is_handed_over_is_compared_with_its_new_cluster,
    the_database_has_a_clock,
);

/// Rows u0 to u8: every third is live, archived, deleted in turn, gone at the second of its number.
async fn fill(backend: &Backend) {
    for number in 0..9_u64 {
        let name = format!("u{number}");
        let group = if number < 6 { "low" } else { "high" };
        let thing = widget(&name, &name, number + 1)
            .label("l", "1")
            .annotation("a", "1")
            .spec(json!({"group": group}));
        let when = at(number.cast_signed());
        match number % 3 {
            0 => backend.write(thing.live(), when).await,
            1 => backend.write(thing.archived(), when).await,
            _ => {
                backend.write(thing.live(), at(0)).await;
                backend.write(soft_delete(&name), when).await
            }
        };
    }
}

async fn names(backend: &Backend, gone: &Gone) -> Vec<String> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = backend.store.gone_rows(&WIDGET, gone, after, 2).await;
        let page = page.expect("read");
        let Some(last) = page.last() else { return names };
        after = Some(last.arrival);
        names.extend(page.into_iter().map(|row| row.name));
    }
}

fn deleted() -> Gone {
    Gone {
        deleted: true,
        ..Gone::default()
    }
}

fn both() -> Gone {
    Gone {
        archived: true,
        ..deleted()
    }
}

async fn gone_rows_are_found_by_life_name_time_and_state(backend: Backend) {
    fill(&backend).await;
    let archived = Gone {
        deleted: false,
        ..both()
    };
    assert_eq!(names(&backend, &Gone::default()).await, [""; 0]);
    assert_eq!(names(&backend, &deleted()).await, ["u2", "u5", "u8"]);
    assert_eq!(names(&backend, &archived).await, ["u1", "u4", "u7"]);
    assert_eq!(names(&backend, &both()).await, ["u1", "u2", "u4", "u5", "u7", "u8"]);
    let between = Gone {
        since: Some(at(4)),
        before: Some(at(7)),
        ..both()
    };
    assert_eq!(names(&backend, &between).await, ["u4", "u5"]);
    let named = Gone {
        namespace: Some("shop".to_owned()),
        name: Some("u5".to_owned()),
        ..both()
    };
    assert_eq!(names(&backend, &named).await, ["u5"]);
    let elsewhere = Gone {
        namespace: Some("Shop".to_owned()),
        ..both()
    };
    assert_eq!(names(&backend, &elsewhere).await, [""; 0]);
    let high = Gone {
        states: Some(("group", &["high", "other"])),
        ..both()
    };
    assert_eq!(names(&backend, &high).await, ["u7", "u8"]);

    let row = &backend.store.gone_rows(&WIDGET, &named, None, 2).await.expect("read")[0];
    assert_eq!(
        (row.life, row.gone_time, row.res_version),
        (Life::Deleted, at(5), RowVersion::Cluster(ResourceVersion(6)))
    );
}

async fn the_place_in_a_namespace_counts_from_the_last_that_went(backend: Backend) {
    fill(&backend).await;
    let place = async |gone: &Gone, place: u32| {
        let found = backend.store.nth_newest_gone(&WIDGET, gone, place).await.expect("read");
        found.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(place(&both(), 1).await, ["u8"]);
    assert_eq!(place(&both(), 4).await, ["u4"]);
    assert_eq!(place(&deleted(), 2).await, ["u5"]);
    assert_eq!(place(&both(), 7).await, [""; 0]);
}

async fn a_row_is_removed_with_all_its_parts_and_never_while_it_lives(backend: Backend) {
    fill(&backend).await;
    let every: Vec<Uid> = (0..9).map(|number| Uid::from(format!("u{number}").as_str())).collect();
    let before = Gone {
        before: Some(at(6)),
        ..both()
    };
    let mut removed = backend
        .store
        .remove(&WIDGET, &before, &every, at(9))
        .await
        .expect("removed");
    removed.sort();
    assert_eq!(removed, ["u1", "u2", "u4", "u5"].map(Uid::from));
    assert_eq!(names(&backend, &both()).await, ["u7", "u8"]);
    for uid in ["u0", "u3", "u6"] {
        assert_eq!(backend.life(uid).await, Some(Life::Live));
    }
    for table in ["widget_labels", "widget_annotations"] {
        if let Some(rows) = backend
            .rows(&format!("SELECT obj_uid FROM {table} ORDER BY obj_uid"))
            .await
        {
            let owners: Vec<_> = rows.iter().map(|row| row[0].as_deref().expect("a uid")).collect();
            assert_eq!(owners, ["u0", "u3", "u6", "u7", "u8"], "{table}");
        }
    }
    let again = backend
        .store
        .remove(&WIDGET, &before, &every, at(9))
        .await
        .expect("removed");
    assert_eq!(again, []);
}

async fn the_history_of_a_removed_row_goes_with_it(backend: Backend) {
    for (uid, life) in [("u1", Life::Archived), ("u2", Life::Live)] {
        for version in 1..4 {
            let life = if version < 3 { Life::Live } else { life };
            let write = widget(uid, uid, version).store(life, Revive::Never);
            let written = backend.store.write(&KEEPSAKE, &[write], at(0)).await;
            written.expect("the write is taken");
        }
    }
    let every = ["u1", "u2"].map(Uid::from);
    let removed = backend
        .store
        .remove(&KEEPSAKE, &both(), &every, at(9))
        .await
        .expect("removed");
    assert_eq!(removed, [Uid::from("u1")]);
    let versions = async |uid: &str| {
        let history = backend.store.history(&KEEPSAKE, &Uid::from(uid), None, 10).await;
        history.expect("read").len()
    };
    assert_eq!((versions("u1").await, versions("u2").await), (0, 3));
}

async fn a_first_checkpoint_replaces_none(backend: Backend) {
    for (version, expected) in [(7, 7), (9, 7)] {
        let saved = backend
            .store
            .save_first_checkpoint(&WIDGET, ResourceVersion(version), at(0))
            .await;
        saved.expect("saved");
        let found = backend.store.checkpoint(&WIDGET).await.expect("read");
        assert_eq!(found, Some(Checkpoint::Settled(ResourceVersion(expected))));
    }
}

async fn what_is_remembered_for_a_kind_is_the_last_that_was_saved(backend: Backend) {
    let read = async |name: &'static str| backend.store.state(&WIDGET, name).await.expect("read");
    assert_eq!(read("a").await, None);
    for value in ["{}", "{\"é\":1}"] {
        backend
            .store
            .save_state(&WIDGET, "a", value, at(0))
            .await
            .expect("saved");
        assert_eq!(read("a").await.as_deref(), Some(value));
    }
    assert_eq!(read("b").await, None);
    backend.store.forget_state(&WIDGET, "a").await.expect("forgotten");
    assert_eq!(read("a").await, None);
}

async fn a_database_has_the_objects_of_the_cluster_that_was_recorded_first(backend: Backend) {
    let [a, b] = ["a", "b"].map(Uid::from);
    assert_eq!(backend.store.cluster().await.expect("read"), None);
    for cluster in [&a, &b, &a] {
        let claimed = backend.store.claim(cluster, at(0)).await.expect("recorded");
        assert_eq!(claimed, a, "the first one stays");
    }
    assert_eq!(backend.store.cluster().await.expect("read"), Some(a));
}

/// As if an ingester went on in the new cluster from a version of the former one.
async fn a_database_that_is_handed_over_is_compared_with_its_new_cluster(backend: Backend) {
    let [a, b] = ["a", "b"].map(Uid::from);
    let version = ResourceVersion(7);
    backend.store.claim(&a, at(0)).await.expect("recorded");
    for kind in [&WIDGET, &KEEPSAKE] {
        let saved = backend.store.save_first_checkpoint(kind, version, at(0)).await;
        saved.expect("saved");
    }
    let state = async |name| backend.store.state(&WIDGET, name).await.expect("read");
    for name in [BACKFILL_PROGRESS, CONVERT_PROGRESS] {
        let saved = backend.store.save_state(&WIDGET, name, "{}", at(0)).await;
        saved.expect("saved");
    }
    // A second time as after an interruption.
    for second in [1, 2] {
        backend.store.hand_over(&b, at(second)).await.expect("handed over");
        assert_eq!(backend.store.cluster().await.expect("read"), Some(b.clone()));
        for kind in [&WIDGET, &KEEPSAKE] {
            let found = backend.store.checkpoint(kind).await.expect("read");
            assert_eq!(found, Some(Checkpoint::Held(version)));
        }
        assert_eq!(state(BACKFILL_PROGRESS).await, None, "its place in the former cluster");
        assert!(state(CONVERT_PROGRESS).await.is_some(), "it is about rows alone");
    }
    let restoring = Checkpoint::Restoring(version);
    let saved = backend.store.save_checkpoint(&WIDGET, restoring, None, at(3)).await;
    saved.expect("saved");
    backend.store.hand_over(&b, at(4)).await.expect("handed over");
    let found = backend.store.checkpoint(&WIDGET).await.expect("read");
    assert_eq!(found, Some(restoring), "it compares the whole cluster by itself");
}

async fn the_database_has_a_clock(backend: Backend) {
    let first = backend.store.clock().await.expect("read");
    let second = backend.store.clock().await.expect("read");
    assert!(first <= second);
    let off = first.duration_since(jiff::Timestamp::now()).abs();
    assert!(off < jiff::SignedDuration::from_hours(1), "in UTC: {first}");
}
