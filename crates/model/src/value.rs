//! The value of an extracted column, and the conversions into it from the types
//! that messages use. Knows nothing of SQL dialects and nothing of any kind.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::kind::ColumnType;

/// One extracted column's value, as every store binds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Absent in the object, or unreadable as the column's type.
    Null,
    /// `BOOLEAN`.
    Bool(bool),
    /// `INT` and `BIGINT`.
    Int(i64),
    /// `BIGINT UNSIGNED`.
    UInt(u64),
    /// `DOUBLE`.
    Double(f64),
    /// `VARCHAR`: strings, and enums by their full name.
    Text(String),
    /// `DATETIME(6)` in UTC; finer than microseconds is cut off by the store.
    Time(Timestamp),
}

/// A text that is no value of a column's type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {wanted}")]
pub struct Unreadable {
    text: String,
    wanted: &'static str,
}

impl Value {
    /// Reads what a person typed as a value of a column's type. Times are those of RFC 3339, or a date
    /// for its first moment in UTC.
    ///
    /// # Errors
    /// [`Unreadable`] says what a value of the type looks like.
    pub fn read(text: &str, ty: ColumnType) -> Result<Self, Unreadable> {
        let (value, wanted) = match ty {
            ColumnType::Text { .. } => (Some(Self::Text(text.to_owned())), "a text"),
            ColumnType::Int32 | ColumnType::Int64 => (text.parse().ok().map(Self::Int), "a whole number"),
            ColumnType::UInt64 => {
                let wanted = "a whole number from 0 to 18446744073709551615";
                (text.parse().ok().map(Self::UInt), wanted)
            }
            ColumnType::Bool => (text.parse().ok().map(Self::Bool), "true or false"),
            ColumnType::Double => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                (number.map(Self::Double), "a number")
            }
            ColumnType::Time => {
                let wanted = "a time, as in 2026-11-01T12:00:00Z or 2026-11-01";
                (read_time(text).map(Self::Time), wanted)
            }
        };
        value.ok_or_else(|| Unreadable {
            text: text.to_owned(),
            wanted,
        })
    }
}

fn read_time(text: &str) -> Option<Timestamp> {
    let day = || {
        let date: jiff::civil::Date = text.parse().ok()?;
        let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(midnight.timestamp())
    };
    text.parse().ok().or_else(day)
}

/// A type that an extracted column can hold.
///
/// Implemented for the scalar types of messages, for timestamps, and for
/// `Option` of each, where `None` is [`Value::Null`]. An enum that is stored by
/// name implements it with [`ColumnType::Text`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a SQL column",
    label = "not a column value",
    note = "index one of its fields, or implement `kindex::model::value::ToColumnValue` for it"
)]
pub trait ToColumnValue {
    /// The column type where none is declared; one declared must hold the same values.
    const TYPE: ColumnType;

    /// The value to store; borrowed data is copied.
    fn to_column_value(&self) -> Value;
}

/// A type that a column's value is read back as.
pub trait FromColumnValue: Sized {
    /// `None` where the value is another type's.
    fn from_column_value(value: Value) -> Option<Self>;
}

impl<T: FromColumnValue> FromColumnValue for Option<T> {
    fn from_column_value(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_column_value(value).map(Some),
        }
    }
}

