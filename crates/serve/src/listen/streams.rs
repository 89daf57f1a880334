//! The streams of HTTP/2: one whose client takes nothing of its answer for a while is ended alone, whatever else goes
//! on over its connection. Bytes that nobody takes fill no socket here, since the client's windows hold them back, so
//! that the limit on writing to the socket never sees it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::abort::{AbortToken, Aborter};
use crate::pieces::PiecewiseBody;

tokio::task_local! {
    /// Of the stream whose request is answered in this task.
    static PROGRESS: Progress;
}

/// Since when a piece of an answer waits for its client; `None` while the client waits for the answer.
#[derive(Clone, Debug, Default)]
struct Progress {
    since: Arc<Mutex<Option<Instant>>>,
    /// Ends the stream where others need what it holds.
    aborter: Arc<Aborter>,
}

impl Progress {
    fn set(&self, since: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Until one piece has waited for so long.
    async fn wait_until_stalled(&self, limit: Duration) {
        loop {
            let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = since.map_or(Duration::ZERO, |since| since.elapsed());
            if waited >= limit {
                return;
            }
            tokio::time::sleep(limit - waited).await;
        }
    }
}

/// Runs the streams of one connection.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    stalled: Duration,
    tasks: TaskTracker,
    /// Whether there was a stream.
    any: Arc<AtomicBool>,
}

impl Streams {
    /// Each ends once its client has taken nothing for so long.
    pub(super) fn new(stalled: Duration) -> Self {
        Self {
            stalled,
            tasks: TaskTracker::new(),
            any: Arc::default(),
        }
    }

    /// Until so long after the last stream has handed over what it had, of a connection that takes no more requests;
    /// never in HTTP/1.1, which has no streams.
    pub(super) async fn left_over(&self, limit: Duration) {
        if !self.any.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
        tokio::time::sleep(limit).await;
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (progress, stalled) = (Progress::default(), self.stalled);
        let watched = async move {
            tokio::select! {
                _ = PROGRESS.scope(progress.clone(), stream) => {}
                () = progress.aborter.needed() => tracing::debug!("A watch ends whose client does not read"),
                // The stream goes with the future, and the client is told by a reset.
                () = progress.wait_until_stalled(stalled) => tracing::debug!("A client takes nothing of its answer"),
            }
        };
        self.any.store(true, Ordering::Relaxed);
        self.tasks.spawn(watched);
    }
}

/// An answer in pieces of which is known when they are taken; as it is in HTTP/1.1, where the socket tells.
/// Either way it ends, alone or with its connection, when it is to.
pub(super) fn paced<B>(response: Response<B>, connection: &Aborter) -> Response<PacedBody<B>> {
    let abort = response.extensions().get::<AbortToken>();
    let progress = PROGRESS.try_with(Progress::clone).ok();
    match &progress {
        None => connection.follow(abort),
        Some(progress) => progress.aborter.follow(abort),
    }
    response.map(|body| PacedBody {
        body: PiecewiseBody::holding(body, ()),
        progress,
    })
}

/// The body of an answer.
pub(super) struct PacedBody<B> {
    body: PiecewiseBody<B, ()>,
    /// Of its stream, where it has one.
    progress: Option<Progress>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for PacedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, progress } = self.get_mut();
        let Some(progress) = progress else {
            return Pin::new(body.whole()).poll_frame(context);
        };
        // Whoever asks has taken what it got before.
        progress.set(None);
        let frame = ready!(Pin::new(body).poll_frame(context));
        if matches!(&frame, Some(Ok(frame)) if frame.is_data()) {
            progress.set(Some(Instant::now()));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
