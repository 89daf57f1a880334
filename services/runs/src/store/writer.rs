//! The one writer: takes commands from a queue, does as many as wait in one transaction, and answers after the commit.
//! Knows no command.

use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug_span};

use crate::domain::{Clock, nanos};
use crate::refusal::Refusal;

use super::connect;
use super::error::{StoreError, queue_full};
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

/// The state of the writing task.
pub(super) struct Writer<O> {
    tx: Tx,
    options: SqliteConnectOptions,
    settings: Arc<Settings>,
    clock: Clock,
    bytes: Arc<AtomicUsize>,
    observer: Arc<O>,
    meter: Meter,
    /// The connection is of no use.
    is_broken: bool,
    /// The last transaction failed.
    is_failing: bool,
    /// The folder is this process's for as long as something may be written.
    _lock: File,
}

impl<O: Observer> Writer<O> {
    pub(super) fn new(
        tx: Tx,
        options: SqliteConnectOptions,
        settings: Arc<Settings>,
        clock: Clock,
        observer: Arc<O>,
        meter: Meter,
        lock: File,
    ) -> Self {
        Self {
            tx,
            options,
            settings,
            clock,
            bytes: Arc::new(AtomicUsize::new(0)),
            observer,
            meter,
            is_broken: false,
            is_failing: false,
            _lock: lock,
        }
    }

    /// Starts the task. It ends when it is closed, or every handle is gone.
    pub(super) fn start(self) -> (Handle, JoinHandle<()>) {
        let (queue, messages) = mpsc::channel(self.settings.queue_max);
        let handle = Handle {
            queue,
            bytes: Arc::clone(&self.bytes),
            bytes_max: self.settings.queue_bytes_max,
        };
        (handle, tokio::spawn(self.write(messages)))
    }

    async fn write(mut self, mut messages: mpsc::Receiver<Message>) {
        let mut waiting = Vec::new();
        let mut is_open = true;
        while is_open && messages.recv_many(&mut waiting, self.settings.group_max).await > 0 {
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
            if !group.is_empty() {
                self.write_group(group).await;
            }
            for reply in checkpoints {
                let _gone = reply.send(self.tx.checkpoint().await);
            }
        }
        // Whoever waits still is told that the store is closed.
        drop(messages);
        if let Err(error) = self.tx.close().await {
            tracing::warn!("The log of runs is not written back: {error}");
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
            Err(Trouble::Alone) => {
                for job in group {
                    Box::pin(self.write_group(vec![job])).await;
                }
            }
            Err(Trouble::Refused(refusal)) => {
                for job in group {
                    job.reply(Err(refusal.clone()));
                }
            }
        }
    }

    /// Begins, does and commits; the outcome of each command, none of which was answered yet.
    async fn transact(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<Vec<Result<(), Refusal>>, Trouble> {
        let began = Instant::now();
        let span = span_of(group);
        let outcome = self.attempt(group).instrument(span.clone()).await;
        match &outcome {
            Ok(_) => {
                self.meter.committed(group.len(), began.elapsed());
                if let Some(held) = self.tx.known_held_bytes() {
                    self.meter.holds(held);
                }
                // On a full disk, a transaction that writes nothing succeeds.
                if self.is_failing && self.tx.has_written() {
                    self.is_failing = false;
                    tracing::info!("The store of runs writes again");
                }
            }
            Err(trouble) => {
                span.record("otel.status_code", "ERROR");
                span.record("error", trouble.word());
                // Once, and not for each of what may be thousands of calls.
                if let Trouble::Refused(refusal) = trouble
                    && !self.is_failing
                {
                    tracing::warn!(reason = refusal.reason, "The store of runs does not write: {refusal}");
                }
                self.is_broken = self.tx.roll_back().await.is_err();
            }
        }
        self.is_failing |= matches!(outcome, Err(Trouble::Refused(_)));
        self.meter.fails(self.is_failing);
        outcome
    }

    async fn attempt(&mut self, group: &mut [Box<dyn Waiting>]) -> Result<Vec<Result<(), Refusal>>, Trouble> {
        let refused = |error: StoreError| Trouble::Refused(error.refusal());
        if self.is_broken {
            let connection = connect::writer(&self.options).await.map_err(refused)?;
            self.tx.reconnect(connection);
            self.is_broken = false;
        }
        let now = nanos((self.clock)()).unwrap_or(0);
        self.tx.begin(now).await.map_err(refused)?;
        let is_alone = group.len() == 1;
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group.iter_mut() {
            let writes = self.tx.writes();
            match job.run(&mut self.tx).await {
                Ok(()) => outcomes.push(Ok(())),
                Err(Failure::Refused(refusal)) if self.tx.writes() == writes => outcomes.push(Err(refusal)),
                // It was refused too late: what it has written must not stay.
                Err(Failure::Refused(refusal)) if is_alone => return Err(Trouble::Refused(refusal)),
                Err(Failure::Refused(_)) => return Err(Trouble::Alone),
                Err(Failure::Store(error)) if is_alone || is_common(&error) => return Err(refused(error)),
                Err(Failure::Store(_)) => return Err(Trouble::Alone),
            }
        }
        match self.tx.commit().await {
            Ok(effects) => {
                self.observer.committed(effects);
                Ok(outcomes)
            }
            Err(Failure::Refused(refusal)) => Err(Trouble::Refused(refusal)),
            Err(Failure::Store(error)) => Err(refused(error)),
        }
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
}

impl Trouble {
    /// As a trace says it.
    fn word(&self) -> &'static str {
        match self {
            Self::Alone => "each command is done alone",
            Self::Refused(refusal) => refusal.reason,
        }
    }
}

/// Whether an error would meet every command: of the file or the disk, and not of what is written.
fn is_common(error: &StoreError) -> bool {
    match error {
        StoreError::Database(sqlx::Error::Database(error)) => {
            // Constraint, mismatch, too big, range: <https://sqlite.org/rescode.html>
            let code = error.code().and_then(|code| code.parse::<u32>().ok()).unwrap_or(0);
            !matches!(code & 0xff, 18 | 19 | 20 | 25)
        }
        StoreError::Damaged { .. } => false,
        StoreError::Database(_)
        | StoreError::Folder { .. }
        | StoreError::InUse { .. }
        | StoreError::Newer { .. }
        | StoreError::Closed => true,
    }
}
