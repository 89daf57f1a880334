//! The one writer: takes commands from a queue, does as many as wait in one transaction, and answers after the commit.
//! What can wait, such as compaction, comes by another queue and has a transaction of its own: when nothing waits, and
//! otherwise one after each group, so that a batch waits for one of them at most. It does not wait for the disk: after
//! a power failure it is done once more, and a commit of the other queue takes all that was committed before it along.
//! Knows no command.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::task::JoinHandle;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug_span};

use crate::domain::{Clock, nanos};
use crate::refusal::Refusal;

use super::connect;
use super::error::StoreError;
use super::files::Files;
use super::health::{FailOnDrop, Health};
use super::meter::Meter;
use super::queue::{Handle, Message, Receivers, Waiting, queues};
use super::settings::{Durability, Settings};
use super::transaction::{Effect, Failure, Tx};

/// What hears of commits.
pub(super) trait Observer: Send + Sync + 'static {
    /// A transaction was committed; called before its commands are answered.
    fn committed(&self, effects: Vec<Effect>);
}

/// What a writer works on.
pub(super) struct Parts<O> {
    pub(super) tx: Tx,
    pub(super) options: SqliteConnectOptions,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: Clock,
    pub(super) observer: Arc<O>,
    pub(super) files: Arc<Files>,
    pub(super) health: Health,
    pub(super) meter: Meter,
    /// The folder is this process's for as long as something may be written.
    pub(super) _lock: File,
}

/// The state of the writing task.
pub(super) struct Writer<O> {
    parts: Parts<O>,
    /// The connection is of no use.
    is_broken: bool,
    /// The transaction that is under way can wait.
    can_wait: bool,
}

impl<O: Observer> Writer<O> {
    pub(super) fn new(parts: Parts<O>) -> Self {
        Self {
            parts,
            is_broken: false,
            can_wait: false,
        }
    }

    /// Starts the task. It ends when it is closed, or every handle is gone.
    pub(super) fn start(self) -> (Handle, JoinHandle<()>) {
        let (handle, receivers) = queues(&self.parts.settings);
        (handle, tokio::spawn(self.write(receivers)))
    }

    async fn write(mut self, mut receivers: Receivers) {
        let _fail_on_drop = FailOnDrop(self.parts.health.clone());
        let mut waiting = Vec::new();
        let mut is_open = true;
        while is_open {
            tokio::select! {
                biased;
                count = receivers.messages.recv_many(&mut waiting, self.parts.settings.group_max) => {
                    is_open = count > 0 && self.take(&receivers, &mut waiting).await;
                    if let Ok(job) = receivers.others.try_recv() {
                        self.write_later(job).await;
                    }
                }
                Some(job) = receivers.others.recv() => self.write_later(job).await,
            }
        }
        // Whoever waits still is told that the store is closed.
        drop(receivers);
        if let Err(error) = self.parts.tx.close().await {
            tracing::warn!("The log of runs is not written back: {error}");
        }
    }

    /// Does what was taken from the queue; whether the writer goes on.
    async fn take(&mut self, receivers: &Receivers, waiting: &mut Vec<Message>) -> bool {
        let mut is_open = true;
        let mut group = Vec::new();
        let mut checkpoints = Vec::new();
        for message in waiting.drain(..) {
            match message {
                Message::Command { job, bytes } => {
                    receivers.released(bytes);
                    group.push(job);
                }
                Message::Checkpoint(reply) => checkpoints.push(reply),
                Message::Close => is_open = false,
            }
        }
        if !group.is_empty() {
            self.write_catching_panics(group).await;
            receivers.worked();
        }
        for reply in checkpoints {
            let _gone = reply.send(self.parts.tx.checkpoint().await);
        }
        is_open
    }

    async fn write_later(&mut self, job: Box<dyn Waiting>) {
        self.can_wait = true;
        self.write_catching_panics(vec![job]).await;
        self.can_wait = false;
    }

    /// Where a defect ends it, whoever waits for an answer of this group learns that there is none; others get theirs.
    async fn write_catching_panics(&mut self, group: Vec<Box<dyn Waiting>>) {
        if AssertUnwindSafe(self.write_group(group)).catch_unwind().await.is_err() {
            tracing::error!(
                "A defect ended a transaction of runs, which is undone; please report what was said before"
            );
            self.undo().await;
        }
    }

