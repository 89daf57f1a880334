//! Binding parameters and reading cells.
//!
//! # Numbers beyond 63 bits
//! An INTEGER of SQLite is a signed number of 64 bits. A larger one is kept as a text of [`LARGE_DIGITS`] digits, in a
//! column of the type ANY, which keeps both as they come. SQLite orders every text behind every number, in its keys
//! too, and texts of one length by their digits: so both have the order of their values, and all but the largest are
//! what a person expects to read. <https://sqlite.org/datatype3.html#sort_order>

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, Row, TypeInfo as _, ValueRef as _};

use crate::driver::{Cells, Param, parse_time, time_text};

/// As many as the largest number has.
const LARGE_DIGITS: usize = 20;

pub(super) fn bind(params: &[Param<'_>]) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(params.len(), 0);
    for param in params {
        match *param {
            Param::Null => arguments.add(None::<i64>),
            Param::Bool(flag) => arguments.add(flag),
            Param::Int(number) => arguments.add(number),
            Param::UInt(number) => match i64::try_from(number) {
                Ok(number) => arguments.add(number),
                Err(_) => arguments.add(format!("{number:0LARGE_DIGITS$}")),
            },
            Param::Double(number) => arguments.add(number),
            Param::Text(text) => arguments.add(text),
            Param::Bytes(bytes) => arguments.add(bytes),
            Param::Time(time) => arguments.add(time_text(time, "%Y-%m-%dT%H:%M:%S%.6fZ")),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// What [`bind`] makes of an unsigned number.
fn unsigned(row: &SqliteRow, index: usize) -> Result<Option<u64>, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(None);
    }
    let unreadable = |found: String| sqlx::Error::Decode(format!("{found} is not an unsigned number").into());
    let number = if raw.type_info().name() == "TEXT" {
        let text = row.text(index)?;
        text.parse().map_err(|_| unreadable(format!("{text:?}")))
    } else {
        let number = row.int(index)?;
        u64::try_from(number).map_err(|_| unreadable(number.to_string()))
    };
    number.map(Some)
}

impl Cells for SqliteRow {
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
        let value = match ty {
            ColumnType::Text { .. } => self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Text),
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => {
                self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Int)
            }
            ColumnType::UInt64 => unsigned(self, index)?.map(Value::UInt),
            ColumnType::Double => self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Double),
            ColumnType::Time => self.time(index)?.map(Value::Time),
        };
        Ok(value.unwrap_or(Value::Null))
    }
}
