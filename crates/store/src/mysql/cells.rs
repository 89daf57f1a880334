//! Binding parameters and reading cells.

use std::str::FromStr;

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use sqlx::mysql::{MySqlArguments, MySqlRow};
use sqlx::{Arguments, Row, TypeInfo as _, ValueRef as _};

use crate::driver::{Cells, Param, parse_time, time_text};

pub(super) fn bind(params: &[Param<'_>]) -> Result<MySqlArguments, sqlx::Error> {
    let mut arguments = MySqlArguments::default();
    let bytes = params.iter().map(Param::wire_bytes).sum();
    arguments.reserve(params.len(), bytes);
    for param in params {
        match *param {
            Param::Null => arguments.add(None::<i64>),
            Param::Bool(flag) => arguments.add(flag),
            Param::Int(number) => arguments.add(number),
            Param::UInt(number) => arguments.add(number),
            Param::Double(number) => arguments.add(number),
            Param::Text(text) => arguments.add(text),
            Param::Bytes(bytes) => arguments.add(bytes),
            Param::Time(time) => arguments.add(time_text(time, "%Y-%m-%d %H:%M:%S%.6f")),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

fn decimal_number<T: FromStr>(text: &str) -> Result<T, sqlx::Error> {
    // `DECIMAL(20, 2)` may hold whole numbers, and says `5.00`.
    let whole = text
        .split_once('.')
        .filter(|(_, zeros)| zeros.bytes().all(|digit| digit == b'0'));
    let text = whole.map_or(text, |(whole, _)| whole);
    text.parse()
        .map_err(|_| sqlx::Error::Decode(format!("number {text:?}").into()))
}

impl Cells for MySqlRow {
    fn text(&self, index: usize) -> Result<String, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn text_bytes(&self, index: usize) -> Result<usize, sqlx::Error> {
        let text: Option<&str> = self.try_get_unchecked(index)?;
        Ok(text.map_or(0, str::len))
    }

    fn int(&self, index: usize) -> Result<i64, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn int_or_null(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn text_or_null(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn time(&self, index: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        let text: Option<String> = self.try_get_unchecked(index)?;
        text.as_deref().map(parse_time).transpose()
    }

    fn value(&self, index: usize, ty: ColumnType) -> Result<Value, sqlx::Error> {
        let raw = self.try_get_raw(index)?;
        if raw.is_null() {
            return Ok(Value::Null);
        }
        // The server sends a decimal as text, which the driver would take for the bytes of a number.
        let decimal = raw.type_info().name() == "DECIMAL";
        Ok(match ty {
            ColumnType::Text { .. } => Value::Text(self.text(index)?),
            ColumnType::Int32 | ColumnType::Int64 if decimal => Value::Int(decimal_number(&self.text(index)?)?),
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => Value::Int(self.int(index)?),
            ColumnType::UInt64 if decimal => Value::UInt(decimal_number(&self.text(index)?)?),
            ColumnType::UInt64 => Value::UInt(self.try_get_unchecked(index)?),
            ColumnType::Double if decimal => Value::Double(decimal_number(&self.text(index)?)?),
            ColumnType::Double => Value::Double(self.try_get_unchecked(index)?),
            ColumnType::Time => self.time(index)?.map_or(Value::Null, Value::Time),
        })
    }
}