    /// All in one transaction; where a command cannot share one, each in its own.
    async fn write_group(&mut self, mut group: Vec<Box<dyn Waiting>>) {
        match self.transact(&mut group).await {
            Ok(outcomes) => {
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    job.reply(outcome);
                }
            }
            // A command that is alone is never asked to be.
            Err(RollbackReason::Alone) => {
                for job in group {
                    Box::pin(self.write_group(vec![job])).await;
                }
            }
            Err(RollbackReason::Refused(refusal)) => refuse(group, &refusal),
            Err(RollbackReason::Failed(error)) => refuse(group, &error.refusal()),
        }
    }

    /// Begins, does and commits; the outcome of each command, none of which was answered yet.
    async fn transact(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<Vec<Result<(), Refusal>>, RollbackReason> {
        let began = Instant::now();
        let span = span_of(group);
        let outcome = self.attempt(group).instrument(span.clone()).await;
        let parts = &self.parts;
        match &outcome {
            Ok(_) => {
                parts.meter.committed(group.len(), began.elapsed());
                if let Some(held) = parts.tx.known_held_bytes() {
                    parts.meter.holds(held);
                }
            }
            Err(reason) => {
                span.record("otel.status_code", "ERROR");
                span.record("error", reason.word());
                // Said once, and not for each of what may be thousands of calls.
                if let RollbackReason::Failed(error) = reason
                    && is_common(error)
                    && parts.health.fails(&error.reason())
                {
                    tracing::warn!("The store of runs does not write: {}", error.reason());
                }
                self.undo().await;
            }
        }
        outcome
    }

    async fn undo(&mut self) {
        self.is_broken = self.parts.tx.roll_back().await.is_err();
    }

    async fn attempt(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<Vec<Result<(), Refusal>>, RollbackReason> {
        let parts = &mut self.parts;
        if self.is_broken {
            let connection = connect::writer(&parts.options).await?;
            parts.tx.reconnect(connection);
            self.is_broken = false;
            parts.files.reopened();
        }
        let survives = if self.can_wait {
            Durability::Normal
        } else {
            parts.settings.durability
        };
        parts.tx.survive(survives).await?;
        let now = nanos((parts.clock)()).unwrap_or(0);
        parts.tx.begin(now).await?;
        let is_alone = group.len() == 1;
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group.iter_mut() {
            let writes = parts.tx.writes();
            match job.run(&mut parts.tx).await {
                Ok(()) => outcomes.push(Ok(())),
                Err(Failure::Refused(refusal)) if parts.tx.writes() == writes => outcomes.push(Err(refusal)),
                // It was refused too late: what it has written must not stay.
                Err(Failure::Refused(refusal)) if is_alone => return Err(RollbackReason::Refused(refusal)),
                Err(Failure::Refused(_)) => return Err(RollbackReason::Alone),
                Err(Failure::Store(error)) if is_alone || is_common(&error) => return Err(error.into()),
                Err(Failure::Store(_)) => return Err(RollbackReason::Alone),
            }
        }
        match parts.tx.commit().await {
            Ok(effects) => parts.observer.committed(effects),
            Err(Failure::Refused(refusal)) => return Err(RollbackReason::Refused(refusal)),
            Err(Failure::Store(error)) => return Err(error.into()),
        }
        // Nothing is answered that the next start would not find.
        parts.files.check()?;
        Ok(outcomes)
    }
}

fn refuse(group: Vec<Box<dyn Waiting>>, refusal: &Refusal) {
    for job in group {
        job.reply(Err(refusal.clone()));
    }
}

/// The span of a transaction that traced requests wait for, each of which it names; else none.
fn span_of(group: &[Box<dyn Waiting>]) -> Span {
    let mut traced = group
        .iter()
        .map(|job| job.span())
        .filter(|span| !span.is_disabled())
        .peekable();
    if traced.peek().is_none() {
        return Span::none();
    }
    let span = debug_span!(
        parent: None,
        "commit group",
        commands = group.len(),
        otel.status_code = Empty,
        error = Empty
    );
    for request in traced {
        span.follows_from(request);
    }
    span
}

/// Why a transaction was undone.
enum RollbackReason {
    /// One of its commands is to blame: each is to be done alone.
    Alone,
    /// All of them get this.
    Refused(Refusal),
    /// The file or the disk failed, or a command that was alone.
    Failed(StoreError),
}

impl From<StoreError> for RollbackReason {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl RollbackReason {
    /// As a trace says it.
    fn word(&self) -> &'static str {
        match self {
            Self::Alone => "each command is done alone",
            Self::Refused(refusal) => refusal.reason,
            Self::Failed(error) => error.word(),
        }
    }
}

/// Whether an error would meet every command: of the file or the disk, and not of what is written.
fn is_common(error: &StoreError) -> bool {
    match error {
        // Constraint, mismatch, too big, range.
        StoreError::Database(_) => !matches!(error.sqlite_code(), Some(18 | 19 | 20 | 25)),
        StoreError::Damaged { .. } | StoreError::Panicked => false,
        StoreError::Folder { .. }
        | StoreError::InUse { .. }
        | StoreError::Newer { .. }
        | StoreError::Gone { .. }
        | StoreError::Closed => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Notify;

    use crate::domain::system_clock;
    use crate::store::schema;
    use crate::store::transaction::Command;

    use super::*;

    struct NoObserver;

    impl Observer for NoObserver {
        fn committed(&self, _effects: Vec<Effect>) {}
    }

    /// Says its name when it is done; holds the writer until it is let go, if it is to.
    struct Named {
        name: &'static str,
        said: Arc<Mutex<Vec<&'static str>>>,
        held: Option<Arc<(Notify, Notify)>>,
    }

    impl Command for Named {
        type Answer = ();

        async fn apply(&self, _tx: &mut Tx) -> Result<(), Failure> {
            if let Some(held) = &self.held {
                held.0.notify_one();
                held.1.notified().await;
            }
            self.said.lock().expect("no panic").push(self.name);
            Ok(())
        }
    }

    async fn writer(folder: &std::path::Path, durability: Durability) -> Handle {
        let lock = connect::claim(folder).expect("it is free");
        let settings = Arc::new(Settings {
            durability,
            ..Settings::default()
        });
        let options = connect::writer_options(folder, settings.durability);
        let mut connection = connect::writer(&options).await.expect("it opens");
        schema::migrate(&mut connection).await.expect("the tables are made");
        let tx = Tx::new(connection, Arc::clone(&settings));
        let writer = Writer::new(Parts {
            tx,
            options,
            settings,
            clock: system_clock(),
            observer: Arc::new(NoObserver),
            files: Arc::new(Files::opened(folder).expect("the files are there")),
            health: Health::new(),
            meter: Meter::default(),
            _lock: lock,
        });
        writer.start().0
    }

    #[tokio::test]
    async fn a_batch_waits_for_one_of_the_commands_that_can_wait_at_most() {
        let folder = tempfile::tempdir().expect("a folder");
        let handle = writer(folder.path(), Durability::Normal).await;
        let said = Arc::new(Mutex::new(Vec::new()));
        let named = |name, held| Named {
            name,
            said: Arc::clone(&said),
            held,
        };
        let held = Arc::new((Notify::new(), Notify::new()));
        let first = {
            let (handle, command) = (handle.clone(), named("first", Some(Arc::clone(&held))));
            tokio::spawn(async move { handle.send(command).await })
        };
        held.0.notified().await;
        // All of them are handed in before the writer is let go.
        let let_go = async { held.1.notify_one() };
        let (one, two) = (
            handle.send_later(named("one", None)),
            handle.send_later(named("two", None)),
        );
        let (one, two, batch, ()) = tokio::join!(one, two, handle.send(named("batch", None)), let_go);
        assert!(one.is_ok() && two.is_ok() && batch.is_ok());
        assert!(first.await.expect("no panic").is_ok());
        assert_eq!(*said.lock().expect("no panic"), ["first", "one", "batch", "two"]);
    }

    /// Says how commits are synchronized: 1 is NORMAL, 2 is FULL.
    struct Synchronized;

    impl Command for Synchronized {
        type Answer = i64;

        async fn apply(&self, tx: &mut Tx) -> Result<i64, Failure> {
            let synchronous = sqlx::query_scalar("PRAGMA synchronous");
            Ok(synchronous.fetch_one(tx.step()?).await?)
        }
    }

    #[tokio::test]
    async fn only_what_cannot_wait_waits_for_the_disk() {
        for (durability, expected) in [(Durability::Normal, 1), (Durability::Full, 2)] {
            let folder = tempfile::tempdir().expect("a folder");
            let handle = writer(folder.path(), durability).await;
            for _ in 0..2 {
                assert_eq!(handle.send(Synchronized).await.expect("done"), expected);
                assert_eq!(handle.send_later(Synchronized).await.expect("done"), 1);
            }
        }
    }
}
