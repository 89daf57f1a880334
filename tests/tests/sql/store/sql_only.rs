//! Objects of kinds that no cluster has: of two that want one name or replace one version one wins, on every engine and
//! on two nodes of a cluster, and their versions are the numbers of their commits.

use std::collections::BTreeSet;

use futures::future::join_all;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, ResourceVersion};
use kindex_query::Life;
use kindex_store::{Mark, SqlOnlyChange, SqlOnlyPage, SqlOnlyWrite, SqlOnlyWritten};
use serde_json::json;

use super::backend::Backend;
use super::direct::{expect_whole, stored};
use super::widget::{KEEPSAKE, PARTS, REGISTRY, Widget, at, widget};

scenarios!(
    of_many_that_create_one_name_one_is_done,
    of_many_that_replace_one_version_one_is_done,
    all_of_many_that_create_other_names_are_done_and_numbered,
    a_write_reaches_everything_that_sql_holds,
    what_is_refused_leaves_no_gap,
    a_name_is_free_once_its_object_is_gone,
    each_change_is_told_with_what_it_replaced,
    pages_come_in_order_of_namespace_and_name,
    a_history_has_every_version,
    who_follows_the_outbox_sees_each_change,
);

static ALONE: Kind = Kind {
    cluster: false,
    ..PARTS
};

/// The same with events.
static NOTICED: Kind = Kind { events: true, ..ALONE };
static OF_NOTICED: Registry = Registry {
    kinds: &[&NOTICED, &KEEPSAKE],
    ..REGISTRY
};

fn object(uid: &str, name: &str) -> Widget {
    widget(uid, name, 0)
}

fn read(object: &Widget) -> Object {
    Object::parse_str(&object.text()).expect("an object")
}

async fn write(backend: &Backend, object: &Widget, write: SqlOnlyWrite) -> SqlOnlyWritten {
    let (store, object) = (&backend.store, read(object));
    let write = async || store.write_sql_only(&ALONE, &object, write, at(1)).await;
    backend.answer(write).await.expect("the database answers")
}

async fn done(backend: &Backend, object: &Widget, intent: SqlOnlyWrite) -> ResourceVersion {
    match write(backend, object, intent).await {
        SqlOnlyWritten::Done(object) => object.metadata.resource_version,
        other => panic!("{other:?}"),
    }
}

async fn create(backend: &Backend, object: &Widget) -> ResourceVersion {
    done(backend, object, SqlOnlyWrite::Create).await
}

async fn changes(backend: &Backend, after: u64) -> Vec<SqlOnlyChange> {
    let (store, after) = (&backend.store, ResourceVersion(after));
    let changes = backend.answer(async || store.sql_only_changes(&ALONE, after, 100).await);
    changes.await.expect("readable").expect("kept")
}

/// The versions of the changes, in their order.
async fn numbers(backend: &Backend, after: u64) -> Vec<u64> {
    let changes = changes(backend, after).await;
    changes.iter().map(|change| change.version.0).collect()
}

/// The uid and the version of what has a name.
async fn named(backend: &Backend, name: &str) -> Option<(String, ResourceVersion)> {
    let found = backend.answer(async || backend.store.get_by_name(&ALONE, "shop", name).await);
    let found = found.await.expect("readable").map(|row| row.object);
    found.map(|object| (object.metadata.uid.to_string(), object.metadata.resource_version))
}

/// Makes all writes at once, on the two nodes in turn: one of them is done, and all others are refused in the way that
/// is said. Gives back the uid and the version of the one.
async fn written_at_once(
    nodes: [&Backend; 2],
    objects: &[Widget],
    intent: SqlOnlyWrite,
    is_refused: fn(&SqlOnlyWritten) -> bool,
) -> (String, ResourceVersion) {
    let each = objects.iter().zip(nodes.into_iter().cycle());
    let written = join_all(each.map(|(object, node)| write(node, object, intent))).await;
    let refused = written.iter().filter(|one| is_refused(one)).count();
    assert_eq!(refused, objects.len() - 1, "{written:?}");
    let done = written.iter().find_map(|one| match one {
        SqlOnlyWritten::Done(object) => Some(&object.metadata),
        SqlOnlyWritten::Exists | SqlOnlyWritten::Changed => None,
    });
    let done = done.unwrap_or_else(|| panic!("one is written: {written:?}"));
    (done.uid.to_string(), done.resource_version)
}

async fn of_many_that_create_one_name_one_is_done(backend: Backend) {
    one_creates_each_name(&backend, &backend, 5).await;
}

async fn of_many_that_replace_one_version_one_is_done(backend: Backend) {
    one_replaces_each_version(&backend, &backend, 5).await;
}

async fn all_of_many_that_create_other_names_are_done_and_numbered(backend: Backend) {
    all_are_numbered(&backend, &backend).await;
}

