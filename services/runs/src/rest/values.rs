//! How values are spelled in JSON: numbers that JSON does not have as strings, whole numbers also as strings, times as
//! texts or as seconds.

use std::fmt;

use prost_types::Timestamp;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain;

/// A double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Double(pub(super) f64);

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            value if value.is_nan() => serializer.serialize_str("NaN"),
            f64::INFINITY => serializer.serialize_str("Infinity"),
            f64::NEG_INFINITY => serializer.serialize_str("-Infinity"),
            value => serializer.serialize_f64(value),
        }
    }
}

struct DoubleVisitor;

impl Visitor<'_> for DoubleVisitor {
    type Value = Double;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Double, E> {
        Ok(Double(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Double, E> {
        Ok(Double(value as f64))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Double, E> {
        Ok(Double(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Double, E> {
        match text {
            "NaN" => Ok(Double(f64::NAN)),
            "Infinity" => Ok(Double(f64::INFINITY)),
            "-Infinity" => Ok(Double(f64::NEG_INFINITY)),
            _ => {
                let is_number = text
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
                let number = text.parse().ok().filter(|_| is_number);
                number
                    .map(Double)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DoubleVisitor)
    }
}

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole(pub(super) i64);

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of 64 bits, or one as a string")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Whole, E> {
        Ok(Whole(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Whole, E> {
        let whole = i64::try_from(value).map(Whole);
        whole.map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    /// As clients write it whose numbers are all doubles.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Whole, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match value.fract() == 0.0 && value.abs() <= EXACT {
            true => Ok(Whole(value as i64)),
            false => Err(E::invalid_value(de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Whole, E> {
        let whole = text.parse().map(Whole);
        whole.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

/// A time: RFC 3339, or seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time(pub(super) Timestamp);

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time as RFC 3339 has it, or seconds since 1970")
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Time, E> {
        Ok(Time(Timestamp { seconds, nanos: 0 }))
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Time, E> {
        self.visit_i64(i64::try_from(seconds).unwrap_or(i64::MAX))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Time, E> {
        let (seconds, nanos) = (value.floor(), ((value - value.floor()) * 1e9).round() as i32);
        let (seconds, nanos) = match nanos {
            1_000_000_000.. => (seconds + 1.0, 0),
            nanos => (seconds, nanos),
        };
        // What no time can be stays none: the largest second there is.
        Ok(Time(Timestamp {
            seconds: seconds as i64,
            nanos,
        }))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
        let time: Result<jiff::Timestamp, _> = text.parse();
        let time = time.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
        let nanos = time.as_nanosecond();
        Ok(Time(Timestamp {
            seconds: nanos.div_euclid(1_000_000_000) as i64,
            nanos: nanos.rem_euclid(1_000_000_000) as i32,
        }))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

/// A text; another value in its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        }))
    }
}

/// A time of a message as RFC 3339; none for one that is absent or no time.
pub(super) fn rfc3339(time: Option<&Timestamp>) -> Option<String> {
    let nanos = domain::from_wire(time?)?;
    Some(domain::timestamp(nanos).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn every_class_of_doubles_comes_back_to_the_bit() {
        for value in [
            0.0,
            -0.0,
            0.1,
            1.0 / 3.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ] {
            let text = serde_json::to_string(&Double(value)).expect("JSON");
            let read: Double = read(&text).expect("a number");
            assert_eq!(read.0.to_bits(), value.to_bits(), "{text}");
        }
        let nan: Double = read("\"NaN\"").expect("a number");
        assert!(nan.0.is_nan());
        assert_eq!(read("\"1e3\""), Some(Double(1000.0)));
        for none in ["\"nan\"", "\"inf\"", "\"\"", "null", "true", "[]"] {
            assert_eq!(read::<Double>(none), None, "{none}");
        }
    }

    #[test]
    fn doubles_that_are_hard_to_read_are_read_to_the_bit() {
        let mut bits = 0x1234_5678_9abc_def0_u64;
        for _ in 0..20_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = serde_json::to_string(&Double(value)).expect("JSON");
                let read: Double = read(&text).expect("a number");
                assert_eq!(read.0.to_bits(), bits, "{text}");
            }
        }
    }

    #[test]
    fn whole_numbers_are_numbers_or_strings() {
        for (text, expected) in [
            ("5", Some(5)),
            ("-5", Some(-5)),
            ("\"9223372036854775807\"", Some(i64::MAX)),
            ("5.0", Some(5)),
            ("5.5", None),
            ("9223372036854775808", None),
            ("1e300", None),
            ("\"x\"", None),
            ("null", None),
        ] {
            assert_eq!(read(text).map(|Whole(whole)| whole), expected, "{text}");
        }
    }

    #[test]
    fn times_are_texts_or_seconds_and_zero_is_one() {
        let time = |seconds, nanos| Some(Time(Timestamp { seconds, nanos }));
        for (text, expected) in [
            ("0.0", time(0, 0)),
            ("0", time(0, 0)),
            ("1.5", time(1, 500_000_000)),
            ("-0.25", time(-1, 750_000_000)),
            ("1.9999999999", time(2, 0)),
            ("\"1970-01-01T00:00:01.5Z\"", time(1, 500_000_000)),
            ("\"2026-01-01T02:00:00+02:00\"", time(1_767_225_600, 0)),
            ("1e300", time(i64::MAX, 0)),
            ("\"yesterday\"", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
