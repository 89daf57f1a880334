//! Listing the past: the objects that were there at a moment, each with its version of then, in order
//! of namespace and name. Reads a bounded number of rows at a time. Knows no dialect.

use std::collections::HashMap;

use jiff::Timestamp;
use kindex_model::kind::{ColumnType, Comparison, Kind};
use kindex_model::object::Uid;
use kindex_model::value::Value;
use kindex_query::select::{Condition, Direction, Order, Select};
use kindex_query::{Page, Stored};

use crate::cells::{param, stored};
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::history::HistoryVersion;
use crate::history::as_of::{Reader, newest_at, stood};
use crate::read::page;
use crate::sql_store::SqlStore;
use crate::statements::writer::Lead;
use crate::statements::{kept, padded, select};

/// Rows that are read at once, at most: no more than a page has, and one to know whether another follows.
const ROWS_MAX: usize = 500;
/// Objects whose version of then is asked for at once.
const VERSIONS: usize = 50;
/// Rows a page where the caller does not say.
const PAGE_ROWS: u32 = 500;

/// Which part of the past is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListAt {
    /// The moment.
    pub time: Timestamp,
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// Most objects a page; 0 means 500.
    pub limit: u32,
}

pub(crate) async fn list<D: Driver>(
    store: &SqlStore<D>,
    reader: &Reader<'_, D>,
    kind: &'static Kind,
    wanted: &ListAt,
    continue_token: Option<&str>,
) -> Result<Page, StoreError> {
    let select = rows_at(kind, wanted);
    let limit = if wanted.limit == 0 { PAGE_ROWS } else { wanted.limit };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let at_once = limit.saturating_add(1).min(ROWS_MAX);
    let mut after = continue_token.map(|token| page::read(token, &select)).transpose()?;
    let mut items: Vec<Stored> = Vec::new();
    let mut bytes = 0;
    loop {
        let (rows, are_cut) = read(store, &select, after.as_deref(), at_once).await?;
        let mut versions = versions_at(reader, &rows, wanted.time).await?;
        after = rows.last().filter(|_| are_cut || rows.len() == at_once).map(place);
        for row in &rows {
            let past = versions.remove(&row.object.metadata.uid);
            let found = stood(row, past, wanted.time).filter(|found| found.delete_time.is_none());
            let Some(found) = found else { continue };
            bytes += found.object.text().len();
            let is_full = items.len() == limit || bytes > store.connections.driver.page_bytes();
            if let Some(last) = items.last().filter(|_| is_full) {
                let continue_token = Some(page::token_after(&select, place(last)));
                return Ok(Page { items, continue_token });
            }
            items.push(found);
        }
        if after.is_none() {
            return Ok(Page {
                items,
                continue_token: None,
            });
        }
    }
}

/// All rows that were not deleted by then, whether or not they were there yet: that their histories tell.
fn rows_at(kind: &'static Kind, wanted: &ListAt) -> Select {
    let mut select = Select::all(kind);
    if let Some(namespace) = &wanted.namespace {
        let namespace = Value::Text(namespace.clone());
        select.conditions.push(Condition::equal("namespace", namespace));
    }
    select.conditions.push(Condition::Any(vec![
        Condition::Null { column: "delete_time" },
        Condition::Compare {
            column: "delete_time",
            comparison: Comparison::Greater,
            value: Value::Time(wanted.time),
        },
    ]));
    select.order = ["namespace", "name"]
        .map(|column| Order {
            column,
            ty: ColumnType::Text { chars: 255 },
            direction: Direction::Ascending,
        })
        .into();
    select.scan = true;
    select
}

/// Where a row stands in that order.
fn place(row: &Stored) -> Vec<Value> {
    let metadata = &row.object.metadata;
    [&metadata.namespace, &metadata.name, &metadata.uid.to_string()]
        .map(|text| Value::Text(text.clone()))
        .into()
}

/// A bounded number of rows, and whether there are more because of their bytes.
async fn read<D: Driver>(
    store: &SqlStore<D>,
    select: &Select,
    after: Option<&[Value]>,
    rows: usize,
) -> Result<(Vec<Stored>, bool), StoreError> {
    let query = select::page(
        select,
        store.connections.driver.spelling(),
        Lead::Engine,
        after,
        rows as i64,
    );
    let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
    let texts = page::OBJECT_TEXT;
    let read = store.connections.query_page(kept(query.sql), &params, texts).await;
    let read = read.map_err(|error| crate::connections::failure::<D>(select.kind().name, error))?;
    let rows = read.rows.iter().map(|row| stored(select.kind(), row));
    Ok((rows.collect::<Result<_, _>>()?, read.are_cut))
}

async fn versions_at<D: Driver>(
    reader: &Reader<'_, D>,
    rows: &[Stored],
    time: Timestamp,
) -> Result<HashMap<Uid, HistoryVersion>, StoreError> {
    let mut versions = HashMap::with_capacity(rows.len());
    for chunk in rows.chunks(VERSIONS) {
        let last = chunk.last().expect("chunks are not empty");
        let count = padded(chunk.len());
        let params: Vec<Param<'_>> = (0..count)
            .map(|index| chunk.get(index).unwrap_or(last))
            .flat_map(|row| {
                let uid = Param::Text(&row.object.metadata.uid.0);
                [uid, Param::Time(time), Param::Int(newest_at(row, time))]
            })
            .collect();
        let found = reader.read(reader.sql.at_each(count), &params).await?;
        versions.extend(found.into_iter().map(|past| (past.object.metadata.uid.clone(), past)));
    }
    Ok(versions)
}
