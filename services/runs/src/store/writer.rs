//! The one writer: takes commands from a queue, does as many as wait in one transaction, and answers after the commit.
//! Knows no command.

use std::fs::File;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::FutureExt as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug_span};

use crate::domain::{Clock, nanos};
use crate::refusal::Refusal;

use super::connect;
use super::error::{StoreError, queue_full};
use super::files::Files;
use super::health::{Ends, Health};
use super::meter::Meter;
use super::settings::Settings;
use super::transaction::{Command, Effect, Failure, Tx};

type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// A command that waits, with where its answer goes.
trait Waiting: Send {
    /// Does it and keeps the answer.
    fn run<'w>(&'w mut self, tx: &'w mut Tx) -> BoxFuture<'w, Result<(), Failure>>;

    /// Sends the answer, or why there is none.
    fn reply(self: Box<Self>, outcome: Result<(), Refusal>);

    /// The span of whoever waits for the answer.
    fn span(&self) -> &Span;
}

struct Job<C: Command> {
    command: C,
    answer: Option<C::Answer>,
    reply: oneshot::Sender<Result<C::Answer, Refusal>>,
    span: Span,
}

impl<C: Command> Waiting for Job<C> {
    fn run<'w>(&'w mut self, tx: &'w mut Tx) -> BoxFuture<'w, Result<(), Failure>> {
        Box::pin(async move {
            self.answer = Some(self.command.apply(tx).await?);
            Ok(())
        })
    }

    fn reply(self: Box<Self>, outcome: Result<(), Refusal>) {
        let Job { answer, reply, .. } = *self;
        let answer = outcome.map(|()| answer.expect("a command that was done has an answer"));
        // The caller may have gone: what it sent is durable all the same.
        let _gone = reply.send(answer);
    }

    fn span(&self) -> &Span {
        &self.span
    }
}

/// What goes through the queue.
enum Message {
    Command { job: Box<dyn Waiting>, bytes: usize },
    Checkpoint(oneshot::Sender<Result<(), StoreError>>),
    Close,
}

/// Where commands are handed in.
#[derive(Clone)]
pub(super) struct Handle {
    queue: mpsc::Sender<Message>,
    /// Bytes that wait.
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
}

impl Handle {
    /// Does a command: the answer comes after the commit. Dropping the future does not undo it.
    pub(super) async fn send<C: Command>(&self, command: C) -> Result<C::Answer, Refusal> {
        let bytes = command.bytes();
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Job {
            command,
            answer: None,
            reply,
            span: Span::current(),
        });
        // A command that is larger than the bound is let in where nothing waits.
        let waiting = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        if waiting > 0 && waiting + bytes > self.bytes_max {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
            return Err(queue_full());
        }
        if let Err(error) = self.queue.try_send(Message::Command { job, bytes }) {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
            return Err(match error {
                mpsc::error::TrySendError::Full(_) => queue_full(),
                mpsc::error::TrySendError::Closed(_) => StoreError::Closed.refusal(),
            });
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.refusal()))
    }

    /// Bytes that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Ends the writer after what waits.
    pub(super) async fn close(&self) {
        // It may have ended already.
        let _ended = self.queue.send(Message::Close).await;
    }

    /// Has the writer finish a checkpoint between two transactions.
    pub(super) async fn checkpoint(&self) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        let message = Message::Checkpoint(reply);
        self.queue.send(message).await.map_err(|_| StoreError::Closed)?;
        done.await.map_err(|_| StoreError::Closed)?
    }
}

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
    bytes: Arc<AtomicUsize>,
    /// The connection is of no use.
    is_broken: bool,
}

impl<O: Observer> Writer<O> {
    pub(super) fn new(parts: Parts<O>) -> Self {
        Self {
            parts,
            bytes: Arc::new(AtomicUsize::new(0)),
            is_broken: false,
        }
    }

