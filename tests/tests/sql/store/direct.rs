//! Changes to archived objects: they reach everything that SQL holds, of many that read the
//! same version one wins, and what may not be changed is refused with the reason.

use futures::future::join_all;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};
use kindex_store::{AsOf, Deletion, DirectError, RowWrite, StoreError};
use serde_json::json;

use super::backend::Backend;
use super::widget::{KEEPSAKE, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    a_change_reaches_everything_that_sql_holds_of_the_object,
    of_many_who_read_the_same_version_one_wins,
    every_change_of_many_writers_counts_once,
    a_row_that_is_not_sqls_alone_is_refused_with_the_reason,
    what_belongs_to_the_object_for_life_stays,
    what_changes_nothing_is_not_written,
    a_deletion_has_the_same_lock,
    a_history_has_what_was_changed_in_sql_alone,
    what_is_archived_can_be_changed_after_its_cluster_came_back_from_a_backup,
);

/// Archived, with version 10.
pub(super) fn archived_object(uid: &str) -> Widget {
    widget(uid, uid, 10)
        .label("team", "fraud")
        .annotation("note", "first")
        .spec(json!({"group": "red", "order": 1}))
}

pub(super) async fn evict(backend: &Backend, object: &Widget) {
    backend.write(object.archived(), at(0)).await;
}

/// What a caller has in hand that read the object in a version.
pub(super) fn read(object: &Widget, version: ResourceVersion) -> Object {
    let text = Widget {
        version: version.0,
        ..object.clone()
    };
    Object::parse_str(&text.text()).expect("an object")
}

/// The version of the cluster that the object's followed, where SQL gave it.
fn followed(object: &Object) -> Option<ResourceVersion> {
    let version = RowVersion::unpack(object.metadata.resource_version);
    version.is_direct().then(|| version.of_cluster())
}

pub(super) async fn update(backend: &Backend, wanted: &Object, now: Timestamp) -> Result<Object, DirectError> {
    reported(backend.store.update_direct(&WIDGET, wanted, now).await)
}

fn reported<T>(answer: Result<T, StoreError>) -> Result<T, DirectError> {
    answer.map_err(|error| match error {
        StoreError::Direct { source, .. } => source,
        other => panic!("{other:?}"),
    })
}

pub(super) async fn stored(backend: &Backend, kind: &Kind, uid: &str) -> kindex_query::Stored {
    let found = backend.store.get_by_id(kind, &Uid::from(uid)).await;
    found.expect("readable").expect("stored")
}

/// Everything that SQL holds of a row is what its text says.
pub(super) async fn expect_whole(backend: &Backend, uid: &str) {
    let images = backend.store.row_images(&WIDGET, &[Uid::from(uid)]).await;
    let image = images.expect("readable").pop().expect("there is a row");
    let object = Object::parse_str(&image.text).expect("an object");
    let version = Version::project(&WIDGET, object);
    let metadata = &version.object.metadata;
    assert_eq!(Ok(image.res_version), i64::try_from(metadata.resource_version.0));
    assert_eq!(image.columns, version.columns);
    assert_eq!(image.proto, version.proto);
    assert_eq!(image.content_hash, Some(version.hash.to_bytes().to_vec()));
    for (rows, map) in [
        (&image.labels, &metadata.labels),
        (&image.annotations, &metadata.annotations),
    ] {
        let expected: Vec<_> = map
            .iter()
            .map(|(key, value)| (key.clone(), Some(value.clone())))
            .collect();
        assert_eq!(*rows, expected);
    }
}

