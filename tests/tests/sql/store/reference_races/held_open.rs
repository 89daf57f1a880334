//! One of two changes is held open at each point at which it waits for the database, and the other one is made
//! meanwhile: it waits for the first one, or is through before that has read anything.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kindex_harness::wait::WAIT_MAX;
use kindex_model::object::Uid;
use kindex_store::{Cause, Deletion, DirectError, MetadataStorage, Placed, PoolConfig, Retry, StoreError};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::patient;

use super::{archived, one_has_won};
use crate::store::backend::Backend;
use crate::store::cut_off::advance;
use crate::store::references::{delete, holder, place};
use crate::store::widget::{REGISTRY, WIDGET, at};

/// So often all points are gone through until each of the two changes has waited.
const ROUNDS_MAX: u32 = 20;

#[tokio::test]
async fn a_reference_and_a_deletion_of_which_one_is_held_open_never_both_win() {
    // A database in memory has one connection, for which the second change would wait.
    for (engine, backend) in Backend::each(&[Flavor::Plain, Flavor::SnapshotIsolation]).await {
        let may_be_through = backend.may_answer_at_once();
        let mut waits = [false; 2];
        for round in 1..=ROUNDS_MAX {
            let found = each_is_held_open(&backend, &backend, round).await;
            waits = [waits[0] || found[0], waits[1] || found[1]];
            // On a busy machine a server may have answered before the change waits for it, so a round may have no
            // point at which the first change holds the lock.
            if may_be_through || waits == [true; 2] {
                break;
            }
        }
        assert!(
            may_be_through || waits == [true; 2],
            "{engine}: whether the deletion and the reference have waited for the lock of the row: {waits:?}"
        );
    }
}

/// On two nodes of a cluster nobody need wait: locks are of one node.
pub(in super::super) async fn whoever_is_second_sees_the_first(first: &Backend, second: &Backend) {
    each_is_held_open(first, second, 1).await;
}

/// Whether the deletion has waited for the reference, and the other way round.
async fn each_is_held_open(first: &Backend, second: &Backend, round: u32) -> [bool; 2] {
    let other = Impatient::of(second);
    let waits = [
        placing_is_held_open(first, second, &other, round).await,
        deleting_is_held_open(first, second, &other, round).await,
    ];
    other.store.close().await;
    waits
}

/// Until the deletion has waited, or the reference is placed without another wait.
async fn placing_is_held_open(first: &Backend, second: &Backend, other: &Impatient, round: u32) -> bool {
    let mut points = Points::new();
    loop {
        let uid = points.uid("places", round);
        archived([first, second], &uid, 0).await;
        let mut placing = pin!(place(first, &uid, 1, 5));
        if advance(placing.as_mut(), points.polls).await.is_some() {
            return false;
        }
        let second_answer = other.delete(&uid).await;
        let placed = placing.await;
        let has_waited = matches!(second_answer, Answer::MustWait);
        let deleted = match second_answer {
            Answer::Given(deleted) => deleted.expect("it is archived"),
            Answer::MustWait => delete(second, &uid, 5).await,
            Answer::Failed(error) => {
                points.again(&error);
                continue;
            }
        };
        one_has_won([first, second], &uid, placed, deleted).await;
        if has_waited {
            return true;
        }
        points.go_on();
    }
}

async fn deleting_is_held_open(first: &Backend, second: &Backend, other: &Impatient, round: u32) -> bool {
    let mut points = Points::new();
    loop {
        let uid = points.uid("deletes", round);
        archived([first, second], &uid, 0).await;
        let mut deleting = pin!(delete(first, &uid, 5));
        if advance(deleting.as_mut(), points.polls).await.is_some() {
            return false;
        }
        let second_answer = other.place(&uid).await;
        let deleted = deleting.await;
        let has_waited = matches!(second_answer, Answer::MustWait);
        let placed = match second_answer {
            Answer::Given(placed) => placed,
            Answer::MustWait => place(second, &uid, 1, 5).await,
            Answer::Failed(error) => {
                points.again(&error);
                continue;
            }
        };
        one_has_won([first, second], &uid, placed, deleted).await;
        if has_waited {
            return true;
        }
        points.go_on();
    }
}

/// The points at which a change is held open, each with an object of its own.
struct Points {
    polls: u32,
    failures: u32,
    deadline: Instant,
}

impl Points {
    fn new() -> Self {
        Self {
            polls: 1,
            failures: 0,
            deadline: Instant::now() + WAIT_MAX,
        }
    }

    fn uid(&self, what: &str, round: u32) -> String {
        format!("{what}-{round}-{}-{}", self.polls, self.failures)
    }

    fn go_on(&mut self) {
        self.polls += 1;
    }

    /// The same point once more: what became of the second change is not known.
    fn again(&mut self, error: &StoreError) {
        assert!(Instant::now() < self.deadline, "{error:?}");
        self.failures += 1;
    }
}

/// Whoever makes the second change. It does not wait long for locks: that it cannot be made yet is an answer.
struct Impatient {
    store: Arc<dyn MetadataStorage>,
}

/// What comes of the second change.
enum Answer<T> {
    Given(Result<T, DirectError>),
    /// Somebody holds a lock.
    MustWait,
    /// For a reason that has nothing to do with the first change.
    Failed(StoreError),
}

impl Impatient {
    /// On the same database, with connections of its own.
    fn of(backend: &Backend) -> Self {
        let config = PoolConfig {
            // A statement waits for a lock for a fourth of it.
            call_timeout: Duration::from_secs(8),
            ..patient()
        };
        let store = kindex_store::open(&backend.address, REGISTRY, &config);
        Self {
            store: store.expect("the address names a database"),
        }
    }

    async fn place(&self, uid: &str) -> Answer<Placed> {
        let uid = Uid::from(uid);
        Answer::of(
            self.store
                .place_reference(&WIDGET, &uid, &holder(1), "jane", at(5))
                .await,
        )
    }

    async fn delete(&self, uid: &str) -> Answer<Deletion> {
        let uid = Uid::from(uid);
        Answer::of(self.store.delete_direct(&WIDGET, &uid, None, at(5)).await)
    }
}

impl<T> Answer<T> {
    fn of(answer: Result<T, StoreError>) -> Self {
        match answer {
            Ok(done) => Self::Given(Ok(done)),
            Err(StoreError::Direct { source, .. }) => Self::Given(Err(source)),
            Err(StoreError::Retryable {
                cause: Cause::LockWait, ..
            }) => Self::MustWait,
            Err(error) if error.retry() != Retry::Never => Self::Failed(error),
            Err(error) => panic!("{error:?}"),
        }
    }
}
