//! Binding parameters and reading cells.

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, Row};

use crate::driver::{Cells, Param, parse_time, time_text};

pub(super) fn bind(params: &[Param<'_>]) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(params.len(), 0);
    for param in params {
        match *param {
            Param::Null => arguments.add(None::<i64>),
            Param::Bool(flag) => arguments.add(flag),
            Param::Int(number) => arguments.add(number),
            Param::Double(number) => arguments.add(number),
            Param::Text(text) => arguments.add(text),
            Param::Bytes(bytes) => arguments.add(bytes),
            Param::Time(time) => arguments.add(time_text(time, "%Y-%m-%dT%H:%M:%S%.6fZ")),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
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
            ColumnType::Double => self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Double),
            ColumnType::Time => self.time(index)?.map(Value::Time),
        };
        Ok(value.unwrap_or(Value::Null))
    }
}
