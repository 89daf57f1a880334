//! Time as columns hold it, nanoseconds since the epoch in 64 bits (1677 to 2262), and as messages and clocks give it.

use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time; tests bring their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The clock of the machine.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// As a column holds it; none where 64 bits do not reach.
#[must_use]
pub fn nanos(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}

/// Of what a column holds.
#[must_use]
pub fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanos)).expect("64 bits of nanoseconds are within the years of a timestamp")
}

/// As a message says it.
#[must_use]
pub fn to_wire(nanos: i64) -> prost_types::Timestamp {
    const SECOND: i64 = 1_000_000_000;
    prost_types::Timestamp {
        seconds: nanos.div_euclid(SECOND),
        nanos: nanos.rem_euclid(SECOND) as i32,
    }
}

/// Of what a message says; none where it is no valid time, or 64 bits do not reach.
#[must_use]
pub fn from_wire(time: &prost_types::Timestamp) -> Option<i64> {
    if !(0..1_000_000_000).contains(&time.nanos) {
        return None;
    }
    let whole = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    i64::try_from(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_wire_and_the_column() {
        for time in [i64::MIN, -1, 0, 1, 999_999_999, 1_000_000_000, i64::MAX] {
            assert_eq!(from_wire(&to_wire(time)), Some(time));
            assert_eq!(nanos(timestamp(time)), Some(time));
        }
    }

    #[test]
    fn times_that_a_column_cannot_hold_are_none() {
        let wire = |seconds, nanos| from_wire(&prost_types::Timestamp { seconds, nanos });
        assert_eq!(wire(i64::MAX, 0), None);
        assert_eq!(wire(0, -1), None);
        assert_eq!(wire(0, 1_000_000_000), None);
    }
}
