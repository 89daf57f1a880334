//! Names that are reused with another uid: one row is open, the others are closed.

use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};
use kindex_store::{Gone, Written};

use super::backend::Backend;
use super::direct::{read, update};
use super::widget::{WIDGET, at, soft_delete, widget};

scenarios!(
    a_recreated_name_closes_the_old_row,
    a_late_first_write_of_the_old_object_stays_closed,
    two_objects_of_one_name_in_one_batch,
    other_names_and_namesakes_in_the_past_are_left_alone,
    a_revived_row_gives_way_to_a_newer_object,
    a_row_that_is_revived_by_a_younger_version_closes_the_other,
    who_is_deleted_by_the_same_batch_closes_nobody,
    a_name_is_that_of_the_row_that_is_not_deleted,
    of_two_open_rows_of_a_name_the_newest_has_it,
    two_writers_of_two_objects_of_one_name_leave_one_open,
    an_archived_object_whose_name_is_taken_says_by_whom_until_it_is_purged,
    a_name_that_was_free_and_an_object_that_came_back_replace_nobody,
    a_version_of_sqls_own_never_closes_the_live_row_of_a_new_object,
);

async fn a_recreated_name_closes_the_old_row(backend: Backend) {
    for old_life in [Life::Live, Life::Archived] {
        let name = format!("{old_life:?}").to_lowercase();
        let (old, new) = (format!("{name}-1"), format!("{name}-2"));
        backend
            .write(widget(&old, &name, 10).store(old_life, Revive::Never), at(0))
            .await;
        let expected = match old_life {
            Life::Archived => Written::Replacing,
            Life::Live | Life::Deleted => Written::Inserted,
        };
        let written = backend.write(widget(&new, &name, 20).live(), at(1)).await;
        assert_eq!(written, expected);
        assert_eq!(backend.life(&old).await, Some(Life::Deleted));
        assert_eq!(backend.life(&new).await, Some(Life::Live));
        let found = backend.store.get_by_name(&WIDGET, "shop", &name).await;
        let found = found.expect("readable").expect("stored");
        assert_eq!(&*found.object.metadata.uid.0, new);
    }
}

async fn a_late_first_write_of_the_old_object_stays_closed(backend: Backend) {
    backend.write(widget("u2", "a", 20).live(), at(0)).await;
    assert_eq!(
        backend.write(widget("u1", "a", 10).live(), at(1)).await,
        Written::Inserted
    );
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(backend.life("u2").await, Some(Life::Live));
}

async fn two_objects_of_one_name_in_one_batch(backend: Backend) {
    let batch = [widget("u1", "a", 20).live(), widget("u2", "a", 10).live()];
    backend.write_all(&batch, at(0)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Live));
    assert_eq!(backend.life("u2").await, Some(Life::Deleted));
}

