//! Answers in pieces: the last one goes when nearly all was taken, so that who waits for the end of an answer waits for
//! its client. Knows no connections.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// So much is handed over at once: a client that takes as much is not standing still.
const PIECE_BYTES: usize = 16 * 1024;

/// A body in pieces of at most 16 KiB, with what it keeps until its client has taken it, such as the permits of its
/// request: an answer that nobody reads is memory that others need.
///
/// # Guarantees
/// - Data, trailers and errors are those of the body, in its order; empty data is left out.
/// - The body is asked for more once all that it gave before was handed over.
/// - What is held is dropped with the body: after its end, or when its client has gone.
#[derive(Debug)]
pub struct PiecewiseBody<B, H> {
    body: B,
    /// What was not handed over yet of a frame.
    rest: Bytes,
    _held: H,
}

impl<B, H> PiecewiseBody<B, H> {
    /// The body with what it keeps.
    pub fn holding(body: B, held: H) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            _held: held,
        }
    }

    /// The body itself, for an answer of which no piece is ever asked for.
    pub(crate) fn whole(&mut self) -> &mut B {
        &mut self.body
    }
}

impl<B: Body<Data = Bytes> + Unpin, H: Unpin> Body for PiecewiseBody<B, H> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, rest, .. } = self.get_mut();
        while rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut *body).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            match frame?.into_data() {
                Ok(data) => *rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let piece = rest.split_to(rest.len().min(PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (held, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + held);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + held);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{HeaderMap, HeaderName, HeaderValue};
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    /// Gives these frames in turn.
    struct Frames(VecDeque<Frame<Bytes>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(Ok))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn trailers() -> HeaderMap {
        let status = HeaderName::from_static("grpc-status");
        HeaderMap::from_iter([(status, HeaderValue::from_static("0"))])
    }

    /// How long each piece of data is, and at the end whether there were trailers.
    async fn taken(frames: impl IntoIterator<Item = Frame<Bytes>>) -> (Vec<usize>, bool) {
        let mut pieces = PiecewiseBody::holding(Frames(frames.into_iter().collect()), ());
        let mut lengths = Vec::new();
        while !pieces.is_end_stream() {
            let Some(frame) = pieces.frame().await else {
                return (lengths, false);
            };
            match frame.expect("no error").into_data() {
                Ok(data) => lengths.push(data.len()),
                Err(frame) => {
                    assert_eq!(frame.into_trailers().expect("trailers"), trailers());
                    assert!(pieces.is_end_stream(), "nothing follows on trailers");
                    return (lengths, true);
                }
            }
        }
        (lengths, false)
    }

    /// As if an empty frame were a piece, or the end of the body.
    #[tokio::test]
    async fn empty_frames_are_left_out_and_end_nothing() {
        let data = |length| Frame::data(Bytes::from(vec![7_u8; length]));
        let between = [data(0), data(3), data(0), data(0), data(PIECE_BYTES + 1)];
        assert_eq!(taken(between).await, (vec![3, PIECE_BYTES, 1], false));
        assert_eq!(taken([data(3), data(0)]).await, (vec![3], false));
        assert_eq!(taken([data(0)]).await, (vec![], false));
        assert_eq!(taken([]).await, (vec![], false));
    }

    /// As if they overtook what is left of a frame, or were lost behind it, as the status of a call would be.
    #[tokio::test]
    async fn trailers_follow_on_all_pieces_of_the_data() {
        let data = |length| Frame::data(Bytes::from(vec![7_u8; length]));
        let long = [data(2 * PIECE_BYTES + 1), Frame::trailers(trailers())];
        assert_eq!(taken(long).await, (vec![PIECE_BYTES, PIECE_BYTES, 1], true));
        let empty = [data(0), Frame::trailers(trailers())];
        assert_eq!(taken(empty).await, (vec![], true));
        assert_eq!(taken([Frame::trailers(trailers())]).await, (vec![], true));
    }

    #[tokio::test]
    async fn what_is_held_is_kept_until_the_last_piece_was_taken() {
        let permits = Arc::new(());
        let whole = Bytes::from(vec![7_u8; 3 * PIECE_BYTES + 1]);
        let mut pieces = PiecewiseBody::holding(Full::new(whole.clone()), permits.clone());
        assert_eq!(pieces.size_hint().exact(), Some(whole.len() as u64));
        let mut taken = Vec::new();
        for _ in 0..4 {
            assert_eq!(Arc::strong_count(&permits), 2);
            let frame = pieces.frame().await.expect("a piece").expect("no error");
            taken.extend(frame.into_data().expect("data"));
        }
        assert!(pieces.frame().await.is_none());
        assert_eq!(taken, whole);
        drop(pieces);
        assert_eq!(Arc::strong_count(&permits), 1);
        drop(PiecewiseBody::holding(Full::new(whole), permits.clone()));
        assert_eq!(Arc::strong_count(&permits), 1, "its client has gone");
    }
}
