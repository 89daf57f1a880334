//! Reads columns anew from the stored text of every row, live, archived and deleted, page by page.
//! A row is only set while it has the version that was read: a newer one was written by a program
//! that knows the columns.

use std::time::{Duration, Instant};

use kindex_convert::object_in;
use kindex_model::kind::{Column, Kind, Platform};
use kindex_model::object::Object;
use kindex_model::projection::extract;
use kindex_model::value::Value;
use tokio::time::sleep;

use crate::backoff::{base, pause};
use crate::cause::Retry;
use crate::cells::{holds, param};
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::migration::memory::note;
use crate::migration::{MigrateOptions, sql};
use crate::pace::Pace;
use crate::progress::Progress;
use crate::sql_store::SqlStore;

/// Rows a page: few enough that a writer who waits for one of them hardly notices.
const PAGE_ROWS: u32 = 200;

/// How often a page is tried while writers of the table or the network are in the way.
const ATTEMPTS_MAX: u32 = 60;
/// Between two attempts, at most.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The filling of some columns of a table.
pub(super) struct Fill<'a> {
    /// Of the migration.
    pub(super) number: u32,
    pub(super) table: &'a str,
    pub(super) columns: &'a [&'a str],
}

/// Rows that were filled.
struct Page {
    last: i64,
    rows: usize,
    changed: u64,
}

/// A row whose columns hold something else than its text says.
struct Stale {
    seq: i64,
    version: i64,
    values: Vec<Value>,
}

impl Fill<'_> {
    /// Fills from after the given place on, and says how many rows it changed. A column that this
    /// program does not have any more is dropped by a later migration, and needs no filling.
    pub(super) async fn run<D: Driver>(
        &self,
        store: &SqlStore<D>,
        after: Option<i64>,
        options: &MigrateOptions,
        progress: &dyn Progress,
    ) -> Result<u64, StoreError> {
        let kinds = store.registry.kinds.iter();
        let Some(kind) = kinds.copied().find(|kind| kind.table == self.table) else {
            return Ok(0);
        };
        let wanted = kind.columns.iter().filter(|column| self.columns.contains(&column.name));
        let columns: Vec<&Column> = wanted.collect();
        if columns.is_empty() {
            return Ok(0);
        }
        progress.begin(&format!("fill {}", self.table), Some(count(store, kind).await?));
        let filled = self.fill(store, kind, &columns, after, options, progress).await;
        progress.end();
        filled
    }

    async fn fill<D: Driver>(
        &self,
        store: &SqlStore<D>,
        kind: &Kind,
        columns: &[&Column],
        after: Option<i64>,
        options: &MigrateOptions,
        progress: &dyn Progress,
    ) -> Result<u64, StoreError> {
        let (began, mut pace) = (Instant::now(), Pace::new(options.rows_per_second));
        let page_rows = options.page_rows.unwrap_or(PAGE_ROWS).max(1);
        let mut after = after.unwrap_or(i64::MIN);
        let (mut changed, mut attempts) = (0, 1);
        loop {
            let page = match self.page(store, kind, columns, after, page_rows).await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(changed),
                Err(StoreError::Retryable { cause, .. })
                    if attempts < ATTEMPTS_MAX && cause.retry() == Retry::Later =>
                {
                    progress.note("waiting for the writers of the table");
                    let wait = pause(attempts, base(cause.label()), PAUSE_MAX, &mut rand::rng());
                    sleep(wait).await;
                    attempts += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            (after, attempts) = (page.last, 1);
            changed += page.changed;
            progress.advance(page.rows as u64);
            sleep(pace.pass(page.rows, began.elapsed())).await;
        }
    }

    /// Fills the rows after a place, and notes how far it came; `None` where there are none. What was done of it, and
    /// is done once more, changes nothing.
    async fn page<D: Driver>(
        &self,
        store: &SqlStore<D>,
        kind: &Kind,
        columns: &[&Column],
        after: i64,
        page_rows: u32,
    ) -> Result<Option<Page>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let spelling = store.connections.driver.spelling();
        let statement = sql::fill_page(spelling, kind, columns);
        let params = [Param::Int(after), Param::Int(page_rows.into())];
        let rows = store.connections.query(statement, &params).await.map_err(failed)?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        let mut page = Page {
            last: last.int(0).map_err(failed)?,
            rows: rows.len(),
            changed: 0,
        };
        let mut stale = Vec::new();
        for row in &rows {
            stale.extend(stale_row(&store.registry.platform, kind, row, columns).map_err(failed)?);
        }
        if !stale.is_empty() {
            let statement = sql::fill(spelling, kind, columns, stale.len());
            let params: Vec<Param<'_>> = stale.iter().flat_map(Stale::params).collect();
            page.changed = store.connections.execute(statement, &params).await.map_err(failed)?;
        }
        let params = [Param::Int(page.last), Param::Int(self.number.into())];
        note(store, sql::filled_up_to(), &params).await?;
        Ok(Some(page))
    }
}

async fn count<D: Driver>(store: &SqlStore<D>, kind: &Kind) -> Result<u64, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let rows = store
        .connections
        .query(sql::count(kind.table), &[])
        .await
        .map_err(failed)?;
    let counted = rows.first().map(|row| row.int(0)).transpose().map_err(failed)?;
    Ok(counted.unwrap_or(0).unsigned_abs())
}

/// `None` where the columns hold what the text says in its kind's own version, as after a conversion of the row beside
/// this. A text that cannot be read, or has no form in that version, leaves them alone.
fn stale_row(
    platform: &Platform,
    kind: &Kind,
    row: &impl Cells,
    columns: &[&Column],
) -> Result<Option<Stale>, sqlx::Error> {
    let Ok(object) = Object::parse_str(&row.text(2)?) else {
        return Ok(None);
    };
    let Ok(object) = object_in(platform, kind, &object, kind.version) else {
        return Ok(None);
    };
    let owned: Vec<Column> = columns.iter().map(|column| **column).collect();
    let values = extract(&owned, &object, &mut Vec::new());
    let is_current = holds(row, 3, columns.iter().copied().zip(&values));
    Ok((!is_current).then_some(Stale {
        seq: row.int(0)?,
        version: row.int(1)?,
        values,
    }))
}

impl Stale {
    fn params(&self) -> Vec<Param<'_>> {
        let values = self.values.iter().map(param);
        [Param::Int(self.seq), Param::Int(self.version)]
            .into_iter()
            .chain(values)
            .collect()
    }
}
