//! Questions about values of another program that may not fit.

use crate::driver::Statement;

/// Texts that are read at once.
const DOUBTFUL_ROWS: u32 = 1_000;

/// How many rows hold a text of more characters, and one of the texts.
pub(crate) fn too_long(table: &str, column: &str, characters: &str) -> Statement {
    counted(table, column, &format!("CHAR_LENGTH(`{column}`) > {characters}"))
}

/// How many rows hold NULL, and the first of them by another column.
pub(crate) fn nulls(table: &str, column: &str, shown: &str) -> Statement {
    counted(table, shown, &format!("`{column}` IS NULL"))
}

/// How many rows hold a date that is none, and the first of them.
pub(crate) fn zero_dates(table: &str, column: &str, shown: &str) -> Statement {
    counted(
        table,
        shown,
        &format!("MONTH(`{column}`) = 0 OR DAYOFMONTH(`{column}`) = 0"),
    )
}

fn counted(table: &str, shown: &str, condition: &str) -> Statement {
    Statement::once(format!(
        "SELECT COUNT(*), CAST(MIN(`{shown}`) AS CHAR) FROM `{table}` WHERE {condition}"
    ))
}

/// Keys that an object has more than once: uid, key, how often, and how many such keys there are.
/// The table's own collation may take two keys for one, so bytes are compared.
pub(crate) fn twice(table: &str) -> Statement {
    Statement::once(format!(
        "SELECT CAST(`uid` AS CHAR), CAST(`name` AS CHAR), `times`, COUNT(*) OVER () FROM (SELECT \
         MIN(`obj_uid`) AS `uid`, MIN(`key`) AS `name`, COUNT(*) AS `times` FROM `{table}` \
         GROUP BY CAST(`obj_uid` AS BINARY), CAST(`key` AS BINARY) HAVING COUNT(*) > 1) AS `found` \
         ORDER BY 1, 2 LIMIT 1"
    ))
}

/// Uid and text of rows that may hold no object of that uid, as far as the server can tell, in order of uid. It calls
/// an object of many levels invalid that is not. Parameter, where it goes on: the last uid before.
pub(crate) fn doubtful(table: &str, goes_on: bool) -> Statement {
    let after = if goes_on { "`uid` > ? AND " } else { "" };
    Statement::once(format!(
        "SELECT CAST(`uid` AS CHAR), CAST(`json` AS CHAR) FROM `{table}` WHERE {after}(`json` IS NULL OR CASE \
         WHEN JSON_VALID(`json`) THEN COALESCE(JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.metadata.uid')), '') <> `uid` \
         ELSE TRUE END) ORDER BY `uid` LIMIT {DOUBTFUL_ROWS}"
    ))
}
