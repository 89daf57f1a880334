//! The tables of a database, as its catalog shows them.

use std::time::Duration;

use tokio::time::sleep;

use crate::connections::{Connections, failure};
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver};
use crate::error::StoreError;
use crate::live::{LiveColumn, LiveKey, LiveTable};
use crate::statements::fixed;

/// What errors of reading the catalog name as their kind.
const CATALOG: &str = "the tables of the database";
/// Between two readings of tables that may be changing.
const PAUSE: Duration = Duration::from_millis(50);
/// Readings after which what was read last counts.
const READINGS_MAX: u32 = 100;

/// All tables of the database by name, without views.
pub(super) async fn tables<D: Driver>(connections: &Connections<D>) -> Result<Vec<LiveTable>, StoreError> {
    let failed = |error| failure::<D>(CATALOG, error);
    let spelling = connections.driver.spelling();
    let columns = connections.query(fixed(spelling.all_columns()), &[]).await;
    let keys = connections.query(fixed(spelling.all_keys()), &[]).await;
    assemble(&columns.map_err(failed)?, &keys.map_err(failed)?, spelling).map_err(failed)
}

/// All tables, read again until nothing changes any more: while a server puts an altered table in the place of the old
/// one, its catalog may know the table without its keys.
pub(super) async fn settled_tables<D: Driver>(connections: &Connections<D>) -> Result<Vec<LiveTable>, StoreError> {
    let mut before = tables(connections).await?;
    for _ in 0..READINGS_MAX {
        sleep(PAUSE).await;
        let now = tables(connections).await?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(before)
}

/// From rows of columns and of keys' columns, both in order.
fn assemble<R: Cells>(columns: &[R], keys: &[R], spelling: &dyn Spelling) -> Result<Vec<LiveTable>, sqlx::Error> {
    let mut tables: Vec<LiveTable> = Vec::new();
    for row in columns {
        let name = row.text(0)?;
        if tables.last().is_none_or(|table| table.name != name) {
            tables.push(LiveTable {
                name,
                collation: row.text_or_null(1)?,
                columns: Vec::new(),
                primary_key: Vec::new(),
                keys: Vec::new(),
            });
        }
        let table = tables.last_mut().expect("pushed above");
        table.columns.push(LiveColumn {
            name: row.text(2)?,
            ty: spelling.plain_type(&row.text(3)?),
            required: row.int(4)? != 0,
            has_default: row.int(5)? != 0,
            collation: row.text_or_null(6)?,
        });
    }
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    for row in keys {
        let (name, key, column) = (row.text(0)?, row.text_or_null(1)?, row.text(2)?);
        let Ok(at) = tables.binary_search_by(|table| table.name.cmp(&name)) else {
            continue;
        };
        let table = &mut tables[at];
        let Some(key) = key else {
            table.primary_key.push(column);
            continue;
        };
        match table.keys.last_mut() {
            Some(last) if last.name == key => last.columns.push(column),
            Some(_) | None => table.keys.push(LiveKey {
                name: key,
                columns: vec![column],
                unique: row.int(3)? != 0,
            }),
        }
    }
    for table in &mut tables {
        table.keys.sort_by(|one, other| one.name.cmp(&other.name));
    }
    Ok(tables)
}
