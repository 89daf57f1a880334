//! The deadline of a call, from the header `grpc-timeout`. Work that has not begun by then is cancelled.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;
use tonic::Status;

const HEADER: &str = "grpc-timeout";
/// Longer ones are as good as none.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The deadline of a client; `None`: it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Of a client that waits as long as it takes.
    pub(super) const NONE: Self = Self(None);

    /// As the headers say, from now on.
    ///
    /// # Errors
    /// A header that is no time.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Status> {
        let Some(value) = headers.get(HEADER) else {
            return Ok(Self(None));
        };
        let timeout = value.to_str().ok().and_then(parse).ok_or_else(|| {
            Status::invalid_argument(format!(
                "{HEADER} {value:?} is no time: at most 8 digits and one of H, M, S, m, u, n"
            ))
        })?;
        Ok(Self((timeout <= LONGEST).then(|| Instant::now() + timeout)))
    }

    /// Waits for something, and drops it unfinished at the deadline.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED`.
    pub(crate) async fn bound<T>(self, work: impl Future<Output = T>) -> Result<T, Status> {
        let Some(end) = self.0 else {
            return Ok(work.await);
        };
        tokio::time::timeout_at(end, work)
            .await
            .map_err(|_| Status::deadline_exceeded("not done within the time that the request gave"))
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

    #[test]
    fn times_are_read_as_the_protocol_has_them() {
        assert_eq!(parse("100m"), Some(Duration::from_millis(100)));
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for text in ["", "S", "1", "-1S", "1s", "123456789S", "1.5S", "1\u{e4}"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
