//! Where commands are handed in to the writer: a queue for those that cannot wait, with a bound of bytes, and one for
//! those that can. Knows no command and no transaction.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::refusal::Refusal;

use super::error::{StoreError, queue_full};
use super::settings::Settings;
use super::transaction::{Command, Failure, Tx};

type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// A command that waits, with where its answer goes.
pub(super) trait Waiting: Send {
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
pub(super) enum Message {
    Command { job: Box<dyn Waiting>, bytes: usize },
    Checkpoint(oneshot::Sender<Result<(), StoreError>>),
    Close,
}

/// Commands that can wait and do so at most; whoever has more waits before he hands them in.
const LATER_MAX: usize = 4;
/// Without a command for so long, the writer is idle.
const IDLE_AFTER: Duration = Duration::from_millis(250);

/// Where commands are handed in.
#[derive(Clone)]
pub(super) struct Handle {
    queue: mpsc::Sender<Message>,
    later: mpsc::Sender<Box<dyn Waiting>>,
    /// Bytes that wait.
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
    last: Arc<Mutex<Instant>>,
}

/// Where the writer takes commands from.
pub(super) struct Receivers {
    pub(super) messages: mpsc::Receiver<Message>,
    pub(super) others: mpsc::Receiver<Box<dyn Waiting>>,
    /// Bytes that wait.
    bytes: Arc<AtomicUsize>,
    last: Arc<Mutex<Instant>>,
}

/// The two ends of the queues of a writer.
pub(super) fn queues(settings: &Settings) -> (Handle, Receivers) {
    let (queue, messages) = mpsc::channel(settings.queue_max);
    let (later, others) = mpsc::channel(LATER_MAX);
    let (bytes, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Instant::now())));
    let handle = Handle {
        queue,
        later,
        bytes: Arc::clone(&bytes),
        bytes_max: settings.queue_bytes_max,
        last: Arc::clone(&last),
    };
    let receivers = Receivers {
        messages,
        others,
        bytes,
        last,
    };
    (handle, receivers)
}

impl Receivers {
    /// So many bytes do not wait any more.
    pub(super) fn released(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Commands that could not wait were done.
    pub(super) fn worked(&self) {
        *self.last.lock().expect("nothing panics while it has the time") = Instant::now();
    }
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

    /// The same for a command that can wait for others.
    pub(super) async fn send_later<C: Command>(&self, command: C) -> Result<C::Answer, Refusal> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Job {
            command,
            answer: None,
            reply,
            span: Span::current(),
        });
        let sent = self.later.send(job).await;
        sent.map_err(|_| StoreError::Closed.refusal())?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.refusal()))
    }

    /// Whether nothing was sent for a while that cannot wait.
    pub(super) fn is_idle(&self) -> bool {
        self.last
            .lock()
            .expect("nothing panics while it has the time")
            .elapsed()
            >= IDLE_AFTER
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
