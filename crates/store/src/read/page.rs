//! Pages of a query and the tokens by which they go on: what the last row has in the
//! query's order, and of which query. Opaque to callers, and nothing that SQL trusts:
//! its values are bound like any other.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::projection::storable;
use kindex_model::value::Value;
use kindex_query::Page;
use kindex_query::select::{Order, Select};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cells::stored;
use crate::connections::Rows;
use crate::driver::Cells;
use crate::error::StoreError;
use crate::statements::select;
use crate::statements::select::OBJECT;
use crate::statements::writer::REQUIRED;

#[derive(Deserialize, Serialize)]
struct Token {
    /// Of the query that the token goes on with.
    query: String,
    after: Vec<Cell>,
}

/// A [`Value`] that survives as JSON, doubles to the bit.
#[derive(Deserialize, Serialize)]
enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(u64),
    Text(String),
    Time(Timestamp),
}

/// The cell of [`OBJECT`] that has the object.
pub(crate) const OBJECT_TEXT: &[usize] = &[1];

/// Reads the rows of a page of objects and one more, if there is one.
pub(crate) fn page(select: &Select, rows: &Rows<impl Cells>) -> Result<Page, StoreError> {
    read_page(select, rows, OBJECT.len(), |row| stored(select.kind(), row))
}

/// Reads the rows of a page of these columns and one more, if there is one.
pub(crate) fn cells_page(
    select: &Select,
    rows: &Rows<impl Cells>,
    columns: &[(&'static str, ColumnType)],
) -> Result<Page<Vec<Value>>, StoreError> {
    read_page(select, rows, columns.len(), |row| {
        let cells = columns.iter().enumerate().map(|(index, (_, ty))| row.value(index, *ty));
        cells
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(select, &error))
    })
}

/// A row's cells of the order follow its first `cells`.
fn read_page<R: Cells, T>(
    select: &Select,
    Rows { rows, are_cut }: &Rows<R>,
    cells: usize,
    read: impl Fn(&R) -> Result<T, StoreError>,
) -> Result<Page<T>, StoreError> {
    let wanted = match are_cut {
        true => rows.len() - 1,
        false => usize::try_from(select.page_rows()).unwrap_or(usize::MAX),
    };
    let shown = &rows[..rows.len().min(wanted)];
    let last = shown.last().filter(|_| rows.len() > wanted);
    Ok(Page {
        items: shown.iter().map(read).collect::<Result<_, _>>()?,
        continue_token: last
            .map(|row| token(select, row, cells).map_err(|error| unreadable(select, &error)))
            .transpose()?,
    })
}

fn unreadable(select: &Select, error: &sqlx::Error) -> StoreError {
    StoreError::Corrupt {
        kind: select.kind().name.to_owned(),
        uid: "?".to_owned(),
        message: error.to_string(),
    }
}

fn token(select: &Select, row: &impl Cells, cells: usize) -> Result<String, sqlx::Error> {
    let order = select.total_order();
    let after = order
        .iter()
        .enumerate()
        .map(|(index, order)| row.value(cells + index, order.ty));
    Ok(token_after(select, after.collect::<Result<_, _>>()?))
}

/// Goes on behind the row that has these values in the query's order.
pub(crate) fn token_after(select: &Select, values: Vec<Value>) -> String {
    let token = Token {
        query: fingerprint(select),
        after: values.into_iter().map(Cell::from).collect(),
    };
    let text = serde_json::to_vec(&token).expect("a token is plain data");
    URL_SAFE_NO_PAD.encode(text)
}

/// The values after which the page begins.
pub(crate) fn read(token: &str, select: &Select) -> Result<Vec<Value>, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    let token = bytes.and_then(|bytes| serde_json::from_slice::<Token>(&bytes).ok());
    let Some(token) = token else {
        return Err(StoreError::Continue("not one that a page came with".to_owned()));
    };
    let order = select.total_order();
    if token.query != fingerprint(select) || token.after.len() != order.len() {
        let kind = select.kind().name;
        let message = format!("it goes on with another query than this one of kind {kind}: begin with the first page");
        return Err(StoreError::Continue(message));
    }
    let after: Vec<Value> = token.after.into_iter().map(Value::from).collect();
    if !order.iter().zip(&after).all(|(order, value)| may_hold(order, value)) {
        return Err(StoreError::Continue("not one that a page came with".to_owned()));
    }
    Ok(after)
}

/// Whether a row can have this value in a column of the order.
fn may_hold(order: &Order, value: &Value) -> bool {
    match (order.ty, value) {
        (_, Value::Null) => !REQUIRED.contains(&order.column),
        (ColumnType::Text { .. }, Value::Text(_))
        | (ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool, Value::Int(_))
        | (ColumnType::UInt64, Value::UInt(_)) => true,
        (ColumnType::Time, Value::Time(time)) => storable(time),
        (ColumnType::Double, Value::Double(number)) => number.is_finite(),
        (
            ColumnType::Text { .. }
            | ColumnType::Int32
            | ColumnType::Int64
            | ColumnType::UInt64
            | ColumnType::Bool
            | ColumnType::Double
            | ColumnType::Time,
            _,
        ) => false,
    }
}

fn fingerprint(select: &Select) -> String {
    let identity = select::identity(select);
    let mut digest = Sha256::new();
    digest.update(&identity.sql);
    digest.update(format!("{:?}", identity.values));
    URL_SAFE_NO_PAD.encode(&digest.finalize()[..12])
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Int(number) => Self::Int(number),
            Value::UInt(number) => Self::UInt(number),
            Value::Double(number) => Self::Double(number.to_bits()),
            Value::Text(text) => Self::Text(text),
            Value::Time(time) => Self::Time(time),
        }
    }
}

impl From<Cell> for Value {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Bool(flag) => Self::Bool(flag),
            Cell::Int(number) => Self::Int(number),
            Cell::UInt(number) => Self::UInt(number),
            Cell::Double(bits) => Self::Double(f64::from_bits(bits)),
            Cell::Text(text) => Self::Text(text),
            Cell::Time(time) => Self::Time(time),
        }
    }
}