macro_rules! from_column_value {
    ($($ty:ty: $pattern:pat => $value:expr,)*) => {$(
        impl FromColumnValue for $ty {
            fn from_column_value(value: Value) -> Option<Self> {
                match value {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )*};
}

from_column_value! {
    // A flag comes as the number that it is stored as.
    bool: Value::Int(number) => Some(number != 0),
    i32: Value::Int(number) => i32::try_from(number).ok(),
    i64: Value::Int(number) => Some(number),
    u64: Value::UInt(number) => Some(number),
    f64: Value::Double(number) => Some(number),
    String: Value::Text(text) => Some(text),
    Timestamp: Value::Time(time) => Some(time),
}

impl ToColumnValue for bool {
    const TYPE: ColumnType = ColumnType::Bool;

    fn to_column_value(&self) -> Value {
        Value::Bool(*self)
    }
}

impl ToColumnValue for i32 {
    const TYPE: ColumnType = ColumnType::Int32;

    fn to_column_value(&self) -> Value {
        Value::Int(i64::from(*self))
    }
}

impl ToColumnValue for i64 {
    const TYPE: ColumnType = ColumnType::Int64;

    fn to_column_value(&self) -> Value {
        Value::Int(*self)
    }
}

impl ToColumnValue for u64 {
    const TYPE: ColumnType = ColumnType::UInt64;

    fn to_column_value(&self) -> Value {
        Value::UInt(*self)
    }
}

impl ToColumnValue for f64 {
    const TYPE: ColumnType = ColumnType::Double;

    fn to_column_value(&self) -> Value {
        Value::Double(*self)
    }
}

impl ToColumnValue for str {
    const TYPE: ColumnType = ColumnType::Text { chars: 255 };

    fn to_column_value(&self) -> Value {
        Value::Text(self.to_owned())
    }
}

impl ToColumnValue for String {
    const TYPE: ColumnType = <str as ToColumnValue>::TYPE;

    fn to_column_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl ToColumnValue for Timestamp {
    const TYPE: ColumnType = ColumnType::Time;

    fn to_column_value(&self) -> Value {
        Value::Time(*self)
    }
}

impl ToColumnValue for Time {
    const TYPE: ColumnType = ColumnType::Time;

    fn to_column_value(&self) -> Value {
        Value::Time(self.0)
    }
}

impl<T: ToColumnValue + ?Sized> ToColumnValue for &T {
    const TYPE: ColumnType = T::TYPE;

    fn to_column_value(&self) -> Value {
        (**self).to_column_value()
    }
}

impl<T: ToColumnValue> ToColumnValue for Option<T> {
    const TYPE: ColumnType = T::TYPE;

    fn to_column_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, ToColumnValue::to_column_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_read_by_the_columns_type() {
        let text = ColumnType::Text { chars: 3 };
        let time = |text: &str| Value::Time(text.parse().expect("a time"));
        for (typed, ty, value) in [
            ("", text, Value::Text(String::new())),
            ("7", text, Value::Text("7".to_owned())),
            ("-7", ColumnType::Int64, Value::Int(-7)),
            ("18446744073709551615", ColumnType::UInt64, Value::UInt(u64::MAX)),
            ("true", ColumnType::Bool, Value::Bool(true)),
            ("1e3", ColumnType::Double, Value::Double(1000.0)),
            (
                "2026-11-01T12:00:00+02:00",
                ColumnType::Time,
                time("2026-11-01T10:00:00Z"),
            ),
            ("2026-11-01", ColumnType::Time, time("2026-11-01T00:00:00Z")),
        ] {
            assert_eq!(Value::read(typed, ty), Ok(value), "{typed}");
        }
        for (typed, ty, message) in [
            ("1 OR 1=1", ColumnType::Int32, "\"1 OR 1=1\" is not a whole number"),
            ("1.5", ColumnType::Int64, "\"1.5\" is not a whole number"),
            ("yes", ColumnType::Bool, "\"yes\" is not true or false"),
            ("NaN", ColumnType::Double, "\"NaN\" is not a number"),
        ] {
            assert_eq!(Value::read(typed, ty).expect_err(typed).to_string(), message);
        }
        for typed in ["-1", "18446744073709551616", "1.0", ""] {
            let refused = Value::read(typed, ColumnType::UInt64).expect_err(typed).to_string();
            let wanted = "a whole number from 0 to 18446744073709551615";
            assert_eq!(refused, format!("{typed:?} is not {wanted}"));
        }
        assert!(Value::read("yesterday", ColumnType::Time).is_err());
    }
}
