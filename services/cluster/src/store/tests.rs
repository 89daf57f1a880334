//! Writes, preconditions, pages and history of the object store.

use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteSynchronous;

use super::write::Intent;
use super::*;

/// A store in a directory that goes with it.
struct Scratch {
    directory: PathBuf,
    store: FileStore,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

async fn open(path: &Path, history_max: u64) -> FileStore {
    let observer: Observer = Box::new(|_| ());
    let options = StoreOptions {
        history_max,
        synchronous: SqliteSynchronous::Off,
        observer,
    };
    FileStore::open(path, options).await.unwrap()
}

async fn scratch(history_max: u64) -> Scratch {
    let directory = std::env::temp_dir().join(format!("kindex-store-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&directory).unwrap();
    let store = open(&directory.join("db"), history_max).await;
    Scratch { directory, store }
}

fn object(name: &str, n: u64) -> Value {
    json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "n": n})
}

async fn write(store: &FileStore, name: &str, intent: Intent, n: u64) -> Result<Arc<Revision>, WriteError> {
    let key = ObjectKey::new("widgets", "ns", name);
    store
        .write(Mutation {
            key,
            intent,
            object: object(name, n),
            preconditions: Vec::new(),
        })
        .await
}

async fn create(store: &FileStore, name: &str) -> Arc<Revision> {
    write(store, name, Intent::Create, 0).await.unwrap()
}

fn request(limit: Option<u32>, at: Option<u64>) -> PageRequest {
    PageRequest {
        resource: "widgets".to_owned(),
        limit,
        at,
        ..PageRequest::default()
    }
}

async fn names(store: &FileStore, request: &PageRequest) -> Vec<String> {
    store
        .list(request)
        .await
        .unwrap()
        .objects
        .iter()
        .map(|revision| revision.key.name.clone())
        .collect()
}

#[tokio::test]
async fn a_name_is_created_once_and_a_stale_write_never_wins() {
    let Scratch { store, .. } = &scratch(100).await;
    let first = create(store, "a").await;
    assert!(matches!(
        write(store, "a", Intent::Create, 1).await,
        Err(WriteError::Exists)
    ));
    let second = write(store, "a", Intent::Replace(Arc::clone(&first)), 1).await.unwrap();
    assert!(second.rv > first.rv);
    assert!(matches!(
        write(store, "a", Intent::Replace(Arc::clone(&first)), 2).await,
        Err(WriteError::Changed)
    ));
    assert!(matches!(
        write(store, "a", Intent::Remove(first), 2).await,
        Err(WriteError::Changed)
    ));
    let live = store.get(&second.key).await.unwrap().unwrap();
    assert_eq!(live.object().unwrap()["n"], 1);
    assert_eq!(
        live.object().unwrap()["metadata"]["resourceVersion"],
        second.rv.to_string()
    );
}

#[tokio::test]
async fn a_list_can_be_read_as_it_was() {
    let Scratch { store, .. } = &scratch(100).await;
    let a = create(store, "a").await;
    let b = create(store, "b").await;
    write(store, "a", Intent::Remove(a), 1).await.unwrap();
    create(store, "c").await;
    assert_eq!(names(store, &request(None, None)).await, ["b", "c"]);
    assert_eq!(names(store, &request(None, Some(b.rv))).await, ["a", "b"]);
    let after = PageRequest {
        after: Some(("ns".into(), "a".into())),
        ..request(Some(1), Some(b.rv))
    };
    assert_eq!(names(store, &after).await, ["b"]);
}

#[tokio::test]
async fn the_log_has_each_change_with_its_previous_state() {
    let Scratch { store, .. } = &scratch(100).await;
    let a = create(store, "a").await;
    let changed = write(store, "a", Intent::Replace(Arc::clone(&a)), 1).await.unwrap();
    write(store, "a", Intent::Remove(changed), 2).await.unwrap();
    let log = store.log_after(Some("widgets"), a.rv - 1, 10).await.unwrap().objects;
    let changes: Vec<_> = log.iter().map(|revision| revision.change).collect();
    assert_eq!(changes, [Change::Added, Change::Modified, Change::Deleted]);
    assert_eq!(log[2].before.as_ref().unwrap().object().unwrap()["n"], 1);
    assert!(store.log_after(Some("other"), 0, 10).await.unwrap().objects.is_empty());
}

#[tokio::test]
async fn old_history_is_forgotten_and_what_lives_stays() {
    let Scratch { store, .. } = &scratch(10).await;
    let first = create(store, "kept").await;
    let mut changing = create(store, "changing").await;
    for n in 1..40 {
        changing = write(store, "changing", Intent::Replace(changing), n).await.unwrap();
    }
    assert!(matches!(
        store.log_after(None, first.rv, 10).await,
        Err(StoreError::Compacted { .. })
    ));
    assert!(matches!(
        store.list(&request(None, Some(first.rv))).await,
        Err(StoreError::Compacted { .. })
    ));
    assert_eq!(names(store, &request(None, None)).await, ["changing", "kept"]);
    let recent = store.log_after(None, changing.rv - 5, 10).await.unwrap().objects;
    assert_eq!(recent.len(), 5);
    assert!(recent.iter().all(|revision| revision.before.is_some()));
    let rows: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM revisions")
        .fetch_one(&mut *store.readers.acquire().await.unwrap().connection)
        .await
        .unwrap();
    assert!(rows <= 14, "{rows} rows are kept");
}

#[tokio::test]
async fn resource_versions_go_on_after_a_restart() {
    let scratch = scratch(100).await;
    let a = create(&scratch.store, "a").await;
    write(&scratch.store, "a", Intent::Remove(Arc::clone(&a)), 0)
        .await
        .unwrap();
    let again = open(&scratch.directory.join("db"), 100).await;
    assert_eq!(again.committed(), a.rv + 1);
    assert!(create(&again, "a").await.rv > a.rv + 1);
}

#[tokio::test]
async fn a_precondition_that_does_not_hold_writes_nothing() {
    let Scratch { store, .. } = &scratch(100).await;
    let parent = ObjectKey::new("namespaces", "", "ns");
    let attempt = |precondition: Precondition| {
        let key = ObjectKey::new("widgets", "ns", "a");
        store.write(Mutation {
            key,
            intent: Intent::Create,
            object: object("a", 0),
            preconditions: vec![precondition],
        })
    };
    assert!(matches!(
        attempt(Precondition::Live(parent)).await,
        Err(WriteError::Unmet(Precondition::Live(_)))
    ));
    assert!(names(store, &request(None, None)).await.is_empty());
    attempt(Precondition::NamespaceEmpty("ns".into())).await.unwrap();
    assert!(matches!(
        attempt(Precondition::ResourceEmpty("widgets".into())).await,
        Err(WriteError::Unmet(_))
    ));
}

#[tokio::test]
async fn dependents_are_found_by_their_owner() {
    let Scratch { store, .. } = &scratch(100).await;
    let key = ObjectKey::new("widgets", "ns", "child");
    let mut child = object("child", 0);
    child["metadata"]["ownerReferences"] = json!([{"uid": "owner"}]);
    let mutation = Mutation {
        key: key.clone(),
        intent: Intent::Create,
        object: child,
        preconditions: Vec::new(),
    };
    let created = store.write(mutation).await.unwrap();
    assert_eq!(store.dependents("owner").await.unwrap(), std::slice::from_ref(&key));
    assert_eq!(store.find_uid("uid-child").await.unwrap(), Some(key));
    write(store, "child", Intent::Replace(created), 1).await.unwrap();
    assert!(store.dependents("owner").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_slow_reader_loses_its_place_and_nobody_waits_for_it() {
    let Scratch { store, .. } = &scratch(10_000).await;
    let mut slow = store.subscribe(Some("widgets"));
    let mut last = create(store, "a").await;
    for n in 0..300 {
        last = write(store, "a", Intent::Replace(last), n).await.unwrap();
    }
    assert_eq!(slow.ready().unwrap_err(), FeedError::Lagged);
    assert_eq!(store.committed(), last.rv);
}

#[tokio::test]
async fn a_slow_reader_of_large_objects_loses_its_place_before_they_take_much_memory() {
    let Scratch { store, .. } = &scratch(10_000).await;
    let mut slow = store.subscribe(Some("widgets"));
    let mut last = create(store, "a").await;
    for n in 0..8 {
        let mut large = object("a", n);
        large["text"] = "x".repeat(1 << 20).into();
        let mutation = Mutation {
            key: ObjectKey::new("widgets", "ns", "a"),
            intent: Intent::Replace(last),
            object: large,
            preconditions: Vec::new(),
        };
        last = store.write(mutation).await.unwrap();
    }
    assert_eq!(slow.ready().unwrap_err(), FeedError::Lagged);
}

#[tokio::test]
async fn a_precondition_never_holds_for_what_was_removed_since() {
    let scratch = scratch(100).await;
    let store = &scratch.store;
    let child = |name: &str| Mutation {
        key: ObjectKey::new("widgets", "ns", name),
        intent: Intent::Create,
        object: object(name, 0),
        preconditions: vec![Precondition::Live(ObjectKey::new("widgets", "ns", "parent"))],
    };
    let is_unmet = |outcome| matches!(outcome, Err(WriteError::Unmet(_)));
    assert!(is_unmet(store.write(child("a")).await));
    let parent = create(store, "parent").await;
    store.write(child("a")).await.unwrap();
    // Both are in the queue before the writer looks at either, so that they share a transaction.
    let removal = write(store, "parent", Intent::Remove(parent), 1);
    let (removed, orphan) = tokio::join!(removal, store.write(child("b")));
    assert!(removed.is_ok() && is_unmet(orphan));
    assert!(is_unmet(store.write(child("b")).await));
    create(store, "parent").await;
    store.write(child("b")).await.unwrap();
}

/// The versions that a read shows: of the store that wrote, and of one that was opened since.
async fn read_rvs(scratch: &Scratch, key: &ObjectKey) -> [Option<u64>; 2] {
    let opened = open(&scratch.directory.join("db"), 100).await;
    let mut rvs = [None; 2];
    for (rv, store) in rvs.iter_mut().zip([&scratch.store, &opened]) {
        let Some(found) = store.get(key).await.unwrap() else {
            continue;
        };
        let text: Value = serde_json::from_slice(&found.text).unwrap();
        assert_eq!((&found.key, found.object().unwrap()), (key, &text));
        *rv = Some(found.rv);
    }
    rvs
}

#[tokio::test]
async fn a_read_shows_the_last_answer_from_memory_and_from_the_file() {
    let scratch = scratch(100).await;
    let store = &scratch.store;
    let created = create(store, "a").await;
    let key = created.key.clone();
    assert_eq!(read_rvs(&scratch, &key).await, [Some(created.rv); 2]);
    let replaced = write(store, "a", Intent::Replace(created), 1).await.unwrap();
    assert!(store.cache.get(&key).is_some());
    assert_eq!(read_rvs(&scratch, &key).await, [Some(replaced.rv); 2]);
    let mut large = object("a", 2);
    large["text"] = "x".repeat(1 << 20).into();
    let mutation = Mutation {
        key: key.clone(),
        intent: Intent::Replace(replaced),
        object: large,
        preconditions: Vec::new(),
    };
    let grown = store.write(mutation).await.unwrap();
    assert_eq!(read_rvs(&scratch, &key).await, [Some(grown.rv); 2]);
    let shrunk = write(store, "a", Intent::Replace(grown), 3).await.unwrap();
    assert_eq!(read_rvs(&scratch, &key).await, [Some(shrunk.rv); 2]);
    write(store, "a", Intent::Remove(shrunk), 4).await.unwrap();
    assert_eq!(read_rvs(&scratch, &key).await, [None; 2]);
    let created = create(store, "a").await;
    assert_eq!(read_rvs(&scratch, &key).await, [Some(created.rv); 2]);
}

/// As if JSON were read at speed, which changes the last digit of some numbers: an object that was in memory would then
/// differ from what its reader sends back.
#[tokio::test]
async fn a_number_is_the_same_in_memory_and_in_the_file() {
    let scratch = scratch(100).await;
    let mut exact = object("a", 0);
    let number: f64 = "0.10829334427011361".parse().unwrap();
    exact["n"] = number.into();
    let mutation = Mutation {
        key: ObjectKey::new("widgets", "ns", "a"),
        intent: Intent::Create,
        object: exact,
        preconditions: Vec::new(),
    };
    let created = scratch.store.write(mutation).await.unwrap();
    assert!(scratch.store.cache.get(&created.key).is_some());
    assert_eq!(read_rvs(&scratch, &created.key).await, [Some(created.rv); 2]);
}

/// The transaction fails after its mutations are made.
#[tokio::test]
async fn what_was_not_committed_is_not_read_and_takes_no_version() {
    let Scratch { store, .. } = &scratch(100).await;
    let created = create(store, "a").await;
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON position BEGIN SELECT RAISE(ABORT, 'refused'); END";
    let mut reader = store.readers.acquire().await.unwrap();
    sqlx::raw_sql(refuse).execute(&mut *reader.connection).await.unwrap();
    let refused = write(store, "a", Intent::Replace(Arc::clone(&created)), 1).await;
    assert!(matches!(refused, Err(WriteError::Database(_))));
    // The writer cannot know what became of a transaction that failed: the file does.
    assert!(store.cache.get(&created.key).is_none());
    sqlx::raw_sql("DROP TRIGGER refuse")
        .execute(&mut *reader.connection)
        .await
        .unwrap();
    let live = store.get(&created.key).await.unwrap().unwrap();
    assert_eq!(live.object().unwrap()["n"], 0);
    let replaced = write(store, "a", Intent::Replace(live), 1).await.unwrap();
    assert_eq!(replaced.rv, created.rv + 1);
}

/// A restart goes on from it.
#[tokio::test]
async fn the_position_is_that_of_the_newest_version_whichever_of_a_transaction_are_refused() {
    let Scratch { store, .. } = &scratch(100).await;
    create(store, "a").await;
    let is_made = async |name| write(store, name, Intent::Create, 0).await.is_ok();
    let pairs = [
        (["b", "a"], (true, false), 2),
        (["a", "c"], (false, true), 3),
        (["d", "e"], (true, true), 5),
        (["a", "e"], (false, false), 5),
    ];
    for ([first, second], made, newest) in pairs {
        // Both are in the queue before the writer looks at one.
        assert_eq!(tokio::join!(is_made(first), is_made(second)), made);
        assert_eq!(read::position(&store.readers).await.unwrap(), newest);
    }
}

/// Parsed, they would take several times the memory that rings are held to.
#[tokio::test]
async fn rings_hold_the_texts_of_objects_alone() {
    let Scratch { store, .. } = &scratch(100).await;
    let mut feed = store.subscribe(Some("widgets"));
    let created = create(store, "a").await;
    let removed = write(store, "a", Intent::Remove(Arc::clone(&created)), 1)
        .await
        .unwrap();
    let events = [feed.ready().unwrap().unwrap(), feed.ready().unwrap().unwrap()];
    let before = events[1].before.as_ref().unwrap();
    assert_eq!(
        [events[0].rv, before.rv, events[1].rv],
        [created.rv, created.rv, removed.rv]
    );
    let held = [&events[0], &events[1], before];
    assert!(held.iter().all(|revision| revision.parsed.get().is_none()));
}

fn received(feed: &mut Feed) -> Vec<String> {
    std::iter::from_fn(|| feed.ready().unwrap())
        .map(|revision| revision.key.name.clone())
        .collect()
}

#[tokio::test]
async fn a_transaction_is_in_every_feed_in_order() {
    let Scratch { store, .. } = &scratch(100).await;
    let mut feeds = [None, Some("widgets"), Some("gadgets")].map(|resource| store.subscribe(resource));
    let create = |resource: &str, name: &str| {
        store.write(Mutation {
            key: ObjectKey::new(resource, "ns", name),
            intent: Intent::Create,
            object: object(name, 0),
            preconditions: Vec::new(),
        })
    };
    // All are in the queue before the writer looks at one, so that they share a transaction.
    let outcomes = tokio::join!(create("widgets", "a"), create("gadgets", "b"), create("widgets", "c"));
    assert!(outcomes.0.is_ok() && outcomes.1.is_ok() && outcomes.2.is_ok());
    let [everything, widgets, gadgets] = feeds.each_mut().map(received);
    assert_eq!(everything, ["a", "b", "c"]);
    assert_eq!((widgets, gadgets), (vec!["a".into(), "c".into()], vec!["b".into()]));
}

#[tokio::test]
async fn that_there_are_owners_is_known_at_once_and_after_a_restart() {
    let scratch = scratch(100).await;
    let store = &scratch.store;
    create(store, "free").await;
    assert!(!store.has_owners());
    let mut child = object("child", 0);
    child["metadata"]["ownerReferences"] = json!([{"uid": "owner"}]);
    let mutation = Mutation {
        key: ObjectKey::new("widgets", "ns", "child"),
        intent: Intent::Create,
        object: child,
        preconditions: Vec::new(),
    };
    store.write(mutation).await.unwrap();
    assert!(store.has_owners());
    assert!(open(&scratch.directory.join("db"), 100).await.has_owners());
}