async fn a_change_reaches_everything_that_sql_holds_of_the_object(backend: Backend) {
    let first = archived_object("u1");
    evict(&backend, &first).await;
    let mut wanted = first
        .clone()
        .label("tier", "gold")
        .spec(json!({"group": "blue", "order": 2}));
    wanted.labels.remove("team");
    wanted.annotations.clear();
    let answer = update(&backend, &read(&wanted, ResourceVersion(10)), at(5)).await;
    let changed = answer.expect("changed");
    let version = changed.metadata.resource_version;
    assert!(version > ResourceVersion(10));
    assert_eq!(followed(&changed), Some(ResourceVersion(10)));

    let row = stored(&backend, &WIDGET, "u1").await;
    assert_eq!(row.object.text(), changed.text());
    assert_eq!(
        row.object.text(),
        read(&wanted, version).text(),
        "and nothing else changed"
    );
    assert_eq!(
        (row.life, row.update_time, row.evicted_time),
        (Life::Archived, Some(at(5)), Some(at(0)))
    );
    expect_whole(&backend, "u1").await;
    let other = backend.store.row_images(&WIDGET, &[Uid::from("u2")]).await;
    assert!(other.expect("readable").is_empty());

    let again = update(&backend, &read(&first, version), at(6))
        .await
        .expect("changed back");
    assert!(again.metadata.resource_version > version);
    assert_eq!(followed(&again), Some(ResourceVersion(10)));
    expect_whole(&backend, "u1").await;
}

async fn of_many_who_read_the_same_version_one_wins(backend: Backend) {
    for round in 0..5 {
        let uid = format!("u{round}");
        evict(&backend, &archived_object(&uid)).await;
        let attempt = |number: usize| {
            let wanted = archived_object(&uid).label("writer", &number.to_string());
            let backend = &backend;
            async move { update(backend, &read(&wanted, ResourceVersion(10)), at(1)).await }
        };
        let answers = join_all((0..8).map(attempt)).await;
        let winners: Vec<&Object> = answers.iter().flatten().collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        let version = winners[0].metadata.resource_version;
        assert_eq!(stored(&backend, &WIDGET, &uid).await.object.text(), winners[0].text());
        for error in answers.iter().flat_map(|answer| answer.as_ref().err()) {
            let conflict = DirectError::Conflict {
                given: ResourceVersion(10),
                stored: version,
            };
            assert_eq!(*error, conflict);
            let words = format!("is now at version {version}, but the change is based on version 10: read it again");
            assert!(error.to_string().starts_with(&words), "{error}");
        }
        expect_whole(&backend, &uid).await;
    }
}

