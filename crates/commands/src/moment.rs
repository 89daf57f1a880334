//! A moment as people type it: a time, a day, a while ago; or the number of a version.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use kindex_model::object::ResourceVersion;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Timestamp);

/// A version, by number or by the time at which it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOrTime {
    /// `metadata.resourceVersion`.
    Version(ResourceVersion),
    /// Whatever stood then.
    Time(Timestamp),
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, Timestamp::now()).map(Self)
    }
}

impl FromStr for VersionOrTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            let number = text.parse::<i64>();
            let number = number.map_err(|_| "no version has a number this large".to_owned())?;
            return Ok(Self::Version(ResourceVersion(number.unsigned_abs())));
        }
        Time::from_str(text).map(|Time(time)| Self::Time(time))
    }
}

/// How far the clock that stamped a time may be ahead of ours.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(1);

fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let time = read(text, now)?;
    if time.duration_since(now) > AHEAD_MAX {
        return Err(format!(
            "{time} is in the future; a time without a zone is UTC, and now is {now:.0}"
        ));
    }
    Ok(time)
}

fn read(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(civil) = text.parse::<DateTime>()
        && let Ok(zoned) = civil.to_zoned(TimeZone::UTC)
    {
        return Ok(zoned.timestamp());
    }
    let ago = ago(text).and_then(|ago| now.checked_sub(ago).ok());
    ago.ok_or_else(|| "write 2026-11-01T12:00:00Z, 2026-11-01, or a while ago such as 2h or 3d".to_owned())
}

/// `2h`, `1h30m`, `3d`: a day has 24 hours here.
fn ago(text: &str) -> Option<SignedDuration> {
    let span: Span = text.parse().ok()?;
    let ago = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    (!ago.is_negative()).then_some(ago)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = at("2026-11-03T12:00:00Z");
        for (text, expected) in [
            ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00Z"),
            ("2026-11-01T12:00:00.25+02:00", "2026-11-01T10:00:00.25Z"),
            ("2026-11-01T12:00:00", "2026-11-01T12:00:00Z"),
            ("2026-11-01 12:00", "2026-11-01T12:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2h", "2026-11-03T10:00:00Z"),
            ("1h30m", "2026-11-03T10:30:00Z"),
            ("2d", "2026-11-01T12:00:00Z"),
            ("1w", "2026-10-27T12:00:00Z"),
        ] {
            assert_eq!(parse(text, now), Ok(at(expected)), "{text}");
        }
        for text in ["", "yesterday", "-2h", "2026-13-01", "12:00", "1month"] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_that_has_not_come_is_refused_unless_clocks_may_differ_as_much() {
        let now = at("2026-11-03T12:00:00.25Z");
        assert_eq!(parse("2026-11-03T12:00:50Z", now), Ok(at("2026-11-03T12:00:50Z")));
        let refused = parse("2026-11-03 14:00", now).expect_err("two hours ahead");
        assert_eq!(
            refused,
            "2026-11-03T14:00:00Z is in the future; a time without a zone is UTC, and now is 2026-11-03T12:00:00Z"
        );
    }

    #[test]
    fn a_number_is_a_version() {
        assert_eq!("4711".parse(), Ok(VersionOrTime::Version(ResourceVersion(4711))));
        assert_eq!(
            "2026-11-01".parse(),
            Ok(VersionOrTime::Time(at("2026-11-01T00:00:00Z")))
        );
        assert!("99999999999999999999".parse::<VersionOrTime>().is_err());
    }
}
