//! The SQL text of an adoption beside the statements on tables: questions about values that may not
//! fit, and what is written to rows of another program. MySQL's dialect where a question is one of
//! its servers; what touches rows is the same for all.

use kindex_model::kind::{ColumnType, Kind};

use super::super::super::dialect::Dialect;
use super::super::super::driver::Statement;
use super::super::super::sql::{fixed, once, quoted};

/// Texts that are read at once.
const DOUBTFUL_ROWS: u32 = 1_000;

/// How many rows hold a text of more characters, and one of the texts.
pub(super) fn too_long(table: &str, column: &str, characters: &str) -> Statement {
    counted(table, column, &format!("CHAR_LENGTH(`{column}`) > {characters}"))
}

/// How many rows hold NULL, and the first of them by another column.
pub(super) fn nulls(table: &str, column: &str, shown: &str) -> Statement {
    counted(table, shown, &format!("`{column}` IS NULL"))
}

/// How many rows hold a date that is none, and the first of them.
pub(super) fn zero_dates(table: &str, column: &str, shown: &str) -> Statement {
    counted(
        table,
        shown,
        &format!("MONTH(`{column}`) = 0 OR DAYOFMONTH(`{column}`) = 0"),
    )
}

fn counted(table: &str, shown: &str, condition: &str) -> Statement {
    once(format!(
        "SELECT COUNT(*), CAST(MIN(`{shown}`) AS CHAR) FROM `{table}` WHERE {condition}"
    ))
}

/// Keys that an object has more than once: uid, key, how often, and how many such keys there are.
/// The table's own collation may take two keys for one, so bytes are compared.
pub(super) fn twice(table: &str) -> Statement {
    once(format!(
        "SELECT CAST(`uid` AS CHAR), CAST(`name` AS CHAR), `times`, COUNT(*) OVER () FROM (SELECT \
         MIN(`obj_uid`) AS `uid`, MIN(`key`) AS `name`, COUNT(*) AS `times` FROM `{table}` \
         GROUP BY CAST(`obj_uid` AS BINARY), CAST(`key` AS BINARY) HAVING COUNT(*) > 1) AS `found` \
         ORDER BY 1, 2 LIMIT 1"
    ))
}

/// Uid and text of rows that may hold no object of that uid, as far as the server can tell, in order of uid. It calls
/// an object of many levels invalid that is not. Parameter, where it goes on: the last uid before.
pub(super) fn doubtful(table: &str, goes_on: bool) -> Statement {
    let after = if goes_on { "`uid` > ? AND " } else { "" };
    once(format!(
        "SELECT CAST(`uid` AS CHAR), CAST(`json` AS CHAR) FROM `{table}` WHERE {after}(`json` IS NULL OR CASE \
         WHEN JSON_VALID(`json`) THEN COALESCE(JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.metadata.uid')), '') <> `uid` \
         ELSE TRUE END) ORDER BY `uid` LIMIT {DOUBTFUL_ROWS}"
    ))
}

/// Another adoption begins. Parameter: now.
pub(super) fn begin_again() -> Statement {
    fixed(
        "UPDATE `kindex_migrations` SET `steps_done` = 0, `fill_after` = NULL, `finish_time` = NULL, \
         `begin_time` = ? WHERE `number` = 0 AND `finish_time` IS NOT NULL",
    )
}

/// A page of rows: place, version, text, message, hash, deleted, evicted, extracted columns. Parameters:
/// place, rows.
pub(super) fn page(dialect: Dialect, kind: &Kind) -> Statement {
    let cells = kind.columns.iter().map(|column| match column.ty {
        ColumnType::Time => format!(", {}", dialect.time_text(column.name)),
        _ => format!(", `{}`", column.name),
    });
    once(format!(
        "SELECT `seq`, `res_version`, `json`, `proto`, `content_hash`, `delete_time` IS NOT NULL, \
         `evicted_time` IS NOT NULL{} FROM `{}` WHERE `seq` > ? ORDER BY `seq` LIMIT ?",
        cells.collect::<String>(),
        kind.table
    ))
}

/// What a row gets. Parameters: message or NULL, hash or NULL, whether it is evicted, extracted
/// columns, place, version.
pub(super) fn take_up(kind: &Kind) -> Statement {
    let columns = kind.columns.iter().map(|column| format!(", `{}` = ?", column.name));
    once(format!(
        "UPDATE `{}` SET `proto` = COALESCE(?, `proto`), `content_hash` = COALESCE(?, `content_hash`), \
         `evicted_time` = CASE WHEN ? THEN COALESCE(`update_time`, `create_time`) ELSE `evicted_time` END{} \
         WHERE `seq` = ? AND `res_version` = ?",
        kind.table,
        columns.collect::<String>()
    ))
}

/// How many rows a table has.
pub(super) fn count(table: &str) -> Statement {
    once(format!("SELECT COUNT(*) FROM {}", quoted(&[table])))
}
