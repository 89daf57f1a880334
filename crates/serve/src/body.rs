//! The body of a request as a whole: within a size and a budget, and as fast as [`BodyPace`] wants it.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use http::Method;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Claim, NoRoom};
use crate::pace::BodyPace;

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than what is read.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// It does not come fast enough.
    #[error("the body of the request comes too slowly")]
    TooSlow,
    /// The bodies of all requests together are as large as they may be.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Its client broke off.
    #[error("{0}")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// Whether the body of a request says anything, by its method.
/// <https://www.rfc-editor.org/rfc/rfc9110#section-9.3>
pub fn is_expected(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Reads a body. One that says that it is too large is not begun.
///
/// # Guarantees
/// What is held of the body is claimed while it comes, and for as long as anybody has the bytes that are returned.
///
/// # Errors
/// A body that is too large, too slow or not whole, and one for which there is no room.
pub async fn read<B, K>(body: B, pace: &BodyPace, bytes_max: usize, mut claim: Claim<K>) -> Result<Bytes, BodyError>
where
    K: Ord + Clone + Send + 'static,
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLarge(bytes_max));
    }
    let began = Instant::now();
    let (mut body, mut whole) = (std::pin::pin!(body), BytesMut::new());
    loop {
        let due = pace.due(began, whole.len());
        let frame = timeout_at(due, body.frame()).await.map_err(|_| BodyError::TooSlow)?;
        let Some(frame) = frame else {
            return Ok(Bytes::from_owner(Claimed { whole, _claim: claim }));
        };
        let frame = frame.map_err(|error| BodyError::Broken(error.into()))?;
        // Trailers are no part of what is read.
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            return Err(BodyError::TooLarge(bytes_max));
        }
        whole.reserve(data.len());
        // More than its length: as much as the memory that it takes.
        claim.hold(whole.capacity())?;
        whole.extend_from_slice(&data);
    }
}

/// A body, and its part of the budget.
struct Claimed<K: Ord + Clone> {
    whole: BytesMut,
    _claim: Claim<K>,
}

impl<K: Ord + Clone> AsRef<[u8]> for Claimed<K> {
    fn as_ref(&self) -> &[u8] {
        &self.whole
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use futures::stream;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;
    use crate::budget::Budget;

    fn pace() -> BodyPace {
        BodyPace {
            grace: Duration::from_secs(5),
            bytes_per_second: NonZeroU32::new(10).expect("more than 0"),
            longest: Duration::from_secs(3600),
        }
    }

    /// Nothing waits for real: the time goes on where everybody sleeps.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up_and_one_that_keeps_the_rate_is_read() {
        for (bytes_a_second, is_read) in [(1, false), (20, true)] {
            let body = stream::unfold(0, move |second| async move {
                tokio::time::sleep_until(Instant::now() + Duration::from_secs(1)).await;
                let data = Bytes::from(vec![b'x'; bytes_a_second]);
                (second < 60).then(|| (Ok::<_, std::io::Error>(Frame::data(data)), second + 1))
            });
            let body = StreamBody::new(Box::pin(body));
            let read = read(body, &pace(), 10_000, Budget::new(1 << 20).claim(())).await;
            assert_eq!(read.is_ok(), is_read, "{bytes_a_second}");
            assert!(is_read || matches!(read, Err(BodyError::TooSlow)));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused() {
        let body = Full::new(Bytes::from_static(&[b'x'; 11]));
        let read = read(body, &pace(), 10, Budget::new(1 << 20).claim(())).await;
        assert!(matches!(read, Err(BodyError::TooLarge(10))));
    }

    #[tokio::test]
    async fn a_body_counts_until_nobody_has_its_bytes() {
        const BODY_BYTES: usize = 100_000;
        let budget = Budget::new(8 * BODY_BYTES);
        let mut bodies = Vec::new();
        let read = async |caller| {
            let body = Full::new(Bytes::from(vec![b'x'; BODY_BYTES]));
            read(body, &pace(), BODY_BYTES, budget.claim(caller)).await
        };
        let refused = loop {
            match read("many").await {
                Ok(body) => bodies.push(body),
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, BodyError::NoRoom(_)));
        assert!((1..=4).contains(&bodies.len()), "{} bodies", bodies.len());
        assert!(budget.bytes() >= bodies.len() * BODY_BYTES);
        let other = read("other").await.expect("others have room");
        let part = bodies[0].slice(10..20);
        bodies.clear();
        drop(other);
        assert!(budget.bytes() >= BODY_BYTES, "a part keeps the whole");
        drop(part);
        assert_eq!(budget.bytes(), 0);
    }
}
