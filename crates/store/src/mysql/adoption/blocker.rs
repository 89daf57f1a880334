//! The messages about tables that cannot be adopted: where, why, and what to do.

use crate::adoption::{AdoptionBlocker, Example};
use crate::live::{LiveColumn, LiveKey, LiveTable};

impl AdoptionBlocker {
    pub(super) fn foreign_type(table: &LiveTable, column: &str, has: &str, wants: &str) -> Self {
        Self::new(
            format!("{}.{column}", table.name),
            format!("is {has}, and nothing tells how its values become {wants}"),
            format!("turn it into {wants} by hand: ALTER TABLE `{}` …", table.name),
        )
    }

    pub(super) fn primary_key(table: &LiveTable, wants: &[&str]) -> Self {
        Self::new(
            table.name.clone(),
            format!(
                "its primary key is ({}), not ({})",
                table.primary_key.join(", "),
                wants.join(", ")
            ),
            format!(
                "ALTER TABLE `{}` DROP PRIMARY KEY, ADD PRIMARY KEY (`{}`)",
                table.name,
                wants.join("`, `")
            ),
        )
    }

    pub(super) fn needy_column(table: &LiveTable, column: &LiveColumn) -> Self {
        Self::new(
            format!("{}.{}", table.name, column.name),
            "a column that Kindex does not write, NOT NULL and without a default",
            format!(
                "give it a default, or ALTER TABLE `{}` MODIFY it to take NULL",
                table.name
            ),
        )
    }

    pub(super) fn unique_key(table: &LiveTable, key: &LiveKey) -> Self {
        Self::new(
            format!("{}, key {}", table.name, key.name),
            "is unique; rows of deleted objects stay beside those of new ones with the same values",
            format!("ALTER TABLE `{}` DROP KEY `{}`", table.name, key.name),
        )
    }

    pub(super) fn other_spelling(found: &str, wanted: &str) -> Self {
        Self::new(
            found,
            format!("Kindex calls this table `{wanted}`"),
            format!("RENAME TABLE `{found}` TO `{wanted}`"),
        )
    }

    pub(super) fn too_long(table: &str, column: &str, characters: &str, example: &Example<'_>) -> Self {
        Self::new(
            format!("{table}.{column}"),
            format!(
                "{} rows are longer than {characters} characters, the first `{}…`",
                example.rows,
                example.first.chars().take(60).collect::<String>()
            ),
            format!("shorten or remove them: SELECT * FROM `{table}` WHERE CHAR_LENGTH(`{column}`) > {characters}"),
        )
    }

    pub(super) fn null(table: &str, column: &str, example: &Example<'_>) -> Self {
        Self::new(
            format!("{table}.{column}"),
            format!("NULL in {} rows, the first is `{}`", example.rows, example.first),
            format!("give them a value or remove them: SELECT * FROM `{table}` WHERE `{column}` IS NULL"),
        )
    }

    pub(super) fn zero_date(table: &str, column: &str, example: &Example<'_>) -> Self {
        Self::new(
            format!("{table}.{column}"),
            format!(
                "a date without a month or a day in {} rows, the first is `{}`",
                example.rows, example.first
            ),
            format!(
                "UPDATE `{table}` SET `{column}` = '1970-01-01' WHERE MONTH(`{column}`) = 0 OR DAY(`{column}`) = 0"
            ),
        )
    }

    pub(super) fn twice(table: &str, uid: &str, key: &str, rows: i64, pairs: i64) -> Self {
        Self::new(
            table,
            format!("{pairs} keys stand more than once for an object, such as `{key}` of `{uid}`, {rows} times"),
            format!(
                "keep the rows that were written last: DELETE a FROM `{table}` a JOIN `{table}` b ON a.obj_uid = \
                 b.obj_uid AND BINARY a.`key` = BINARY b.`key` AND a.id < b.id"
            ),
        )
    }

    pub(super) fn no_object(table: &str, uid: &str, why: &str, rows: usize) -> Self {
        Self::new(
            format!("{table}.json"),
            format!("{rows} rows hold no object that can be read; that of uid `{uid}`: {why}"),
            format!(
                "correct the text, or remove the row with its labels and annotations: SELECT * FROM `{table}` WHERE uid = '{uid}'"
            ),
        )
    }
}