/// Each writer reads, changes and writes until its change is taken, as a client of Kubernetes does.
async fn every_change_of_many_writers_counts_once(backend: Backend) {
    const WRITERS: usize = 6;
    const CHANGES: usize = 5;
    evict(&backend, &archived_object("u1")).await;
    let writer = async |number: usize| {
        for change in 0..CHANGES {
            loop {
                let held = stored(&backend, &WIDGET, "u1").await.object;
                let mut wanted: serde_json::Value = serde_json::from_str(held.text()).expect("JSON");
                wanted["metadata"]["labels"][format!("w{number}-{change}")] = "1".into();
                let wanted = Object::parse_str(&wanted.to_string()).expect("an object");
                match update(&backend, &wanted, at(1)).await {
                    Ok(_) => break,
                    Err(DirectError::Conflict { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    };
    join_all((0..WRITERS).map(writer)).await;
    let labels = stored(&backend, &WIDGET, "u1").await.object.metadata.labels.len();
    assert_eq!(labels, 1 + WRITERS * CHANGES);
    expect_whole(&backend, "u1").await;
}

async fn a_row_that_is_not_sqls_alone_is_refused_with_the_reason(backend: Backend) {
    let object = archived_object("u1");
    let wanted = read(&object.clone().label("a", "b"), ResourceVersion(10));
    assert_eq!(
        update(&backend, &wanted, at(1)).await.map(drop),
        Err(DirectError::Missing)
    );
    backend.write(object.live(), at(0)).await;
    let live = update(&backend, &wanted, at(1)).await.expect_err("live");
    assert_eq!(live, DirectError::Live);
    assert!(live.to_string().contains("change it there"), "{live}");
    backend.write(soft_delete("u1"), at(2)).await;
    assert_eq!(
        update(&backend, &wanted, at(3)).await.map(drop),
        Err(DirectError::Deleted(at(2)))
    );
    assert_eq!(stored(&backend, &WIDGET, "u1").await.object.text(), object.text());
}

async fn what_belongs_to_the_object_for_life_stays(backend: Backend) {
    let object = archived_object("u1");
    evict(&backend, &object).await;
    for (field, value, stored) in [
        ("/metadata/namespace", "attic", "shop"),
        ("/metadata/name", "u2", "u1"),
        (
            "/metadata/creationTimestamp",
            "2025-01-01T00:00:00Z",
            "2024-02-29T12:34:56Z",
        ),
        ("/kind", "Keepsake", "Widget"),
        ("/apiVersion", "other/v1", "test.kindex/v1"),
    ] {
        let mut wanted: serde_json::Value = serde_json::from_str(&object.text()).expect("JSON");
        *wanted.pointer_mut(field).expect("a field") = value.into();
        let wanted = Object::parse_str(&wanted.to_string()).expect("an object");
        let refused = update(&backend, &wanted, at(1)).await.expect_err(field);
        let path = field[1..].replace('/', ".");
        assert_eq!(
            refused.to_string(),
            format!("{path} may not change: it is {stored}, not {value}")
        );
    }
    let mut leaving = object.clone();
    leaving.deletion = Some("2026-01-01T00:00:00Z".to_owned());
    let refused = update(&backend, &read(&leaving, ResourceVersion(10)), at(1))
        .await
        .expect_err("leaving");
    assert!(
        matches!(
            refused,
            DirectError::Unchangeable {
                field: "metadata.deletionTimestamp",
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(stored(&backend, &WIDGET, "u1").await.object.text(), object.text());

    // The deletion by which an object left the cluster is over.
    let left = Widget {
        deletion: Some("2026-01-01T00:00:00Z".to_owned()),
        ..archived_object("u3")
    };
    evict(&backend, &left).await;
    let wanted = read(&archived_object("u3").label("a", "b"), ResourceVersion(10));
    update(&backend, &wanted, at(1)).await.expect("it may be left out");
    expect_whole(&backend, "u3").await;

    let large = Widget {
        version: 1 << 44,
        ..archived_object("u2")
    };
    evict(&backend, &large).await;
    let refused = update(&backend, &read(&large, ResourceVersion(1 << 44)), at(1)).await;
    assert_eq!(refused.map(drop), Err(DirectError::Exhausted(ResourceVersion(1 << 44))));
}

async fn what_changes_nothing_is_not_written(backend: Backend) {
    let object = archived_object("u1");
    evict(&backend, &object).await;
    let answer = update(&backend, &read(&object, ResourceVersion(10)), at(9)).await;
    assert_eq!(answer.expect("fine").metadata.resource_version, ResourceVersion(10));
    assert_eq!(stored(&backend, &WIDGET, "u1").await.update_time, Some(at(0)));
}

async fn a_deletion_has_the_same_lock(backend: Backend) {
    let delete = async |uid: &str, version: Option<u64>, second| {
        let uid = Uid::from(uid);
        let version = version.map(ResourceVersion);
        reported(backend.store.delete_direct(&WIDGET, &uid, version, at(second)).await)
    };
    assert_eq!(delete("u1", None, 0).await, Err(DirectError::Missing));
    backend.write(archived_object("u1").live(), at(0)).await;
    assert_eq!(delete("u1", None, 0).await, Err(DirectError::Live));
    evict(&backend, &archived_object("u1")).await;
    let stale = delete("u1", Some(9), 1).await;
    assert!(matches!(stale, Err(DirectError::Conflict { .. })), "{stale:?}");
    assert_eq!(delete("u1", Some(10), 2).await, Ok(Deletion::Done));
    assert_eq!(delete("u1", Some(10), 3).await, Err(DirectError::Deleted(at(2))));
    let row = stored(&backend, &WIDGET, "u1").await;
    assert_eq!(
        (row.life, row.delete_time, row.evicted_time),
        (Life::Deleted, Some(at(2)), Some(at(0)))
    );

    // A change and a deletion of the same version: one of them is told.
    let uids: Vec<String> = (10..18).map(|number| format!("u{number}")).collect();
    let race = async |uid: &String| {
        evict(&backend, &archived_object(uid)).await;
        let wanted = read(&archived_object(uid).label("mine", "yes"), ResourceVersion(10));
        let (updated, deleted) = futures::join!(update(&backend, &wanted, at(4)), delete(uid, Some(10), 4));
        assert!(updated.is_ok() != deleted.is_ok(), "{uid}: {updated:?}, {deleted:?}");
        expect_whole(&backend, uid).await;
    };
    join_all(uids.iter().map(race)).await;
}

/// The cluster lost the versions of these rows, and the ingester forgot them: who read one has that of its text.
async fn what_is_archived_can_be_changed_after_its_cluster_came_back_from_a_backup(backend: Backend) {
    for uid in ["u1", "u2", "u3"] {
        evict(&backend, &archived_object(uid)).await;
    }
    let uids = ["u1", "u2", "u3"].map(Uid::from);
    backend.store.rewind(&WIDGET, &uids, at(1)).await.expect("rewound");
    let version = ResourceVersion(10);
    for given in [ResourceVersion(9), ResourceVersion(11)] {
        let stale = read(&archived_object("u1").label("team", "risk"), given);
        let refused = update(&backend, &stale, at(2)).await;
        let conflict = DirectError::Conflict { given, stored: version };
        assert_eq!(refused.expect_err("stale"), conflict);
    }
    let wanted = read(&archived_object("u1").label("team", "risk"), version);
    let changed = update(&backend, &wanted, at(2)).await.expect("changed");
    assert_eq!(followed(&changed), Some(version));
    expect_whole(&backend, "u1").await;
    let again = read(
        &archived_object("u1").label("team", "pay"),
        changed.metadata.resource_version,
    );
    update(&backend, &again, at(3)).await.expect("and once more");

    let delete =
        async |uid: &str, read| reported(backend.store.delete_direct(&WIDGET, &Uid::from(uid), read, at(4)).await);
    delete("u2", Some(version)).await.expect("deleted");
    delete("u3", None).await.expect("deleted");
    assert_eq!(backend.life("u2").await, Some(Life::Deleted));
}

async fn a_history_has_what_was_changed_in_sql_alone(backend: Backend) {
    let keepsake = |object: &Widget, version| {
        let text = read(object, version).text().replace("\"Widget\"", "\"Keepsake\"");
        Object::parse_str(&text).expect("an object")
    };
    let (mut wanted, mut version) = (archived_object("u1"), ResourceVersion(10));
    let archived = RowWrite::Store {
        version: Version::project(&KEEPSAKE, keepsake(&wanted, version)),
        life: Life::Archived,
        revive: Revive::Never,
    };
    let written = backend.store.write(&KEEPSAKE, &[archived], at(0)).await;
    written.expect("written");
    let mut texts = vec![(keepsake(&wanted, version).text().to_owned(), at(0))];
    for (second, tier) in [(5, "gold"), (7, "silver")] {
        wanted = wanted.label("tier", tier);
        let object = keepsake(&wanted, version);
        let changed = backend.store.update_direct(&KEEPSAKE, &object, at(second)).await;
        let changed = changed.expect("changed");
        version = changed.metadata.resource_version;
        texts.push((changed.text().to_owned(), at(second)));
    }
    let uid = Uid::from("u1");
    let deleted = backend.store.delete_direct(&KEEPSAKE, &uid, Some(version), at(9)).await;
    deleted.expect("deleted");

    let history = backend
        .store
        .history(&KEEPSAKE, &uid, None, 10)
        .await
        .expect("readable");
    let kept = history
        .iter()
        .rev()
        .map(|past| (past.object.text().to_owned(), past.seen));
    assert_eq!(kept.collect::<Vec<_>>(), texts);
    for ((text, _), second) in texts.iter().zip([4, 6, 8]) {
        let found = backend.store.version_at(&KEEPSAKE, "shop", "u1", at(second)).await;
        match found.expect("readable") {
            AsOf::Stored(stored) => assert_eq!(stored.object.text(), text, "{second}"),
            other => panic!("{second}: {other:?}"),
        }
    }
}
