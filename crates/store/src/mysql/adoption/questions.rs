//! Queries for values of another program that may not fit.

use crate::adoption::{AdoptionBlocker, ColumnDefinition, Example, ValueCheck};
use crate::live::{LiveColumn, LiveTable};

/// Texts that are read at once.
const UNSURE_ROWS_MAX: u32 = 1_000;

/// See [`AdoptionSql::value_checks`](crate::adoption::AdoptionSql::value_checks).
pub(super) fn value_checks(table: &LiveTable, live: &LiveColumn, wanted: &ColumnDefinition<'_>) -> Vec<ValueCheck> {
    let (ty, column) = (wanted.catalog_type(), wanted.name);
    let length = ty.strip_prefix("varchar(").and_then(|rest| rest.strip_suffix(')'));
    let mut checks = Vec::new();
    if let Some(characters) = length.filter(|_| live.ty != ty) {
        let condition = format!("CHAR_LENGTH(`{column}`) > {characters}");
        let question = counted(&table.name, column, &condition);
        let [table, column, characters] = [&*table.name, column, characters].map(str::to_owned);
        let blocker = move |example: &Example<'_>| AdoptionBlocker::too_long(&table, &column, &characters, example);
        checks.push(value_check(question, blocker));
    }
    // A text that is NULL is no object either, and is reported as one.
    if wanted.required && !live.required && column != "json" {
        let question = counted(&table.name, shown(table), &format!("`{column}` IS NULL"));
        let [table, column] = [&*table.name, column].map(str::to_owned);
        checks.push(value_check(question, move |example| {
            AdoptionBlocker::null(&table, &column, example)
        }));
    }
    if ty.starts_with("datetime") && live.ty != ty {
        let condition = format!("MONTH(`{column}`) = 0 OR DAYOFMONTH(`{column}`) = 0");
        let question = counted(&table.name, shown(table), &condition);
        let [table, column] = [&*table.name, column].map(str::to_owned);
        checks.push(value_check(question, move |example| {
            AdoptionBlocker::zero_date(&table, &column, example)
        }));
    }
    checks
}

fn value_check(
    question: String,
    blocker: impl Fn(&Example<'_>) -> AdoptionBlocker + Send + Sync + 'static,
) -> ValueCheck {
    ValueCheck {
        question,
        blocker: Box::new(blocker),
    }
}

/// What tells the rows of a table apart, for people.
fn shown(table: &LiveTable) -> &str {
    table.primary_key.first().map_or("uid", String::as_str)
}

/// How many rows there are, and the first of them by another column.
fn counted(table: &str, shown: &str, condition: &str) -> String {
    format!("SELECT COUNT(*), CAST(MIN(`{shown}`) AS CHAR) FROM `{table}` WHERE {condition}")
}

/// Keys that an object has more than once: uid, key, how often, and how many such keys there are.
/// The table's own collation may take two keys for one, so bytes are compared.
pub(super) fn twice(table: &str) -> String {
    format!(
        "SELECT CAST(`uid` AS CHAR), CAST(`name` AS CHAR), `times`, COUNT(*) OVER () FROM (SELECT \
         MIN(`obj_uid`) AS `uid`, MIN(`key`) AS `name`, COUNT(*) AS `times` FROM `{table}` \
         GROUP BY CAST(`obj_uid` AS BINARY), CAST(`key` AS BINARY) HAVING COUNT(*) > 1) AS `found` \
         ORDER BY 1, 2 LIMIT 1"
    )
}

/// Uid and text of rows that may hold no object of that uid, as far as the server can tell, in order of uid. It calls
/// an object of many levels invalid that is not. Parameter, where it goes on: the last uid before.
pub(super) fn unsure_rows(table: &str, goes_on: bool) -> String {
    let after = if goes_on { "`uid` > ? AND " } else { "" };
    format!(
        "SELECT CAST(`uid` AS CHAR), CAST(`json` AS CHAR) FROM `{table}` WHERE {after}(`json` IS NULL OR CASE \
         WHEN JSON_VALID(`json`) THEN COALESCE(JSON_UNQUOTE(JSON_EXTRACT(`json`, '$.metadata.uid')), '') <> `uid` \
         ELSE TRUE END) ORDER BY `uid` LIMIT {UNSURE_ROWS_MAX}"
    )
}
