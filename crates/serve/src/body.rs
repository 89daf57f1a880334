//! The body of a request as a whole: within a size, and as fast as [`BodyPace`] wants it.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

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
    /// Its client broke off.
    #[error("{0}")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// Reads a body. One that says that it is too large is not begun.
///
/// # Errors
/// A body that is too large, too slow or not whole.
pub async fn read<B>(body: B, pace: &BodyPace, bytes_max: usize) -> Result<Bytes, BodyError>
where
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
            return Ok(whole.freeze());
        };
        let frame = frame.map_err(|error| BodyError::Broken(error.into()))?;
        // Trailers are no part of what is read.
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            return Err(BodyError::TooLarge(bytes_max));
        }
        whole.extend_from_slice(&data);
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

    fn pace() -> BodyPace {
        BodyPace {
            patience: Duration::from_secs(5),
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
            let read = read(body, &pace(), 10_000).await;
            assert_eq!(read.is_ok(), is_read, "{bytes_a_second}");
            assert!(is_read || matches!(read, Err(BodyError::TooSlow)));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused() {
        let body = Full::new(Bytes::from_static(&[b'x'; 11]));
        assert!(matches!(read(body, &pace(), 10).await, Err(BodyError::TooLarge(10))));
    }
}
