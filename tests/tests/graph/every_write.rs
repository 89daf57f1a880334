//! A process that dies at one of its writes, each of a deletion in turn: before the cluster has it, or before the
//! process has the answer. The next process knows nothing but what the cluster has.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kindex_deletion::cleanup::Cleanups;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Stage, between};

/// The objects by kind and name, each held by the one before, in the order in which they go.
const CHAIN: [(&str, &str); 4] = [
    ("Cluster", "c"),
    ("Network", "n"),
    ("CloudIdentity", "i"),
    ("Project", "a"),
];
/// Fewer writes delete none of these: three are deleted and release what they name, and each is freed.
const WRITES_MIN: usize = 10;

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// When it is about to write once more.
    BeforeTheNext,
    /// When all that it has written is answered, before it has the last answer.
    AtTheLastAnswer,
}

/// The writes of one process, and how many of them reach the cluster.
#[derive(Clone)]
struct Life {
    ends: Moment,
    writes_max: usize,
    begun: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
    end: CancellationToken,
}

impl Life {
    fn of(ends: Moment, writes_max: usize) -> Self {
        Self {
            ends,
            writes_max,
            begun: Arc::default(),
            answered: Arc::default(),
            end: CancellationToken::new(),
        }
    }

    /// A write is to be sent. One too many never is.
    async fn begins(self) {
        if self.begun.fetch_add(1, Ordering::SeqCst) < self.writes_max {
            return;
        }
        if self.ends == Moment::BeforeTheNext {
            self.end.cancel();
        }
        pending().await
    }

    /// The cluster has answered a write.
    async fn answered(self) {
        let answered = self.answered.fetch_add(1, Ordering::SeqCst) + 1;
        if self.ends == Moment::AtTheLastAnswer && answered == self.writes_max {
            self.end.cancel();
            pending().await
        }
    }
}

impl Stage {
    /// Objects of which each is held by the one that names it. Some process is at work.
    async fn chain(&self) {
        self.create("Project", "a", json!({})).await;
        self.create("CloudIdentity", "i", json!({"project": "a"})).await;
        self.create("Network", "n", json!({"cloudIdentity": "i"})).await;
        self.create("Cluster", "c", json!({"network": "n"})).await;
        for (holder, target) in CHAIN.into_iter().zip(CHAIN.into_iter().skip(1)) {
            let reference = self.reference(holder.0, holder.1).await;
            self.until(|| self.has(target, &reference)).await;
        }
    }

    /// A process works until it dies, or all is gone. Whether it has died.
    async fn dies(&self, life: &Life) -> bool {
        let (begins, answered) = (life.clone(), life.clone());
        let client = between::around(
            self.client.clone(),
            move |_| {
                let begun = begins.clone().begins();
                async move {
                    begun.await;
                    None
                }
            },
            move || answered.clone().answered(),
        );
        let process = Self {
            client,
            _embedded: None,
        };
        let (deletion, never) = (process.deletion(&Cleanups::none()), CancellationToken::new());
        // What is under way is dropped where it is.
        tokio::select! {
            () = deletion.run(&never) => unreachable!("nobody stops it"),
            () = life.end.cancelled() => true,
            () = self.until(|| self.is_empty()) => false,
        }
    }
}

async fn stop((stop, running): (CancellationToken, JoinHandle<()>)) {
    stop.cancel();
    running.await.expect("it ends");
}

/// From so many writes on, until a process needs no more to delete all.
async fn each_process_dies(ends: Moment, writes_min: usize) {
    let stage = Stage::start().await;
    let mut next = stage.run();
    for writes in writes_min.. {
        stage.chain().await;
        stop(next).await;
        let before = stage.version().await;
        stage.delete("Project", "a").await;
        let has_died = stage.dies(&Life::of(ends, writes)).await;
        next = stage.run();
        stage.until(|| stage.is_empty()).await;
        let order = stage.order_of(&CHAIN, &before).await;
        assert_eq!(order, CHAIN.map(|(kind, _)| kind), "{ends:?}, {writes} writes");
        if !has_died {
            assert!(writes >= WRITES_MIN, "{writes} writes");
            break;
        }
    }
    stop(next).await;
}

/// As if a process relied on what only the one before has known, or on a write that it was about to make.
#[tokio::test]
async fn a_project_goes_in_its_order_whichever_write_its_process_dies_before() {
    each_process_dies(Moment::BeforeTheNext, 0).await;
}

/// As if what was written, and of which nobody has heard, were done once more or given up.
#[tokio::test]
async fn a_project_goes_in_its_order_whichever_write_its_process_dies_after() {
    each_process_dies(Moment::AtTheLastAnswer, 1).await;
}
