//! Answers that keep the permits of their request until their client has taken them: one that nobody reads is memory
//! that others need.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// So much is handed over at once, so that the last piece goes when nearly all was taken.
const PIECE_BYTES: usize = 16 * 1024;

/// The answer with the permits that it keeps until it was taken, or its client has gone.
pub(super) fn with_permits(response: Response, permits: impl Send + Unpin + 'static) -> Response {
    response.map(|body| {
        Body::new(PermitBody {
            body,
            rest: Bytes::new(),
            _permits: permits,
        })
    })
}

struct PermitBody<P> {
    body: Body,
    /// What was not handed over yet of a frame.
    rest: Bytes,
    _permits: P,
}

impl<P: Unpin> http_body::Body for PermitBody<P> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
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
    use std::sync::Arc;

    use futures::StreamExt as _;
    use http_body::Body as _;

    use super::*;

    #[tokio::test]
    async fn permits_are_kept_until_the_last_piece_was_taken() {
        let permits = Arc::new(());
        let whole = vec![7; 3 * PIECE_BYTES + 1];
        let response = with_permits(Response::new(Body::from(whole.clone())), permits.clone());
        assert_eq!(response.body().size_hint().exact(), Some(whole.len() as u64));
        let mut pieces = response.into_body().into_data_stream();
        let mut taken = Vec::new();
        for _ in 0..4 {
            assert_eq!(Arc::strong_count(&permits), 2);
            taken.extend(pieces.next().await.expect("a piece").expect("no error"));
        }
        assert!(pieces.next().await.is_none());
        assert_eq!(taken, whole);
        drop(pieces);
        assert_eq!(Arc::strong_count(&permits), 1);
        drop(with_permits(Response::new(Body::from(whole)), permits.clone()));
        assert_eq!(Arc::strong_count(&permits), 1, "its client has gone");
    }
}
