//! Spans of time: `google.protobuf.Duration`, which is seconds with a fraction in JSON, and
//! Kubernetes' own, which is written in Go's units.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::rfc3339::{digits_in_threes, fraction};

/// About 10,000 years, protobuf's limit in both directions.
const SECONDS_MAX: i64 = 315_576_000_000;
const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// `google.protobuf.Duration`: `1.500s` in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Duration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// The fraction, with the sign of the whole.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Duration {
    fn is_valid(self) -> bool {
        let same_sign = self.seconds == 0 || self.nanos == 0 || (self.seconds < 0) == (self.nanos < 0);
        (-SECONDS_MAX..=SECONDS_MAX).contains(&self.seconds) && self.nanos.abs() < NANOS_PER_SECOND && same_sign
    }

    fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix('s')?;
        let (sign, number) = match number.strip_prefix('-') {
            Some(number) => (-1, number),
            None => (1, number),
        };
        let (seconds, nanos) = decimal(number)?;
        let duration = Self {
            seconds: i64::from(sign) * seconds,
            nanos: sign * nanos,
        };
        duration.is_valid().then_some(duration)
    }
}

/// The whole part and nine digits of the fraction of an unsigned decimal number.
fn decimal(text: &str) -> Option<(i64, i32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole, format!("{fraction:0<9}").parse().ok()?))
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.is_valid() {
            return Err(serde::ser::Error::custom("duration out of range"));
        }
        let sign = if self.seconds < 0 || self.nanos < 0 { "-" } else { "" };
        let (seconds, nanos) = (self.seconds.unsigned_abs(), self.nanos.abs());
        let fraction = fraction(nanos, digits_in_threes(nanos));
        serializer.serialize_str(&format!("{sign}{seconds}{fraction}s"))
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = &"a duration such as 1.5s";
        Self::parse(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), expected))
    }
}

/// Kubernetes' `meta/v1.Duration`: nanoseconds on the wire, `1h30m0s` in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct GoDuration {
    /// Nanoseconds.
    #[prost(int64, tag = "1")]
    pub duration: i64,
}

const UNITS: [(&str, i64); 8] = [
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
];

impl GoDuration {
    fn parse(text: &str) -> Option<Self> {
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Self::default());
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i64 = 0;
        while !rest.is_empty() {
            let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, tail) = rest.split_at(unit_at);
            let (unit, size) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
            let (whole, nanos) = decimal(number)?;
            let part = i128::from(nanos) * i128::from(*size) / i128::from(NANOS_PER_SECOND);
            total = total
                .checked_add(whole.checked_mul(*size)?)?
                .checked_add(i64::try_from(part).ok()?)?;
            rest = &tail[unit.len()..];
        }
        Some(Self { duration: sign * total })
    }

    fn render(self) -> String {
        let sign = if self.duration < 0 { "-" } else { "" };
        let nanos = self.duration.unsigned_abs();
        let small = [("ns", 1), ("µs", 1_000), ("ms", 1_000_000)];
        if nanos == 0 {
            return "0s".to_owned();
        }
        if nanos < 1_000_000_000 {
            let fits = small.iter().rev().find(|(_, size)| nanos >= *size);
            let (unit, size) = fits.expect("a nanosecond is the smallest");
            return format!("{sign}{}{unit}", decimals(nanos, *size));
        }
        let (hours, minutes) = (nanos / 3_600_000_000_000, nanos / 60_000_000_000 % 60);
        let seconds = decimals(nanos % 60_000_000_000, 1_000_000_000);
        match (hours, minutes) {
            (0, 0) => format!("{sign}{seconds}s"),
            (0, _) => format!("{sign}{minutes}m{seconds}s"),
            _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
        }
    }
}

/// `amount / unit` with no more digits than needed.
fn decimals(amount: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", amount / unit, amount % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.render())
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = &"a duration such as 1h30m";
        Self::parse(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), expected))
    }
}
