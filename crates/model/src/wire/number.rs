//! Numbers: written as JSON numbers, read from numbers and from strings, as protojson writes 64-bit
//! integers and non-finite floats.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serialize, Serializer};

use super::shape::Codec;

macro_rules! integer {
    ($($number:ty),*) => {$(
        impl Codec for $number {
            type Value = Self;

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(IntegerVisitor(PhantomData))
            }

            fn write<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
                value.serialize(serializer)
            }
        }
    )*};
}

integer!(i32, i64, u32, u64);

struct IntegerVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i64> + TryFrom<u64>> Visitor<'_> for IntegerVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::any::type_name::<T>())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        integral(number)
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let signed = text.parse::<i64>().ok().and_then(|n| T::try_from(n).ok());
        signed
            .or_else(|| text.parse::<u64>().ok().and_then(|n| T::try_from(n).ok()))
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// `7.0` is an integer. Beyond 2^53 a double no longer tells neighbors apart, so it is none there.
fn integral(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

macro_rules! float {
    ($($number:ty),*) => {$(
        impl Codec for $number {
            type Value = Self;

            #[allow(clippy::cast_possible_truncation, reason = "a float field keeps what a float can hold")]
            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(FloatVisitor).map(|number| number as Self)
            }

            fn write<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
                match non_finite(f64::from(*value)) {
                    Some(word) => serializer.serialize_str(word),
                    None => value.serialize(serializer),
                }
            }
        }
    )*};
}

float!(f32, f64);

/// JSON has no numbers for these.
fn non_finite(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number == f64::INFINITY {
        Some("Infinity")
    } else if number == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

struct FloatVisitor;

impl Visitor<'_> for FloatVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    #[expect(clippy::cast_precision_loss, reason = "a double field holds doubles")]
    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a double field holds doubles")]
    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        match text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}
