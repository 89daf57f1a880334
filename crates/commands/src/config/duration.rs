//! Durations as Go writes them: `10s`, `1h30m`, `1.5h`, `250ms`.

use std::time::Duration;

/// Longest first where one is the start of another.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Reads a duration; what is wrong with it otherwise.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.starts_with('-') {
        return Err("a duration cannot be negative".to_owned());
    }
    let wrong = || format!("{text:?} is not a duration; write 10s, 5m or 1h30m");
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(|| format!("{text:?} has no unit; write 10s, 5m or 1h30m"))?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let unit_end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, factor) = UNITS
            .iter()
            .find(|(unit, _)| *unit == &rest[..unit_end])
            .ok_or_else(wrong)?;
        total += number * factor;
        rest = &rest[unit_end..];
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(total).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_writes() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("10s", 10_000),
            ("5m", 300_000),
            ("5m0s", 300_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("250ms", 250),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for text in ["", "10", "s", "-5s", "5 s", "5d", "1h30", "1..5s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
