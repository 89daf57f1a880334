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
    /// `DOUBLE`.
    Double(f64),
    /// `VARCHAR`: strings, and enums by their full name.
    Text(String),
    /// `DATETIME(6)` in UTC; finer than microseconds is cut off by the store.
    Time(Timestamp),
}

/// A type that an extracted column can hold.
///
/// Implemented for the scalar types of messages, for timestamps, and for
/// `Option` of each, where `None` is [`Value::Null`]. An enum that is stored by
/// name implements it with [`ColumnType::Text`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a SQL column",
    label = "not a column value",
    note = "index one of its fields, or implement `kindex_runtime::value::ToColumnValue` for it"
)]
pub trait ToColumnValue {
    /// The column type where none is declared; one declared must hold the same values.
    const TYPE: ColumnType;

    /// The value to store; borrowed data is copied.
    fn to_column_value(&self) -> Value;
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
