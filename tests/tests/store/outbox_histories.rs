//! What the outbox of events promises in spite of others: writers, programs without events, holders, and backups.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{join, join_all};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::{Address, Mark, ReadVersion, RowWrite, SqliteLocation, StoreError};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::backend::Backend;
use super::outbox::{EVENTFUL, Follower, NOTICE, gone, is_known, leaving, write};
use super::widget::{REGISTRY, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    who_follows_many_writers_and_rollbacks_misses_nothing,
    objects_from_before_are_in_a_replay_from_the_first_moment,
    what_a_program_without_events_wrote_is_made_up_for,
    a_restored_database_refuses_the_marks_that_it_lost,
    a_kind_without_events_has_an_empty_outbox,
    a_new_text_of_what_waits_keeps_the_time_of_the_request,
);

const SEEDS: u64 = 3;
const WRITERS: u64 = 6;
const BATCHES: usize = 12;
const OBJECTS: u64 = 40;

/// A name that the database refuses.
const POISON: &str = "poison";

/// One batch: each object at most once, and now and then one that is refused, so that all of it is rolled back.
fn batch(random: &mut StdRng, version: u64) -> Vec<RowWrite> {
    let uids: BTreeSet<u64> = (0..random.random_range(1..8))
        .map(|_| random.random_range(0..OBJECTS))
        .collect();
    let mut batch: Vec<RowWrite> = Vec::new();
    for number in uids {
        let uid = format!("u{number:02}");
        let object = widget(&uid, &uid, version);
        batch.push(match random.random_range(0..5) {
            0 => soft_delete(&uid),
            1 => object.store(Life::Archived, true),
            _ => object.store(Life::Live, true),
        });
    }
    if random.random_ratio(1, 4) {
        batch.push(widget(&format!("refused{version}"), POISON, version).live());
    }
    batch
}

