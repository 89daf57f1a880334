//! The deadline of a call, from the header `grpc-timeout`. Work that is not done by then is dropped.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

const HEADER: &str = "grpc-timeout";
/// Longer ones are as good as none.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a call is not answered in time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeadlineError {
    /// The header is no time.
    #[error("{HEADER} {0:?} is not a timeout: at most 8 digits and one of H, M, S, m, u, n")]
    Invalid(HeaderValue),
    /// It has passed.
    #[error("the deadline of the request has passed")]
    Passed,
}

/// The deadline of a client, which may have none.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Of a client that waits as long as it takes.
    pub const NONE: Self = Self(None);

    /// As the headers say, from now on.
    ///
    /// # Errors
    /// A header that is no time.
    pub fn read(headers: &HeaderMap) -> Result<Self, DeadlineError> {
        let Some(value) = headers.get(HEADER) else {
            return Ok(Self::NONE);
        };
        let timeout = value.to_str().ok().and_then(parse);
        let timeout = timeout.ok_or_else(|| DeadlineError::Invalid(value.clone()))?;
        Ok(Self((timeout <= LONGEST).then(|| Instant::now() + timeout)))
    }

    /// Waits for something, and drops it unfinished at the deadline.
    ///
    /// # Errors
    /// It was not done by then.
    pub async fn bound<T>(self, work: impl Future<Output = T>) -> Result<T, DeadlineError> {
        let Some(end) = self.0 else {
            return Ok(work.await);
        };
        let done = tokio::time::timeout_at(end, work).await;
        done.map_err(|_| DeadlineError::Passed)
    }
}

/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> Result<Deadline, DeadlineError> {
        let headers = [(http::HeaderName::from_static(HEADER), HeaderValue::from_static(text))];
        Deadline::read(&headers.into_iter().collect())
    }

    #[test]
    fn times_are_read_as_the_protocol_has_them() {
        assert_eq!(parse("100m"), Some(Duration::from_millis(100)));
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for text in ["", "S", "1", "-1S", "1s", "123456789S", "1.5S", "1\u{e4}"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(matches!(of("soon"), Err(DeadlineError::Invalid(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_not_done_at_the_deadline_is_dropped() {
        let never = std::future::pending::<()>();
        assert_eq!(
            of("50m").expect("a time").bound(never).await,
            Err(DeadlineError::Passed)
        );
        let long = tokio::time::sleep(Duration::from_millis(49));
        assert_eq!(of("50m").expect("a time").bound(long).await, Ok(()));
        let year = tokio::time::sleep(Duration::from_secs(400 * 24 * 3600));
        assert_eq!(
            of("99999999H").expect("a time").bound(year).await,
            Ok(()),
            "as good as none"
        );
    }
}