    /// Starts the task. It ends when it is closed, or every handle is gone.
    pub(super) fn start(self) -> (Handle, JoinHandle<()>) {
        let (queue, messages) = mpsc::channel(self.parts.settings.queue_max);
        let handle = Handle {
            queue,
            bytes: Arc::clone(&self.bytes),
            bytes_max: self.parts.settings.queue_bytes_max,
        };
        (handle, tokio::spawn(self.write(messages)))
    }

    async fn write(mut self, mut messages: mpsc::Receiver<Message>) {
        let _ends = Ends(self.parts.health.clone());
        let mut waiting = Vec::new();
        let mut is_open = true;
        while is_open && messages.recv_many(&mut waiting, self.parts.settings.group_max).await > 0 {
            let mut group = Vec::new();
            let mut checkpoints = Vec::new();
            for message in waiting.drain(..) {
                match message {
                    Message::Command { job, bytes } => {
                        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
                        group.push(job);
                    }
                    Message::Checkpoint(reply) => checkpoints.push(reply),
                    Message::Close => is_open = false,
                }
            }
            // Whoever waits for an answer of this group is told that there is none; all others get theirs.
            if AssertUnwindSafe(self.write_group(group)).catch_unwind().await.is_err() {
                tracing::error!(
                    "A defect ended a transaction of runs, which is undone; please report what was said before"
                );
                self.undo().await;
            }
            for reply in checkpoints {
                let _gone = reply.send(self.parts.tx.checkpoint().await);
            }
        }
        // Whoever waits still is told that the store is closed.
        drop(messages);
        if let Err(error) = self.parts.tx.close().await {
            tracing::warn!("The log of runs is not written back: {error}");
        }
    }

    /// All in one transaction; where a command cannot share one, each in its own.
    async fn write_group(&mut self, mut group: Vec<Box<dyn Waiting>>) {
        if group.is_empty() {
            return;
        }
        match self.transact(&mut group).await {
            Ok(outcomes) => {
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    job.reply(outcome);
                }
            }
            // A command that is alone is never asked to be.
            Err(Trouble::Alone) => {
                for job in group {
                    Box::pin(self.write_group(vec![job])).await;
                }
            }
            Err(Trouble::Refused(refusal)) => refuse(group, &refusal),
            Err(Trouble::Failed(error)) => refuse(group, &error.refusal()),
        }
    }

    /// Begins, does and commits; the outcome of each command, none of which was answered yet.
    async fn transact(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<Vec<Result<(), Refusal>>, Trouble> {
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
            Err(trouble) => {
                span.record("otel.status_code", "ERROR");
                span.record("error", trouble.word());
                // Said once, and not for each of what may be thousands of calls.
                if let Trouble::Failed(error) = trouble
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

    async fn attempt(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<Vec<Result<(), Refusal>>, Trouble> {
        let parts = &mut self.parts;
        if self.is_broken {
            let connection = connect::writer(&parts.options).await?;
            parts.tx.reconnect(connection);
            self.is_broken = false;
            parts.files.reopened();
        }
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
                Err(Failure::Refused(refusal)) if is_alone => return Err(Trouble::Refused(refusal)),
                Err(Failure::Refused(_)) => return Err(Trouble::Alone),
                Err(Failure::Store(error)) if is_alone || is_common(&error) => return Err(error.into()),
                Err(Failure::Store(_)) => return Err(Trouble::Alone),
            }
        }
        match parts.tx.commit().await {
            Ok(effects) => parts.observer.committed(effects),
            Err(Failure::Refused(refusal)) => return Err(Trouble::Refused(refusal)),
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
enum Trouble {
    /// One of its commands is to blame: each is to be done alone.
    Alone,
    /// All of them get this.
    Refused(Refusal),
    /// The file or the disk failed, or a command that was alone.
    Failed(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl Trouble {
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
        StoreError::Damaged { .. } => false,
        StoreError::Folder { .. }
        | StoreError::InUse { .. }
        | StoreError::Newer { .. }
        | StoreError::Gone { .. }
        | StoreError::Closed => true,
    }
}