/// The one who follows reads as the writers write, by itself and page by page.
async fn who_follows_many_writers_and_rollbacks_misses_nothing(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let poisoned = backend.poison(POISON).await;
    let mut follower = Follower::default();
    for seed in 0..SEEDS {
        let busy = AtomicUsize::new(usize::try_from(WRITERS).expect("few"));
        let writer = async |number: u64| {
            let mut random = StdRng::seed_from_u64(seed * WRITERS + number);
            for round in 0..BATCHES {
                let version = seed * 10_000 + (round as u64) * WRITERS + number + 1;
                let mut batch = batch(&mut random, version);
                if !poisoned {
                    batch.retain(|write| !write.uid().0.starts_with("refused"));
                }
                match backend.store.write(&NOTICE, &batch, at(1)).await {
                    Ok(_) | Err(StoreError::Refused { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        };
        let follow = async {
            while busy.load(Ordering::Relaxed) > 0 {
                follower.read(&backend).await;
                tokio::task::yield_now().await;
            }
            follower.read(&backend).await;
        };
        join(join_all((0..WRITERS).map(writer)), follow).await;
        let rows = backend.store.scan(&NOTICE, None, 1_000).await.expect("readable");
        let there = rows.iter().filter(|row| row.life != Life::Deleted);
        let there: BTreeSet<String> = there.map(|row| row.uid.to_string()).collect();
        let known: BTreeSet<String> = follower.objects.keys().cloned().collect();
        assert_eq!(known, there, "seed {seed}");
        let replay = backend.store.replay(&NOTICE, None, 1_000).await.expect("readable");
        for entry in replay.iter().filter(|entry| !entry.erased) {
            assert_eq!(
                follower.objects.get(&*entry.uid.0),
                Some(entry),
                "seed {seed}: the last change was seen"
            );
        }
    }
}

/// A database in memory is nobody else's.
fn can_be_reopened(backend: &Backend) -> bool {
    !matches!(backend.address, Address::Sqlite(SqliteLocation::Memory))
}

async fn objects_from_before_are_in_a_replay_from_the_first_moment(backend: Backend) {
    let before = backend.store.head(&NOTICE).await;
    assert!(matches!(before, Err(StoreError::Schema(_))), "{before:?}");
    let many = (0..450).map(|number| widget(&format!("u{number:03}"), &format!("n{number}"), 1).live());
    backend.write_all(&many.collect::<Vec<_>>(), at(1)).await;
    let leaving = Widget {
        deletion: Some("2023-11-14T22:13:24Z".to_owned()),
        ..widget("u001", "n1", 2)
    };
    let changes = [
        soft_delete("u000"),
        leaving.live(),
        Widget {
            version: 2,
            ..leaving.clone()
        }
        .live(),
        Widget {
            uid: "u002".to_owned(),
            name: "n2".to_owned(),
            ..leaving.clone()
        }
        .store(Life::Archived, false),
        widget("u003", "n3", 2).store(Life::Archived, false),
    ];
    backend.write_all(&[&changes[..2], &changes[3..]].concat(), at(2)).await;
    let name = ReferenceName::new("Cluster", "compute.example.com", "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce");
    let (uid, name) = (Uid::from("u003"), name.expect("a name"));
    backend
        .store
        .place_reference(&WIDGET, &uid, &name, "jane", at(3))
        .await
        .expect("placed");
    backend
        .store
        .delete_direct(&WIDGET, &uid, None, at(7))
        .await
        .expect("held");

    let is_the_same = can_be_reopened(&backend);
    let backend = backend.with_registry(EVENTFUL).await;
    let replay = backend.store.replay(&NOTICE, None, 1_000).await.expect("readable");
    let head = backend.store.head(&NOTICE).await.expect("complete");
    if !is_the_same {
        assert_eq!(replay, []);
        assert_ne!(head, Mark::default(), "who begins here can be told after a restore");
        return;
    }
    assert_eq!(replay.len(), 449, "all but the deleted one");
    let since = |uid: &str| {
        let entry = replay.iter().find(|entry| *entry.uid.0 == *uid).expect("it is there");
        assert!(!entry.erased);
        entry
            .deletion_timestamp
            .map(|time| time.as_second() - at(0).as_second())
    };
    assert_eq!(
        [since("u001"), since("u002"), since("u003"), since("u004")],
        [Some(4), None, Some(7), None]
    );
    assert_eq!(head.position.0, 449);
    let mut follower = Follower::default();
    follower.read(&backend).await;
    assert_eq!((follower.objects.len(), follower.mark), (449, head));
}

async fn what_a_program_without_events_wrote_is_made_up_for(backend: Backend) {
    if !can_be_reopened(&backend) {
        return;
    }
    let backend = backend.with_registry(EVENTFUL).await;
    write(&backend, &[widget("u1", "a", 1).live(), widget("u2", "b", 1).live()], 1).await;
    let mark = backend.store.head(&NOTICE).await.expect("complete");
    let backend = backend.with_registry(EVENTFUL).await;
    assert_eq!(
        backend.store.head(&NOTICE).await.expect("complete"),
        mark,
        "nothing was missed"
    );
    let backend = backend.with_registry(REGISTRY).await;
    backend
        .write_all(&[soft_delete("u1"), widget("u3", "c", 1).live()], at(2))
        .await;
    let incomplete = backend.store.head(&NOTICE).await;
    assert!(matches!(incomplete, Err(StoreError::Schema(_))), "{incomplete:?}");
    let backend = backend.with_registry(EVENTFUL).await;
    assert!(
        !is_known(&backend, mark).await,
        "who reads on from there would miss what was not written"
    );
    let mut follower = Follower::default();
    follower.read(&backend).await;
    assert_eq!(
        follower.objects.keys().map(String::as_str).collect::<Vec<_>>(),
        ["u2", "u3"]
    );
    assert!(follower.mark.position > mark.position);
}

/// A backup is a copy of the tables, and to restore it is to put the copy back.
async fn a_restored_database_refuses_the_marks_that_it_lost(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let tables = ["kindex_outbox", "kindex_outbox_mark", "kindex_outbox_counter"];
    write(&backend, &[widget("u1", "a", 1).live()], 1).await;
    let backed_up = backend.store.head(&NOTICE).await.expect("readable");
    for table in tables {
        let copied = backend
            .rows(&format!("CREATE TABLE backup_{table} AS SELECT * FROM {table}"))
            .await;
        if copied.is_none() {
            return;
        }
    }
    write(&backend, &[widget("u2", "b", 1).live()], 2).await;
    let lost = backend.store.head(&NOTICE).await.expect("readable");
    for table in tables {
        backend.rows(&format!("DELETE FROM {table}")).await;
        backend
            .rows(&format!("INSERT INTO {table} SELECT * FROM backup_{table}"))
            .await;
    }
    assert!(!is_known(&backend, lost).await, "it is ahead of the database");
    assert!(is_known(&backend, backed_up).await);
    write(&backend, &[widget("u3", "c", 1).live()], 3).await;
    let head = backend.store.head(&NOTICE).await.expect("readable");
    assert_eq!(head.position, lost.position, "another change has the place");
    assert!(!is_known(&backend, lost).await, "of another history");
    write(&backend, &[widget("u4", "d", 1).live()], 4).await;
    assert!(
        !is_known(&backend, lost).await,
        "although the database has gone beyond it"
    );
    assert!(is_known(&backend, backed_up).await);
}

async fn a_kind_without_events_has_an_empty_outbox(backend: Backend) {
    backend.write(widget("u1", "a", 1).live(), at(1)).await;
    assert_eq!(backend.store.head(&WIDGET).await.expect("readable"), Mark::default());
    assert_eq!(backend.store.replay(&WIDGET, None, 10).await.expect("readable"), []);
    let page = backend
        .store
        .since(&WIDGET, Mark::default(), 10)
        .await
        .expect("readable");
    assert_eq!(page, Some((Vec::new(), Mark::default())));
}

async fn a_new_text_of_what_waits_keeps_the_time_of_the_request(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let mut follower = Follower::default();
    let archived = |version| widget("u1", "a", version).store(Life::Archived, false);
    write(&backend, &[archived(1)], 1).await;
    let name = ReferenceName::new("Cluster", "example.com", "h").expect("a name");
    let (store, uid) = (&backend.store, Uid::from("u1"));
    let placed = store.place_reference(&NOTICE, &uid, &name, "jane", at(2)).await;
    placed.expect("placed");
    let deleted = store.delete_direct(&NOTICE, &uid, None, at(4)).await;
    deleted.expect("held");
    assert_eq!(follower.read(&backend).await, [leaving("u1", 4)]);
    let changed = widget("u1", "a", 2).label("team", "trade");
    write(&backend, &[changed.store(Life::Archived, false)], 5).await;
    assert_eq!(follower.read(&backend).await, [leaving("u1", 4)]);
    let dropped = store.drop_reference(&NOTICE, &uid, &name).await;
    dropped.expect("dropped");
    assert_eq!(follower.read(&backend).await, [], "nothing has become of it");
    let version = ResourceVersion(2);
    let taken = store.take_along(&NOTICE, &[ReadVersion { uid, version }], at(6)).await;
    assert_eq!(taken.expect("an answer").deleted.len(), 1);
    assert_eq!(follower.read(&backend).await, [gone("u1", 4)]);
}
