//! Events of the cluster for an object that was changed in SQL: late words change nothing, an
//! object that lives on takes its row back, and the past remembers both.

use kindex_decide::row::{Row, RowText};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::{Life, Revive};
use kindex_store::{AsOf, DirectError, RowWrite, Written};

use super::backend::Backend;
use super::direct::{archived_object, evict, expect_whole, read, stored, update};
use super::widget::{KEEPSAKE, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    nothing_that_leaves_the_cluster_undoes_a_change,
    an_object_that_lives_on_takes_its_row_back,
    a_new_object_of_the_name_closes_the_changed_row,
    a_rewound_row_is_changed_by_the_version_of_its_text,
    the_past_shows_every_change_at_its_time,
);

async fn nothing_that_leaves_the_cluster_undoes_a_change(backend: Backend) {
    let object = archived_object("u1");
    evict(&backend, &object).await;
    let wanted = object.clone().label("mine", "yes");
    let changed = update(&backend, &read(&wanted, ResourceVersion(10)), at(1))
        .await
        .expect("changed");
    let mut leaving = Widget {
        version: 11,
        ..object.clone()
    };
    leaving.deletion = Some("2026-01-01T00:00:00Z".to_owned());
    let older = Widget {
        version: 9,
        ..object.clone()
    };
    for (late, written) in [
        (older.archived(), Written::Superseded),
        (older.store(Life::Live, Revive::Never), Written::Superseded),
        (object.archived(), Written::Unchanged),
        (leaving.archived(), Written::Unchanged),
    ] {
        assert_eq!(backend.write(late, at(2)).await, written);
        assert_eq!(stored(&backend, &WIDGET, "u1").await.object.text(), changed.text());
    }
    // What the ingester decides by is the cluster's version alone.
    let state = backend.state("u1").await.expect("a row");
    assert_eq!(state.res_version.pack(), changed.metadata.resource_version);
    let row = Row::beside(&state, None);
    assert_eq!(
        (row.cluster_version(), row.life, row.text),
        (ResourceVersion(10), Life::Archived, RowText::Trusted)
    );
    expect_whole(&backend, "u1").await;
}

async fn an_object_that_lives_on_takes_its_row_back(backend: Backend) {
    for (number, (version, life)) in [
        (10, Life::Live),
        (11, Life::Live),
        (11, Life::Archived),
        (11, Life::Deleted),
    ]
    .into_iter()
    .enumerate()
    {
        let uid = format!("u{number}");
        let object = archived_object(&uid);
        evict(&backend, &object).await;
        let wanted = object.clone().label("mine", "yes");
        update(&backend, &read(&wanted, ResourceVersion(10)), at(1))
            .await
            .expect("changed");
        let cluster = Widget {
            version,
            ..object.clone().label("theirs", "yes")
        };
        // It was archived in the version that it is to be live in.
        let mut revive = Revive::Never;
        if version == 10 {
            revive = Revive::From(Life::Archived);
            let unseen = backend.write(cluster.store(life, Revive::Never), at(2)).await;
            assert_eq!(unseen, Written::Superseded, "nobody has looked");
        }
        let taken_back = backend.write(cluster.store(life, revive), at(2)).await;
        assert_eq!(taken_back, Written::Updated);
        let row = stored(&backend, &WIDGET, &uid).await;
        assert_eq!((row.object.text(), row.life), (&*cluster.text(), life));
        expect_whole(&backend, &uid).await;
    }
}

