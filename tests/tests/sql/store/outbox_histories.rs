//! What the outbox of events promises in spite of others: writers, programs without events, holders, and backups.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::future::{join, join_all};
use kindex_harness::wait::WAIT_MAX;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::{Life, Revive};
use kindex_store::{Mark, Position, ReadVersion, RowWrite, StoreError};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::backend::{Backend, PERIOD};
use super::follower::{Follower, gone, leaving};
use super::outbox::{EVENTFUL, is_known, write};
use super::widget::{NOTICE, REGISTRY, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    who_follows_many_writers_and_rollbacks_misses_nothing,
    the_positions_of_many_writers_have_no_gaps,
    objects_from_before_are_in_a_replay_from_the_first_moment,
    what_a_program_without_events_wrote_is_made_up_for,
    a_restored_database_refuses_the_marks_that_it_lost,
    a_kind_without_events_has_an_empty_outbox,
    a_new_text_of_what_waits_keeps_the_time_of_the_request,
);

const WRITERS: u64 = 6;
const BATCHES: usize = 12;
const OBJECTS: u64 = 40;

/// A name that the database refuses.
const POISON: &str = "poison";

/// How many histories are played: what is quick is played more often. The nodes of a cluster begin again whenever they
/// lose against each other.
fn seeds(backend: &Backend) -> u64 {
    match (backend.is_node, backend.can_be_reopened()) {
        (true, _) => 3,
        (false, true) => 10,
        (false, false) => 50,
    }
}

/// One batch: each object at most once.
fn any_changes(random: &mut StdRng, version: u64) -> Vec<RowWrite> {
    let uids: BTreeSet<u64> = (0..random.random_range(1..8))
        .map(|_| random.random_range(0..OBJECTS))
        .collect();
    let mut batch: Vec<RowWrite> = Vec::new();
    for number in uids {
        let uid = format!("u{number:02}");
        let object = widget(&uid, &uid, version);
        batch.push(match random.random_range(0..5) {
            0 => soft_delete(&uid),
            1 => object.store(Life::Archived, Revive::FromAny),
            _ => object.store(Life::Live, Revive::FromAny),
        });
    }
    batch
}

/// One batch of objects that nobody else has: no entry takes the place of another.
fn new_objects(random: &mut StdRng, version: u64) -> Vec<RowWrite> {
    let objects = (0..random.random_range(1..5)).map(|number| {
        let uid = format!("u{version}-{number}");
        widget(&uid, &uid, version).live()
    });
    objects.collect()
}

/// Writers, each on one of some stores of a database in turn, and followers, each of whom goes round such stores.
struct Play<'a> {
    writers: &'a [&'a Backend],
    readers: &'a [&'a [&'a Backend]],
    followers: Vec<Follower>,
    /// Whether a batch can be refused.
    poisoned: bool,
}

impl<'a> Play<'a> {
    async fn begin(writers: &'a [&'a Backend], readers: &'a [&'a [&'a Backend]]) -> Self {
        Self {
            writers,
            readers,
            followers: readers.iter().map(|_| Follower::default()).collect(),
            poisoned: writers[0].poison(POISON).await,
        }
    }

