//! The tables of a database, as its catalogue shows them.

use std::time::Duration;

use tokio::time::sleep;

use crate::connections::{Connections, failure};
use crate::driver::{Cells, Driver};
use crate::error::StoreError;
use crate::live::{LiveColumn, LiveKey, LiveTable};
use crate::statements::fixed;

/// What errors of reading the catalogue name as their kind.
const CATALOGUE: &str = "the tables of the database";
/// The word for the primary key on all engines.
const PRIMARY: &str = "PRIMARY";
/// Between two readings of tables that may be changing.
const PAUSE: Duration = Duration::from_millis(50);
/// Readings after which what was read last counts.
const READINGS_MAX: u32 = 100;

/// All tables of the database by name, without views.
pub(super) async fn tables<D: Driver>(connections: &Connections<D>) -> Result<Vec<LiveTable>, StoreError> {
    let failed = |error| failure::<D>(CATALOGUE, error);
    let spelling = connections.driver.spelling();
    let columns = connections.query(fixed(spelling.all_columns()), &[]).await;
    let keys = connections.query(fixed(spelling.all_keys()), &[]).await;
    assemble(&columns.map_err(failed)?, &keys.map_err(failed)?).map_err(failed)
}

/// All tables, read again until nothing changes any more: while a server puts an altered table in the place of the old
/// one, its catalogue may know the table without its keys.
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
fn assemble<R: Cells>(columns: &[R], keys: &[R]) -> Result<Vec<LiveTable>, sqlx::Error> {
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
            ty: plain_type(&row.text(3)?),
            required: row.int(4)? != 0,
            has_default: row.int(5)? != 0,
            collation: row.text_or_null(6)?,
        });
    }
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    for row in keys {
        let (name, key, column) = (row.text(0)?, row.text(1)?, row.text(2)?);
        let Ok(at) = tables.binary_search_by(|table| table.name.cmp(&name)) else {
            continue;
        };
        let table = &mut tables[at];
        match table.keys.last_mut() {
            _ if key == PRIMARY => table.primary_key.push(column),
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

/// `bigint(20) unsigned` of MariaDB is MySQL's `bigint unsigned`; only of a flag the width means something.
fn plain_type(ty: &str) -> String {
    let ty = ty.to_lowercase();
    let is_whole = |word: &str| matches!(word, "tinyint" | "smallint" | "mediumint" | "int" | "bigint");
    match ty.split_once('(').zip(ty.split_once(')')) {
        Some(((word, _), (_, rest))) if is_whole(word) && ty != "tinyint(1)" => format!("{word}{rest}"),
        _ => ty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_widths_matter_only_for_a_flag() {
        for (ty, plain) in [
            ("bigint(20) unsigned", "bigint unsigned"),
            ("int(11)", "int"),
            ("int", "int"),
            ("tinyint(4)", "tinyint"),
            ("tinyint(1)", "tinyint(1)"),
            ("varchar(255)", "varchar(255)"),
            ("datetime(6)", "datetime(6)"),
            ("decimal(20,2)", "decimal(20,2)"),
            ("TEXT", "text"),
        ] {
            assert_eq!(plain_type(ty), plain);
        }
    }
}