async fn a_new_object_of_the_name_closes_the_changed_row(backend: Backend) {
    let old = widget("old", "a", 10);
    evict(&backend, &old).await;
    let wanted = read(&old.clone().label("mine", "yes"), ResourceVersion(10));
    update(&backend, &wanted, at(1)).await.expect("changed");
    backend.write(widget("new", "a", 11).live(), at(2)).await;
    assert_eq!(backend.life("old").await, Some(Life::Deleted));
    assert_eq!(backend.life("new").await, Some(Life::Live));
    let named = backend.store.get_by_name(&WIDGET, "shop", "a").await.expect("readable");
    assert_eq!(&*named.expect("stored").object.metadata.uid.0, "new");
    backend.write(soft_delete("new"), at(3)).await;
    let rows = backend
        .store
        .rows_of_name(&WIDGET, "shop", "a")
        .await
        .expect("readable");
    let uids: Vec<&str> = rows.iter().map(|row| &*row.object.metadata.uid.0).collect();
    assert_eq!(uids, ["new", "old"], "the newest first");
}

async fn a_rewound_row_is_changed_by_the_version_of_its_text(backend: Backend) {
    let object = archived_object("u1");
    evict(&backend, &object).await;
    backend
        .store
        .rewind(&WIDGET, &[Uid::from("u1")], at(1))
        .await
        .expect("rewound");
    let wanted = object.clone().label("mine", "yes");
    let stale = update(&backend, &read(&wanted, ResourceVersion(9)), at(1)).await;
    assert!(
        matches!(
            stale,
            Err(DirectError::Conflict {
                stored: ResourceVersion(10),
                ..
            })
        ),
        "{stale:?}"
    );
    let changed = update(&backend, &read(&wanted, ResourceVersion(10)), at(1))
        .await
        .expect("changed");
    let second = update(&backend, &read(&object, ResourceVersion(10)), at(2)).await;
    assert!(matches!(second, Err(DirectError::Conflict { .. })), "{second:?}");
    let state = backend.state("u1").await.expect("a row");
    assert_eq!(state.res_version.pack(), changed.metadata.resource_version);
}

async fn the_past_shows_every_change_at_its_time(backend: Backend) {
    let store = &*backend.store;
    let write = async |writes: &[RowWrite], second| store.write(&KEEPSAKE, writes, at(second)).await.expect("written");
    let change = async |object: Object, second: i64| {
        let mut text: serde_json::Value = serde_json::from_str(object.text()).expect("JSON");
        text["kind"] = "Keepsake".into();
        text["spec"]["order"] = second.into();
        let wanted = Object::parse_str(&text.to_string()).expect("an object");
        store
            .update_direct(&KEEPSAKE, &wanted, at(second))
            .await
            .expect("changed")
    };
    let object = archived_object("u1");
    write(&[object.archived()], 10).await;
    let leaving = Widget {
        version: 11,
        ..object.clone()
    };
    let record = RowWrite::Record {
        object: leaving.project().object.clone(),
        seen: at(11),
    };
    write(&[record], 11).await;
    let first = change(object.project().object.clone(), 20).await;
    let second = change(first.clone(), 30).await;
    let versions = async || {
        let past = store
            .history(&KEEPSAKE, &Uid::from("u1"), None, 100)
            .await
            .expect("readable");
        let versions = past.iter().map(|past| past.object.metadata.resource_version);
        versions.collect::<Vec<_>>()
    };
    let [one, two] = [&first, &second].map(|object| object.metadata.resource_version);
    assert_eq!(versions().await, [two, one, ResourceVersion(11), ResourceVersion(10)]);
    let stood = async |second| match store
        .version_at(&KEEPSAKE, "shop", "u1", at(second))
        .await
        .expect("readable")
    {
        AsOf::Stored(stored) => stored.object.metadata.resource_version,
        other => panic!("{other:?}"),
    };
    let ten = ResourceVersion(10);
    for (second, version) in [(10, ten), (15, ten), (20, one), (29, one), (30, two), (99, two)] {
        assert_eq!(stood(second).await, version, "{second}");
    }
    // The cluster takes it back, with a version that is smaller and later.
    let back = Widget { version: 50, ..object };
    write(&[back.live()], 100).await;
    assert_eq!(stood(99).await, two);
    assert_eq!(stood(100).await, ResourceVersion(50));
    assert_eq!(versions().await[..2], [ResourceVersion(50), two]);
}