/// On one server, or on two nodes of a cluster.
pub(super) async fn one_creates_each_name(one: &Backend, two: &Backend, rounds: u32) {
    let nodes = [one, two];
    for round in 0..rounds {
        let name = format!("n{round}");
        let objects: Vec<Widget> = (0..6).map(|n| object(&format!("{round}-{n}"), &name)).collect();
        let exists = |written: &SqlOnlyWritten| matches!(written, SqlOnlyWritten::Exists);
        let done = written_at_once(nodes, &objects, SqlOnlyWrite::Create, exists).await;
        for node in nodes {
            node.expect(&name, &Some(done.clone()), async || named(node, &name).await)
                .await;
        }
    }
}

/// As [`one_creates_each_name`].
pub(super) async fn one_replaces_each_version(one: &Backend, two: &Backend, rounds: u32) {
    let nodes = [one, two];
    for round in 0..rounds {
        let (uid, name) = (format!("u{round}"), format!("a{round}"));
        let read = create(one, &object(&uid, &name)).await;
        let created = Some((uid.clone(), read));
        two.expect(&name, &created, async || named(two, &name).await).await;
        let others: Vec<Widget> = (0..6).map(|n| object(&uid, &name).spec(json!({"order": n}))).collect();
        let changed = |written: &SqlOnlyWritten| matches!(written, SqlOnlyWritten::Changed);
        let done = written_at_once(nodes, &others, SqlOnlyWrite::Replace { read }, changed).await;
        for node in nodes {
            let removed = write(node, &others[0], SqlOnlyWrite::Remove { read }).await;
            assert!(matches!(removed, SqlOnlyWritten::Changed), "{removed:?}");
            node.expect(&name, &Some(done.clone()), async || named(node, &name).await)
                .await;
        }
    }
}

/// As [`one_creates_each_name`].
pub(super) async fn all_are_numbered(one: &Backend, two: &Backend) {
    let nodes = [one, two];
    let objects: Vec<Widget> = (0..12).map(|n| object(&format!("u{n}"), &format!("a{n}"))).collect();
    let each = objects.iter().zip(nodes.into_iter().cycle());
    let versions = join_all(each.map(|(object, node)| create(node, object))).await;
    let versions: BTreeSet<u64> = versions.into_iter().map(|version| version.0).collect();
    assert_eq!(versions, (2..14).collect());
    let all: Vec<u64> = (2..14).collect();
    for node in nodes {
        node.expect("the changes", &all, async || numbers(node, 1).await).await;
    }
}

async fn a_write_reaches_everything_that_sql_holds(backend: Backend) {
    let first = object("u", "a").label("team", "fraud").annotation("note", "first");
    let version = create(&backend, &first.spec(json!({"group": "red", "order": 1}))).await;
    expect_whole(&backend, "u").await;
    assert_eq!(backend.life("u").await, Some(Life::Live));
    let second = object("u", "a")
        .label("team", "risk")
        .spec(json!({"group": "blue", "order": 2}));
    let next = done(&backend, &second, SqlOnlyWrite::Replace { read: version }).await;
    assert!(next > version);
    expect_whole(&backend, "u").await;
    let row = stored(&backend, &ALONE, "u").await;
    assert_eq!(row.object.metadata.labels["team"], "risk");
    assert_eq!(row.object.metadata.resource_version, next);
    done(&backend, &second, SqlOnlyWrite::Remove { read: next }).await;
    assert_eq!(backend.life("u").await, Some(Life::Deleted));
}

async fn what_is_refused_leaves_no_gap(backend: Backend) {
    create(&backend, &object("u", "a")).await;
    assert!(matches!(
        write(&backend, &object("v", "a"), SqlOnlyWrite::Create).await,
        SqlOnlyWritten::Exists
    ));
    let stale = SqlOnlyWrite::Replace {
        read: ResourceVersion(1),
    };
    assert!(matches!(
        write(&backend, &object("u", "a"), stale).await,
        SqlOnlyWritten::Changed
    ));
    let gone = SqlOnlyWrite::Remove {
        read: ResourceVersion(2),
    };
    assert!(matches!(
        write(&backend, &object("w", "w"), gone).await,
        SqlOnlyWritten::Changed
    ));
    assert_eq!(create(&backend, &object("b", "b")).await, ResourceVersion(3));
    assert_eq!(changes(&backend, 1).await.len(), 2);
}

async fn a_name_is_free_once_its_object_is_gone(backend: Backend) {
    let version = create(&backend, &object("u", "a")).await;
    done(&backend, &object("u", "a"), SqlOnlyWrite::Remove { read: version }).await;
    create(&backend, &object("v", "a")).await;
    let found = backend.store.get_by_name(&ALONE, "shop", "a").await.expect("readable");
    assert_eq!(
        found.map(|row| row.object.metadata.uid.to_string()),
        Some("v".to_owned())
    );
}

