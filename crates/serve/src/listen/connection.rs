//! One connection, in HTTP/1.1 or HTTP/2, as the client begins it: TLS has agreed on one of them, and in plain text the
//! first bytes tell.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Request;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::streams::{Streams, paced};
use super::{Answer, ConnectionLimits, Peer};
use crate::abort::Aborter;
use crate::linger::{Lingering, Unread};

/// Requests under way at once on one connection of HTTP/2.
const STREAMS_MAX: u32 = 256;
/// What is buffered of one connection of HTTP/1.1, which its head has to fit in, and of one stream of HTTP/2.
const BUFFER_MAX_BYTES: usize = 64 * 1024;
/// How often a silent client of HTTP/2 is asked whether it is there, and how long it may take to say so.
const ASK_EVERY: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves until the client leaves, until no new request has come for a while, or until told to stop; what is under
/// way ends first. Answers of which the client takes nothing end early.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    answer: impl Answer,
    peer: Peer,
    limits: ConnectionLimits,
    stop: &CancellationToken,
) {
    let requests = Arc::new(AtomicU64::new(0));
    let counted = requests.clone();
    let aborter = Arc::new(Aborter::default());
    let follows = aborter.clone();
    let unread = Unread::default();
    let stream = Lingering::new(stream, unread.clone(), limits.body);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut request = unread.watch(request);
        request.extensions_mut().insert(peer);
        let (answer, aborter, unread) = (answer.clone(), follows.clone(), unread.clone());
        async move {
            let response = unread.announce_end(answer.answer(request).await);
            Ok::<_, Infallible>(paced(response, &aborter))
        }
    });
    let streams = Streams::new(limits.stalled);
    let mut builder = Builder::new(streams.clone());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER_MAX_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_send_buf_size(BUFFER_MAX_BYTES)
        .keep_alive_interval(ASK_EVERY)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = aborter.needed() => return tracing::debug!("A watch ends whose client does not read"),
        () = silent(&requests, limits.first) => return tracing::debug!("A client connects and asks nothing"),
        () = asks_no_more(&requests, limits.idle, stop) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                // What is left is what the client takes in no window.
                () = streams.left_over(limits.stalled) => return tracing::debug!("A client takes no end of its answers"),
            }
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "A connection ended early");
    }
}

/// Until so long has passed, where no request has come by then.
async fn silent(requests: &AtomicU64, first: Duration) {
    tokio::time::sleep(first).await;
    if requests.load(Ordering::Relaxed) > 0 {
        std::future::pending().await
    }
}

/// Until no new request is waited for.
async fn asks_no_more(requests: &AtomicU64, idle: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = forgotten(requests, idle) => {}
        () = stop.cancelled() => {}
    }
}

/// Until no new request has come for so long, and for twice as long at most.
async fn forgotten(requests: &AtomicU64, idle: Duration) {
    let mut known = requests.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(idle).await;
        let now = requests.load(Ordering::Relaxed);
        if now == known {
            return;
        }
        known = now;
    }
}
