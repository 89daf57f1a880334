//! RFC 3339 text of seconds and nanoseconds since 1970, for the whole of the years 1 to 9999. jiff's
//! own timestamps end a day earlier, and Kubernetes objects use the last second as "never".

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, date};

/// 0001-01-01T00:00:00Z, the first second that protobuf and RFC 3339 have in common.
const SECONDS_MIN: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, the last one.
const SECONDS_MAX: i64 = 253_402_300_799;
const SECONDS_PER_DAY: i64 = 86_400;
const EPOCH: Date = date(1970, 1, 1);

/// Seconds since 1970 and the nanoseconds on top of them; `None` for anything else than RFC 3339.
pub(super) fn parse(text: &str) -> Option<(i64, i32)> {
    let separator = text.as_bytes().get(10)?;
    if !matches!(separator, b'T' | b't') {
        return None;
    }
    let (local, offset) = split_offset(text)?;
    let local: DateTime = local.parse().ok()?;
    let days = (local.date() - EPOCH).get_days();
    let time = local.time();
    let seconds = i64::from(days) * SECONDS_PER_DAY
        + i64::from(time.hour()) * 3600
        + i64::from(time.minute()) * 60
        + i64::from(time.second())
        - offset;
    in_range(seconds).then(|| (seconds, time.subsec_nanosecond()))
}

/// The text without its offset, and the offset in seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (sign, offset) = match offset.split_at_checked(1)? {
        ("+", offset) => (1, offset),
        ("-", offset) => (-1, offset),
        _ => return None,
    };
    let (hours, minutes) = offset.split_once(':')?;
    let number = |text: &str, max: i64| {
        let number = text.parse::<u8>().ok().map(i64::from);
        number.filter(|number| text.len() == 2 && *number <= max)
    };
    Some((local, sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60)))
}

/// The text with that many digits of the second; `None` outside of the years 1 to 9999.
pub(super) fn render(seconds: i64, nanos: i32, digits: usize) -> Option<String> {
    if !in_range(seconds) || !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    let day = EPOCH.checked_add(seconds.div_euclid(SECONDS_PER_DAY).days()).ok()?;
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = fraction(nanos, digits);
    Some(format!("{day}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

fn in_range(seconds: i64) -> bool {
    (SECONDS_MIN..=SECONDS_MAX).contains(&seconds)
}

/// `.120` for 120,000,000 nanoseconds and three digits; nothing for no digits.
pub(super) fn fraction(nanos: i32, digits: usize) -> String {
    if digits == 0 {
        return String::new();
    }
    format!(".{}", &format!("{nanos:09}")[..digits])
}

/// Protojson writes 0, 3, 6 or 9 digits.
pub(super) fn digits_in_threes(nanos: i32) -> usize {
    if nanos == 0 {
        0
    } else if nanos % 1_000_000 == 0 {
        3
    } else if nanos % 1_000 == 0 {
        6
    } else {
        9
    }
}