async fn each_change_is_told_with_what_it_replaced(backend: Backend) {
    let created = create(&backend, &object("u", "a").label("n", "1")).await;
    let replace = SqlOnlyWrite::Replace { read: created };
    let changed = done(&backend, &object("u", "a").label("n", "2"), replace).await;
    let remove = SqlOnlyWrite::Remove { read: changed };
    done(&backend, &object("u", "a").label("n", "2"), remove).await;
    let label = |object: &Object| object.metadata.labels["n"].clone();
    let received = changes(&backend, 1).await;
    let received: Vec<_> = received
        .iter()
        .map(|change| (change.before.as_ref().map(label), label(&change.object), change.deleted))
        .collect();
    let one = |before: Option<&str>, after: &str, deleted| (before.map(str::to_owned), after.to_owned(), deleted);
    assert_eq!(
        received,
        [
            one(None, "1", false),
            one(Some("1"), "2", false),
            one(Some("2"), "2", true)
        ]
    );
    assert_eq!(changes(&backend, changed.0).await.len(), 1);
}

async fn pages_come_in_order_of_namespace_and_name(backend: Backend) {
    for (uid, namespace, name) in [
        ("1", "b", "a"),
        ("2", "a", "z"),
        ("3", "a", "b"),
        ("4", "c", "a"),
        ("5", "a", "c"),
    ] {
        let text = object(uid, name)
            .text()
            .replace("\"shop\"", &format!("\"{namespace}\""));
        let object = Object::parse_str(&text).expect("an object");
        let written = backend
            .store
            .write_sql_only(&ALONE, &object, SqlOnlyWrite::Create, at(1))
            .await;
        assert!(matches!(written, Ok(SqlOnlyWritten::Done(_))));
    }
    let page = async |namespace, after, limit| {
        let page = SqlOnlyPage {
            namespace,
            after,
            limit,
        };
        let rows = backend.store.page_sql_only(&ALONE, page).await.expect("readable");
        let names = rows.iter().map(|row| row.object.metadata.uid.to_string());
        (
            names.collect::<Vec<_>>().concat(),
            backend.store.count_sql_only(&ALONE, page).await.expect("readable"),
        )
    };
    assert_eq!(page(None, ("", ""), 3).await, ("352".to_owned(), 5));
    assert_eq!(page(None, ("a", "z"), 3).await, ("14".to_owned(), 2));
    assert_eq!(page(Some("a"), ("a", "b"), 9).await, ("52".to_owned(), 2));
}

async fn a_history_has_every_version(backend: Backend) {
    static KEPT: &Kind = &KEEPSAKE;
    let text = |n: u64| {
        object("u", "a")
            .spec(json!({"order": n}))
            .text()
            .replace("Widget", "Keepsake")
    };
    let mut intent = SqlOnlyWrite::Create;
    for n in 0..3 {
        let object = Object::parse_str(&text(n)).expect("an object");
        let written = backend.store.write_sql_only(KEPT, &object, intent, at(1)).await;
        let SqlOnlyWritten::Done(object) = written.expect("the database answers") else {
            panic!("written")
        };
        intent = SqlOnlyWrite::Replace {
            read: object.metadata.resource_version,
        };
    }
    let past = backend
        .store
        .history(KEPT, &"u".into(), None, 10)
        .await
        .expect("readable");
    let versions: Vec<u64> = past
        .iter()
        .map(|past| past.object.metadata.resource_version.0)
        .collect();
    assert_eq!(versions, [4, 3, 2]);
}

async fn who_follows_the_outbox_sees_each_change(backend: Backend) {
    let backend = backend.with_registry(OF_NOTICED).await;
    let store = &backend.store;
    let deleting = Widget {
        deletion: Some(at(2).to_string()),
        ..object("u", "a")
    };
    let mut mark = Mark::default();
    let mut read_version = ResourceVersion(0);
    for (write, written, deletion, erased) in [
        (None, object("u", "a"), None, false),
        (Some(false), deleting.clone(), Some(at(2)), false),
        (Some(true), deleting, Some(at(2)), true),
    ] {
        let write = match write {
            None => SqlOnlyWrite::Create,
            Some(false) => SqlOnlyWrite::Replace { read: read_version },
            Some(true) => SqlOnlyWrite::Remove { read: read_version },
        };
        let done = store.write_sql_only(&NOTICED, &read(&written), write, at(3)).await;
        let SqlOnlyWritten::Done(done) = done.expect("the database answers") else {
            panic!("{write:?}")
        };
        read_version = done.metadata.resource_version;
        let (entries, next) = store.since(&NOTICED, mark, 10).await.expect("readable").expect("known");
        let seen: Vec<_> = entries
            .iter()
            .map(|it| (&*it.name, it.deletion_timestamp, it.erased))
            .collect();
        assert_eq!(seen, [("a", deletion, erased)], "{write:?}");
        mark = next;
    }
}