async fn other_names_and_namesakes_in_the_past_are_left_alone(backend: Backend) {
    backend.write(widget("u1", "a", 10).live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    backend.write(widget("u2", "A", 11).live(), at(2)).await;
    backend.write(widget("u3", "a ", 12).live(), at(2)).await;
    backend.write(widget("u4", "a", 13).live(), at(3)).await;
    let stored = backend.store.get_by_id(&WIDGET, &"u1".into()).await;
    let stored = stored.expect("readable").expect("stored");
    assert_eq!(stored.delete_time, Some(at(1)), "closed once");
    for uid in ["u2", "u3", "u4"] {
        assert_eq!(backend.life(uid).await, Some(Life::Live), "{uid}");
    }
}

async fn a_row_that_is_revived_by_a_younger_version_closes_the_other(backend: Backend) {
    backend.write(widget("u1", "a", 10).live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    backend.write(widget("u2", "a", 20).live(), at(2)).await;
    backend
        .write(widget("u1", "a", 30).store(Life::Live, Revive::FromAny), at(3))
        .await;
    assert_eq!(backend.life("u1").await, Some(Life::Live));
    assert_eq!(backend.life("u2").await, Some(Life::Deleted));
}

/// As after a restore of the cluster, in which the younger object never was.
async fn who_is_deleted_by_the_same_batch_closes_nobody(backend: Backend) {
    backend.write(widget("younger", "a", 20).live(), at(0)).await;
    let batch = [soft_delete("younger"), widget("older", "a", 10).live()];
    backend.write_all(&batch, at(1)).await;
    assert_eq!(backend.life("older").await, Some(Life::Live));
    assert_eq!(backend.life("younger").await, Some(Life::Deleted));
}

/// Whichever of them has the higher version.
async fn a_name_is_that_of_the_row_that_is_not_deleted(backend: Backend) {
    backend.write(widget("deleted", "a", 20).live(), at(0)).await;
    backend.write(soft_delete("deleted"), at(1)).await;
    backend.write(widget("stands", "a", 10).live(), at(2)).await;
    let rows = backend
        .store
        .rows_of_name(&WIDGET, "shop", "a")
        .await
        .expect("readable");
    let uids: Vec<&str> = rows.iter().map(|row| &*row.object.metadata.uid.0).collect();
    assert_eq!(uids, ["stands", "deleted"]);
    let name = ("shop".to_owned(), "a".to_owned());
    let newest = backend.store.newest_by_names(&WIDGET, &[name]).await.expect("readable");
    let found = backend.store.get_by_name(&WIDGET, "shop", "a").await.expect("readable");
    let names = ["a", "nobody"].map(|name| ("shop".to_owned(), name.to_owned()));
    let of_names = backend.store.get_by_names(&WIDGET, &names).await.expect("readable");
    for row in newest.iter().chain(&found).chain(of_names.get(&names[0])) {
        assert_eq!(&*row.object.metadata.uid.0, "stands");
    }
    assert_eq!((newest.len(), found.is_some(), of_names.len()), (1, true, 1));
}

/// As after writes of another program: ours leave one row of a name open.
async fn of_two_open_rows_of_a_name_the_newest_has_it(backend: Backend) {
    for (uid, version) in [("middle", 20), ("newest", 30), ("oldest", 10)] {
        backend.write(widget(uid, "a", version).live(), at(0)).await;
    }
    if backend.rows("UPDATE `widget` SET `delete_time` = NULL").await.is_none() {
        return;
    }
    let found = backend.store.get_by_name(&WIDGET, "shop", "a").await.expect("readable");
    let names = ["a", "b"].map(|name| ("shop".to_owned(), name.to_owned()));
    let of_names = backend.store.get_by_names(&WIDGET, &names).await.expect("readable");
    for row in [found.as_ref(), of_names.get(&names[0])] {
        assert_eq!(&*row.expect("stored").object.metadata.uid.0, "newest");
    }
}

async fn a_revived_row_gives_way_to_a_newer_object(backend: Backend) {
    let old = widget("u1", "a", 10);
    backend.write(old.live(), at(0)).await;
    backend.write(soft_delete("u1"), at(1)).await;
    backend.write(widget("u2", "a", 20).live(), at(2)).await;
    backend.write(old.store(Life::Live, Revive::FromAny), at(3)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(backend.life("u2").await, Some(Life::Live));
}

async fn two_writers_of_two_objects_of_one_name_leave_one_open(backend: Backend) {
    for round in 0..20 {
        let name = format!("n{round}");
        let (old, new) = (format!("{name}-old"), format!("{name}-new"));
        let old_write = [widget(&old, &name, 10).live()];
        let new_write = [widget(&new, &name, 20).live()];
        let (a, b) = tokio::join!(
            backend.store.write(&WIDGET, &old_write, at(0)),
            backend.store.write(&WIDGET, &new_write, at(0)),
        );
        a.expect("written");
        b.expect("written");
        assert_eq!(backend.life(&old).await, Some(Life::Deleted), "round {round}");
        assert_eq!(backend.life(&new).await, Some(Life::Live), "round {round}");
    }
}

async fn replaced_by(backend: &Backend, uid: &str) -> Option<String> {
    let row = backend.store.get_by_id(&WIDGET, &uid.into()).await;
    let row = row.expect("readable").expect("stored");
    let rows = backend
        .store
        .rows_of_name(&WIDGET, "shop", &row.object.metadata.name)
        .await;
    let rows = rows.expect("readable");
    let listed = rows.iter().find(|one| *one.object.metadata.uid.0 == *uid);
    assert_eq!(listed.expect("listed").replaced_by, row.replaced_by);
    row.replaced_by.map(|by| by.to_string())
}

async fn an_archived_object_whose_name_is_taken_says_by_whom_until_it_is_purged(backend: Backend) {
    for (uid, name) in [("u1", "a"), ("u3", "b")] {
        let stored = widget(uid, name, 10).archived();
        backend.write(stored, at(0)).await;
    }
    let batch = [widget("u2", "a", 20).live(), widget("u9", "z", 21).live()];
    let written = backend.write_all(&batch, at(1)).await;
    assert_eq!(written, [Written::Replacing, Written::Inserted]);
    let late = backend.write(widget("u4", "b", 9).archived(), at(1)).await;
    assert_eq!(
        late,
        Written::Inserted,
        "of the two the one that came late is the older one"
    );
    assert_eq!(replaced_by(&backend, "u1").await.as_deref(), Some("u2"));
    assert_eq!(replaced_by(&backend, "u4").await.as_deref(), Some("u3"));
    assert_eq!(replaced_by(&backend, "u3").await, None);
    let again = backend.write(widget("u2", "a", 20).live(), at(2)).await;
    assert_eq!(again, Written::Unchanged, "said once");

    let deleted = Gone {
        deleted: true,
        ..Gone::default()
    };
    let uids = ["u1", "u4"].map(Uid::from);
    let removed = backend
        .store
        .remove(&WIDGET, &deleted, &uids, at(9))
        .await
        .expect("removed");
    assert_eq!(removed.len(), 2);
    let state = backend.store.state(&WIDGET, "replaced/u1").await.expect("readable");
    assert_eq!(state, None, "nothing is left of it");
}

async fn a_name_that_was_free_and_an_object_that_came_back_replace_nobody(backend: Backend) {
    for (uid, name) in [("u1", "a"), ("u2", "b"), ("u3", "c")] {
        let stored = widget(uid, name, 10).archived();
        backend.write(stored, at(0)).await;
    }
    backend.write(soft_delete("u1"), at(1)).await;
    let batch = [
        widget("n1", "a", 20).live(),
        widget("n2", "b", 21).annotation("test/RestoredFrom", "u2").live(),
    ];
    let written = backend.write_all(&batch, at(1)).await;
    assert_eq!(written, [Written::Inserted; 2]);
    assert_eq!(backend.life("u2").await, Some(Life::Deleted));
    for uid in ["u1", "u2"] {
        assert_eq!(replaced_by(&backend, uid).await, None, "{uid}");
    }
    // Whom the cluster shows again, and who is deleted then, was deleted.
    backend.write(widget("n3", "c", 22).live(), at(2)).await;
    assert_eq!(replaced_by(&backend, "u3").await.as_deref(), Some("n3"));
    backend.write(soft_delete("n3"), at(3)).await;
    backend
        .write(widget("u3", "c", 30).store(Life::Live, Revive::FromAny), at(4))
        .await;
    assert_eq!(replaced_by(&backend, "u3").await, None);
    backend.write(widget("u3", "c", 30).archived(), at(5)).await;
    backend.write(soft_delete("u3"), at(6)).await;
    assert_eq!(replaced_by(&backend, "u3").await, None);
}

async fn a_version_of_sqls_own_never_closes_the_live_row_of_a_new_object(backend: Backend) {
    let old = widget("u1", "a", 10);
    backend.write(old.archived(), at(0)).await;
    let wanted = read(&old.clone().label("team", "risk"), ResourceVersion(10));
    let changed = update(&backend, &wanted, at(1)).await.expect("changed");
    assert!(RowVersion::unpack(changed.metadata.resource_version).is_direct());
    backend.write(widget("u2", "a", 20).live(), at(2)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(backend.life("u2").await, Some(Life::Live));
    let found = backend.store.get_by_name(&WIDGET, "shop", "a").await;
    let found = found.expect("readable").expect("stored");
    assert_eq!(&*found.object.metadata.uid.0, "u2");
    // At the time at which the old one was closed.
    backend.write(soft_delete("u2"), at(2)).await;
    let rows = backend
        .store
        .rows_of_name(&WIDGET, "shop", "a")
        .await
        .expect("readable");
    assert_eq!(&*rows[0].object.metadata.uid.0, "u2", "the newest comes first");
    let name = ("shop".to_owned(), "a".to_owned());
    let newest = backend.store.newest_by_names(&WIDGET, &[name]).await.expect("readable");
    assert_eq!(&*newest[0].object.metadata.uid.0, "u2", "as each by itself");
}