    /// Until all is written and read. Now and then a batch is refused, so that all of it is rolled back.
    async fn run(&mut self, seed: u64, changes: fn(&mut StdRng, u64) -> Vec<RowWrite>) {
        let (writers, poisoned) = (self.writers, self.poisoned);
        let busy = AtomicUsize::new(usize::try_from(WRITERS).expect("few"));
        let rolled_back = AtomicUsize::new(0);
        let writer = async |number: u64| {
            let backend = writers[usize::try_from(number).expect("few") % writers.len()];
            let mut random = StdRng::seed_from_u64(seed * WRITERS + number);
            for round in 0..BATCHES {
                let version = seed * 10_000 + (round as u64) * WRITERS + number + 1;
                let mut batch = changes(&mut random, version);
                let is_poisoned = random.random_ratio(1, 4) && poisoned;
                if is_poisoned {
                    batch.push(widget(&format!("refused{version}"), POISON, version).live());
                }
                let write = async || backend.store.write(&NOTICE, &batch, at(1)).await;
                match backend.answer(write).await {
                    Ok(_) => assert!(!is_poisoned, "seed {seed}: a batch with the poison is written"),
                    Err(StoreError::Refused { .. }) if is_poisoned => _ = rolled_back.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("{error}"),
                }
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        };
        let followers = self.followers.iter_mut().zip(self.readers);
        let follow = followers.map(|(follower, nodes)| follow(follower, nodes, writers, &busy));
        join(join_all((0..WRITERS).map(writer)), join_all(follow)).await;
        let rolled_back = rolled_back.into_inner();
        assert!(rolled_back > 0 || !poisoned, "seed {seed}: no batch is rolled back");
    }
}

/// Reads as the writers write, by itself and page by page, and then to the end.
async fn follow(follower: &mut Follower, nodes: &[&Backend], writers: &[&Backend], busy: &AtomicUsize) {
    let deadline = Instant::now() + WAIT_MAX;
    for node in nodes.iter().cycle() {
        let is_over = busy.load(Ordering::Relaxed) == 0;
        follower.read(node).await;
        if is_over && follower.mark.position >= last(writers).await {
            return;
        }
        assert!(Instant::now() < deadline, "no more comes after {:?}", follower.mark);
        match node.is_node {
            true => tokio::time::sleep(PERIOD).await,
            false => tokio::task::yield_now().await,
        }
    }
}

/// The position of the last change that one of these has made.
async fn last(writers: &[&Backend]) -> Position {
    let mut last = Position::default();
    for writer in writers {
        let head = writer.answer(async || writer.store.head(&NOTICE).await).await;
        last = last.max(head.expect("readable").position);
    }
    last
}

async fn who_follows_many_writers_and_rollbacks_misses_nothing(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    nothing_is_missed(&[&backend], &[&[&backend]]).await;
}

/// On the stores of one database: those of writers, and for each follower those that it reads.
pub(super) async fn nothing_is_missed(writers: &[&Backend], readers: &[&[&Backend]]) {
    let mut play = Play::begin(writers, readers).await;
    for seed in 0..seeds(writers[0]) {
        play.run(seed, any_changes).await;
        for (follower, nodes) in play.followers.iter().zip(readers) {
            let store = &nodes[0].store;
            let rows = nodes[0].answer(async || store.scan(&NOTICE, None, 1_000).await).await;
            let rows = rows.expect("readable");
            let there = rows.iter().filter(|row| row.life != Life::Deleted);
            let there: BTreeSet<String> = there.map(|row| row.uid.to_string()).collect();
            let known: BTreeSet<String> = follower.objects.keys().cloned().collect();
            assert_eq!(known, there, "seed {seed}");
            let replay = nodes[0].answer(async || store.replay(&NOTICE, None, 1_000).await).await;
            for entry in replay.expect("readable").iter().filter(|entry| !entry.erased) {
                assert_eq!(
                    follower.objects.get(&*entry.uid.0),
                    Some(entry),
                    "seed {seed}: the last change was seen"
                );
            }
        }
    }
}

async fn the_positions_of_many_writers_have_no_gaps(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    no_position_is_skipped(&[&backend], &[&[&backend]]).await;
}

/// As [`nothing_is_missed`].
pub(super) async fn no_position_is_skipped(writers: &[&Backend], readers: &[&[&Backend]]) {
    let mut play = Play::begin(writers, readers).await;
    play.run(0, new_objects).await;
    for (follower, nodes) in play.followers.iter().zip(readers) {
        let objects = nodes[0].answer(async || nodes[0].store.count(&NOTICE).await).await;
        let all: Vec<u64> = (1..=objects.expect("counted").live).collect();
        assert_eq!(follower.positions, all, "a rollback uses none");
    }
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
        .archived(),
        widget("u003", "n3", 2).archived(),
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

    let is_the_same = backend.can_be_reopened();
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
    if !backend.can_be_reopened() {
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
    let archived = |version| widget("u1", "a", version).archived();
    write(&backend, &[archived(1)], 1).await;
    let name = ReferenceName::new("Cluster", "example.com", "h").expect("a name");
    let (store, uid) = (&backend.store, Uid::from("u1"));
    let placed = store.place_reference(&NOTICE, &uid, &name, "jane", at(2)).await;
    placed.expect("placed");
    let deleted = store.delete_direct(&NOTICE, &uid, None, at(4)).await;
    deleted.expect("held");
    assert_eq!(follower.read(&backend).await, [leaving("u1", 4)]);
    let changed = widget("u1", "a", 2).label("team", "trade");
    write(&backend, &[changed.archived()], 5).await;
    assert_eq!(follower.read(&backend).await, [leaving("u1", 4)]);
    let dropped = store.drop_reference(&NOTICE, &uid, &name).await;
    dropped.expect("dropped");
    assert_eq!(follower.read(&backend).await, [], "nothing has become of it");
    let version = ResourceVersion(2);
    let taken = store
        .delete_unheld(&NOTICE, &[ReadVersion { uid, version }], at(6))
        .await;
    assert_eq!(taken.expect("an answer").deleted.len(), 1);
    assert_eq!(follower.read(&backend).await, [gone("u1", 4)]);
}
