//! Connections whose client is answered before all of its request has come: closed at once they would be reset, and the
//! client might never see the answer. So what still comes is read for a while, and held by nobody.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::pace::BodyPace;

/// So much is read and thrown away at most: whoever sends more does not want to know the answer.
pub const LINGER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What is read at a time.
const PIECE_BYTES: usize = 8 * 1024;

/// So much of a body that nobody read does not end its connection, where it has come already.
const SKIPPED_BYTES_MAX: u64 = 8 * 1024;

/// How much of the body of a connection's last request was left when the request was answered.
///
/// # Invariants
/// 0 where all was read, [`u64::MAX`] where nobody knows.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<AtomicU64>);

impl Unread {
    fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// An answer that tells its client where its connection ends with it, before the client sends another request.
    /// Source of the rule: RFC 9112, 9.3 and 9.6.
    pub fn announce_end<B>(&self, mut response: Response<B>) -> Response<B> {
        if self.0.load(Ordering::Relaxed) > SKIPPED_BYTES_MAX {
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// The next request, whose body says so when it is given up. HTTP/2 ends requests without their connection.
    pub fn watch<B: Body>(&self, request: Request<B>) -> Request<TrackedBody<B>> {
        self.0.store(0, Ordering::Relaxed);
        let is_alone = request.version() < Version::HTTP_2;
        request.map(|body| TrackedBody {
            left: if is_alone { left_of(&body) } else { 0 },
            body,
            unread: self.clone(),
        })
    }
}

/// A body of which is noticed whether all of it was read.
#[derive(Debug)]
pub struct TrackedBody<B> {
    body: B,
    left: u64,
    unread: Unread,
}

/// How much of a body is left, as [`Unread`] counts it.
fn left_of<B: Body>(body: &B) -> u64 {
    match body.is_end_stream() {
        true => 0,
        false => body.size_hint().upper().unwrap_or(u64::MAX).max(1),
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.left = if frame.is_some() { left_of(&self.body) } else { 0 };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.unread.0.store(self.left, Ordering::Relaxed);
        }
    }
}

/// A connection that lingers where it has to.
///
/// # Guarantees
/// Its client learns at once that nothing more is sent. What it sends itself is read for as long as it comes at the
/// pace of bodies, and up to [`LINGER_BYTES_MAX`].
#[derive(Debug)]
pub struct Lingering<S> {
    stream: S,
    unread: Unread,
    pace: BodyPace,
    end: Option<LingerState>,
}

/// What came since nothing is sent any more.
#[derive(Debug)]
struct LingerState {
    began: Instant,
    bytes: usize,
    due: Pin<Box<Sleep>>,
}

impl<S> Lingering<S> {
    /// A connection of whose requests `unread` knows.
    pub fn new(stream: S, unread: Unread, pace: BodyPace) -> Self {
        Self {
            stream,
            unread,
            pace,
            end: None,
        }
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    /// Until the client has ended, or has sent enough, or too little.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.end else {
            return Poll::Ready(());
        };
        let mut piece = [0; PIECE_BYTES];
        while end.bytes < LINGER_BYTES_MAX {
            let mut piece = ReadBuf::new(&mut piece);
            match Pin::new(&mut self.stream).poll_read(context, &mut piece) {
                Poll::Pending => return end.due.as_mut().poll(context),
                Poll::Ready(Err(_)) => break,
                Poll::Ready(Ok(())) if piece.filled().is_empty() => break,
                Poll::Ready(Ok(())) => end.bytes += piece.filled().len(),
            }
            end.due.as_mut().reset(self.pace.due(end.began, end.bytes));
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.end.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.unread.is_any() {
                return Poll::Ready(Ok(()));
            }
            let began = Instant::now();
            let due = Box::pin(sleep_until(self.pace.due(began, 0)));
            self.end = Some(LingerState { began, bytes: 0, due });
        }
        self.poll_linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use http_body_util::Empty;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const PACE: BodyPace = BodyPace {
        grace: Duration::from_secs(10),
        bytes_per_second: NonZeroU32::new(100).expect("more than 0"),
        longest: Duration::from_secs(60),
    };

    /// A connection whose last request was given up, or not; and its client.
    fn connection(given_up: bool) -> (Lingering<DuplexStream>, DuplexStream) {
        let (here, there) = duplex(64);
        let unread = Unread::default();
        unread.0.store(u64::from(given_up), Ordering::Relaxed);
        (Lingering::new(here, unread, PACE), there)
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_is_still_sending_is_waited_for_and_no_longer_than_it_sends() {
        let began = Instant::now();
        let (mut quiet, _client) = connection(false);
        quiet.shutdown().await.expect("shut down");
        assert_eq!(began.elapsed(), Duration::ZERO);
        let (mut silent, _client) = connection(true);
        silent.shutdown().await.expect("shut down");
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        let (mut sending, mut client) = connection(true);
        let sent = async {
            client.write_all(&[b'x'; 1000]).await.expect("taken");
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.expect("the end is header first");
            drop(client);
        };
        let (ended, ()) = tokio::join!(sending.shutdown(), sent);
        ended.expect("shut down");
        assert_eq!(began.elapsed(), Duration::from_secs(10), "at once when the client ends");
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_too_much_or_too_slowly_is_waited_for_no_more() {
        let (mut much, mut client) = connection(true);
        let sent = async {
            let piece = vec![b'x'; 1024 * 1024];
            while client.write_all(&piece).await.is_ok() {}
        };
        let shut = async move { much.shutdown().await.expect("shut down") };
        tokio::join!(shut, sent);
        let (mut slow, mut client) = connection(true);
        let began = Instant::now();
        let sent = async {
            while client.write_all(b"x").await.is_ok() {
                sleep_until(Instant::now() + Duration::from_secs(1)).await;
            }
        };
        let shut = async move { slow.shutdown().await.expect("shut down") };
        tokio::join!(shut, sent);
        assert!(began.elapsed() < Duration::from_secs(13), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_body_that_is_given_up_is_noticed_until_the_next_request() {
        let unread = Unread::default();
        let is_unread = || unread.is_any();
        let request = |version| {
            let mut request = Request::new(http_body_util::Full::new(bytes::Bytes::from_static(b"x")));
            *request.version_mut() = version;
            request
        };
        drop(unread.watch(request(Version::HTTP_11)));
        assert!(is_unread());
        drop(unread.watch(Request::new(Empty::<bytes::Bytes>::new())));
        assert!(!is_unread(), "it had none");
        drop(unread.watch(request(Version::HTTP_2)));
        assert!(!is_unread(), "its connection goes on");
        let mut read = unread.watch(request(Version::HTTP_11)).into_body();
        while http_body_util::BodyExt::frame(&mut read).await.is_some() {}
        drop(read);
        assert!(!is_unread(), "all of it was read");
    }

    #[tokio::test]
    async fn the_answer_to_a_large_body_that_is_given_up_ends_its_connection() {
        let header = |bytes| {
            let unread = Unread::default();
            let body = http_body_util::Full::new(bytes::Bytes::from(vec![b'x'; bytes]));
            drop(unread.watch(Request::new(body)));
            let response = unread.announce_end(Response::new(()));
            response.headers().get(CONNECTION).cloned()
        };
        let few = usize::try_from(SKIPPED_BYTES_MAX).expect("few");
        assert_eq!((header(0), header(1), header(few)), (None, None, None));
        assert_eq!(header(few + 1), Some(HeaderValue::from_static("close")));
    }
}
