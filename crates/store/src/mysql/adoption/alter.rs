//! What a table that others made needs to be the program's, as one statement, so that a server
//! copies it once. Pure: the table was read before, and whether its values fit is asked afterwards.

use crate::adoption::{AdoptionBlocker, Change, ColumnDefinition, Definition, KeyDefinition};
use crate::live::{LiveColumn, LiveKey, LiveTable};

/// All texts of ours compare by code point.
const COLLATION: &str = "utf8mb4_bin";

/// See [`AdoptionSql::change`](crate::adoption::AdoptionSql::change).
pub(super) fn change(
    live: Option<&LiveTable>,
    wanted: &Definition<'_>,
    extracted: &dyn Fn(&str) -> bool,
) -> Result<Option<Change>, Vec<AdoptionBlocker>> {
    let Some(live) = live else {
        return Ok(Some(Change {
            table: wanted.table.to_owned(),
            title: format!("create table {}", wanted.table),
            sql: wanted.create.to_owned(),
        }));
    };
    let mut clauses = Clauses::default();
    let mut blockers = foreign_parts(live, wanted);
    let mut rebuilt = Vec::new();
    let before = [None].into_iter().chain(wanted.columns.iter().map(Some));
    for (column, before) in wanted.columns.iter().zip(before) {
        let found = live.columns.iter().find(|it| it.name == column.name);
        match action_on(found, column, extracted(column.name)) {
            ColumnAction::Kept => {}
            ColumnAction::Modified => clauses.modify(column),
            ColumnAction::Added => clauses.add(column, before),
            ColumnAction::Rebuilt => {
                rebuilt.push(column.name);
                clauses.drop.push(format!("DROP COLUMN `{}`", column.name));
                clauses.add(column, before);
            }
            ColumnAction::Foreign(ty) => blockers.push(AdoptionBlocker::foreign_type(live, column.name, ty, column.ty)),
        }
    }
    clauses.primary_key(live, wanted);
    for key in &wanted.keys {
        let found = live.keys.iter().find(|it| it.name == key.name);
        let touched = key.columns.iter().any(|column| rebuilt.contains(column));
        clauses.key(found, key, touched);
    }
    for constraint in &wanted.constraints {
        clauses.constraint(live, wanted, constraint);
    }
    if !blockers.is_empty() {
        return Err(blockers);
    }
    Ok(clauses.statement(live).map(|sql| Change {
        table: live.name.clone(),
        title: format!("change table {}", live.name),
        sql,
    }))
}

/// What keeps writers of ours from a table, and cannot be changed without losing something.
fn foreign_parts(live: &LiveTable, wanted: &Definition<'_>) -> Vec<AdoptionBlocker> {
    let mut blockers = Vec::new();
    if live.primary_key != wanted.primary_key && !stays_unique(live, wanted) {
        blockers.push(AdoptionBlocker::primary_key(live, &wanted.primary_key));
    }
    for column in &live.columns {
        let is_ours = wanted.columns.iter().any(|it| it.name == column.name);
        if !is_ours && column.required && !column.has_default {
            blockers.push(AdoptionBlocker::needy_column(live, column));
        }
    }
    blockers.extend(
        live.keys
            .iter()
            .filter(|key| key.unique && !is_wanted(key, wanted))
            .map(|key| AdoptionBlocker::unique_key(live, key)),
    );
    blockers
}

/// Whether the values by which rows are told apart now are told apart by another key then.
fn stays_unique(live: &LiveTable, wanted: &Definition<'_>) -> bool {
    let unique = wanted.keys.iter().filter(|key| key.unique);
    !live.primary_key.is_empty() && unique.into_iter().any(|key| live.primary_key == key.columns)
}

fn is_wanted(live: &LiveKey, wanted: &Definition<'_>) -> bool {
    wanted
        .keys
        .iter()
        .any(|key| key.name == live.name && is_same(live, key))
}

fn is_same(live: &LiveKey, wanted: &KeyDefinition<'_>) -> bool {
    live.columns == wanted.columns && live.unique == wanted.unique
}

/// What is done about a column.
enum ColumnAction<'a> {
    Kept,
    Added,
    /// Its values stay, in another type.
    Modified,
    /// Its values are read anew.
    Rebuilt,
    /// Nothing tells how its values become ours.
    Foreign(&'a str),
}

fn action_on<'a>(live: Option<&'a LiveColumn>, wanted: &ColumnDefinition<'_>, extracted: bool) -> ColumnAction<'a> {
    let Some(live) = live else { return ColumnAction::Added };
    let ty = wanted.catalog_type();
    if live.ty == ty {
        let is_collated = live.collation.as_deref().is_none_or(|collation| collation == COLLATION);
        return if is_collated && live.required == wanted.required {
            ColumnAction::Kept
        } else {
            ColumnAction::Modified
        };
    }
    match (extracted, family(&live.ty).is_some_and(|it| family(&ty) == Some(it))) {
        (true, _) if grows(&live.ty, &ty) => ColumnAction::Modified,
        (true, _) => ColumnAction::Rebuilt,
        (false, true) => ColumnAction::Modified,
        (false, false) => ColumnAction::Foreign(&live.ty),
    }
}

/// Types among which the values of a base column pass from any to any other, where they are not too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Text,
    Bytes,
    Time,
    Number,
    Hash,
}

/// That of a type, if values pass from it at all.
fn family(ty: &str) -> Option<Family> {
    let word = ty.split(['(', ' ']).next().unwrap_or_default();
    match word {
        "varchar" | "char" | "tinytext" | "text" | "mediumtext" | "longtext" | "json" => Some(Family::Text),
        "tinyblob" | "blob" | "mediumblob" | "longblob" | "varbinary" => Some(Family::Bytes),
        "datetime" => Some(Family::Time),
        "smallint" | "mediumint" | "int" | "bigint" => Some(Family::Number),
        "binary" => Some(Family::Hash),
        _ => None,
    }
}

fn grows(from: &str, to: &str) -> bool {
    let length = |ty: &str| -> Option<u32> { ty.strip_prefix("varchar(")?.strip_suffix(')')?.parse().ok() };
    length(from).zip(length(to)).is_some_and(|(from, to)| from <= to)
}

/// The parts of an `ALTER TABLE`.
#[derive(Default)]
struct Clauses {
    drop: Vec<String>,
    change: Vec<String>,
}

impl Clauses {
    fn modify(&mut self, column: &ColumnDefinition<'_>) {
        self.change.push(format!("MODIFY COLUMN {}", column.text));
    }

    fn add(&mut self, column: &ColumnDefinition<'_>, before: Option<&ColumnDefinition<'_>>) {
        let place = before.map_or("FIRST".to_owned(), |before| format!("AFTER `{}`", before.name));
        self.change.push(format!("ADD COLUMN {} {place}", column.text));
    }

    /// In the statement that adds the column: a number that the engine assigns must be a key from the start.
    fn primary_key(&mut self, live: &LiveTable, wanted: &Definition<'_>) {
        if live.primary_key != wanted.primary_key {
            self.drop.push("DROP PRIMARY KEY".to_owned());
            let columns = wanted.primary_key.join("`, `");
            self.change.push(format!("ADD PRIMARY KEY (`{columns}`)"));
        }
    }

    fn key(&mut self, live: Option<&LiveKey>, wanted: &KeyDefinition<'_>, touched: bool) {
        if live.is_some_and(|live| is_same(live, wanted)) && !touched {
            return;
        }
        if live.is_some() {
            self.drop.push(format!("DROP KEY `{}`", wanted.name));
        }
        self.change.push(format!("ADD {}", wanted.text));
    }

    /// A table that lacks one of its columns cannot have it yet.
    fn constraint(&mut self, live: &LiveTable, wanted: &Definition<'_>, constraint: &str) {
        let lacks = |name: &str| live.columns.iter().all(|column| column.name != name);
        let named = |name: &str| constraint.contains(&format!("`{name}`"));
        if wanted
            .columns
            .iter()
            .any(|column| named(column.name) && lacks(column.name))
        {
            self.change.push(format!("ADD {constraint}"));
        }
    }

    /// Columns of others keep their collation. `CONVERT TO` would change it, and MySQL then leaves a
    /// column at TEXT that the same statement makes MEDIUMTEXT.
    fn statement(self, live: &LiveTable) -> Option<String> {
        let collated = live.collation.as_deref().is_none_or(|collation| collation == COLLATION);
        if collated && self.drop.is_empty() && self.change.is_empty() {
            return None;
        }
        let first = [
            "ENGINE=InnoDB".to_owned(),
            format!("DEFAULT CHARACTER SET utf8mb4 COLLATE {COLLATION}"),
        ];
        // Keys go before the columns that they are over.
        let (keys, columns): (Vec<_>, Vec<_>) = self
            .drop
            .into_iter()
            .partition(|clause| !clause.starts_with("DROP COLUMN"));
        let clauses: Vec<String> = first
            .into_iter()
            .chain(keys)
            .chain(columns)
            .chain(self.change)
            .collect();
        Some(format!("ALTER TABLE `{}`\n    {}", live.name, clauses.join(",\n    ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::adoption::definition::definitions;

    const SCRIPT: &str = "CREATE TABLE IF NOT EXISTS `model` (\n    `uid` VARCHAR(64) NOT NULL,\n    \
        `json` LONGTEXT NOT NULL,\n    `tier` INT,\n    `owner` VARCHAR(255),\n    \
        `seq` BIGINT NOT NULL AUTO_INCREMENT,\n    PRIMARY KEY (`seq`),\n    UNIQUE KEY `model_uid` (`uid`),\n    \
        KEY `model_tier` (`tier`),\n    KEY `model_owner` (`owner`)\n) ENGINE=InnoDB;\n";

    fn column(name: &str, ty: &str, required: bool) -> LiveColumn {
        LiveColumn {
            name: name.to_owned(),
            ty: ty.to_owned(),
            required,
            has_default: false,
            collation: None,
        }
    }

    fn key(name: &str, column: &str, unique: bool) -> LiveKey {
        LiveKey {
            name: name.to_owned(),
            columns: vec![column.to_owned()],
            unique,
        }
    }

    fn live() -> LiveTable {
        LiveTable {
            name: "model".to_owned(),
            collation: Some(COLLATION.to_owned()),
            columns: vec![
                column("uid", "varchar(64)", true),
                column("json", "longtext", true),
                column("tier", "int", false),
                column("owner", "varchar(255)", false),
                column("seq", "bigint", true),
            ],
            primary_key: vec!["seq".to_owned()],
            keys: vec![
                key("model_owner", "owner", false),
                key("model_tier", "tier", false),
                key("model_uid", "uid", true),
            ],
        }
    }

    fn changed(live: &LiveTable) -> Result<Option<String>, Vec<String>> {
        let tables = definitions(SCRIPT).expect("the emitter's form");
        let extracted = |column: &str| matches!(column, "tier" | "owner");
        match change(Some(live), &tables[0], &extracted) {
            Ok(change) => Ok(change.map(|change| change.sql)),
            Err(blockers) => Err(blockers.iter().map(AdoptionBlocker::to_string).collect()),
        }
    }

    #[test]
    fn a_table_of_ours_needs_nothing() {
        assert_eq!(changed(&live()), Ok(None));
    }

    #[test]
    fn one_statement_brings_all_that_is_lacking() {
        let mut other = live();
        other.collation = Some("utf8mb4_unicode_ci".to_owned());
        other.columns[0] = column("uid", "varchar(255)", true);
        other.columns[1] = column("json", "json", false);
        other.columns[2] = column("tier", "varchar(255)", false);
        other.columns.truncate(3);
        other.primary_key = vec!["uid".to_owned()];
        other.keys = vec![key("model_tier", "tier", false)];
        let sql = changed(&other)
            .expect("all of it can be changed")
            .expect("much differs");
        assert_eq!(
            sql,
            "ALTER TABLE `model`\n    ENGINE=InnoDB,\n    DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,\n    \
             DROP PRIMARY KEY,\n    DROP KEY `model_tier`,\n    DROP COLUMN `tier`,\n    MODIFY COLUMN `uid` VARCHAR(64) NOT NULL,\n    \
             MODIFY COLUMN `json` LONGTEXT NOT NULL,\n    ADD COLUMN `tier` INT AFTER `json`,\n    \
             ADD COLUMN `owner` VARCHAR(255) AFTER `tier`,\n    \
             ADD COLUMN `seq` BIGINT NOT NULL AUTO_INCREMENT AFTER `owner`,\n    ADD PRIMARY KEY (`seq`),\n    \
             ADD UNIQUE KEY `model_uid` (`uid`),\n    ADD KEY `model_tier` (`tier`),\n    ADD KEY `model_owner` (`owner`)"
        );
    }

    #[test]
    fn a_text_that_compares_otherwise_is_changed_even_where_its_type_is_ours() {
        let mut other = live();
        other.columns[3].collation = Some("utf8mb4_unicode_ci".to_owned());
        let sql = changed(&other)
            .expect("it can be changed")
            .expect("a collation differs");
        assert!(sql.ends_with("\n    MODIFY COLUMN `owner` VARCHAR(255)"), "{sql}");
        other.columns[3].name = "remark".to_owned();
        other.columns.push(column("owner", "varchar(255)", false));
        assert_eq!(changed(&other), Ok(None), "a column of others");
    }

    #[test]
    fn a_shorter_text_is_widened_and_a_longer_one_read_anew() {
        for (ty, clause) in [
            ("varchar(64)", "MODIFY COLUMN `owner`"),
            ("text", "DROP COLUMN `owner`"),
        ] {
            let mut other = live();
            other.columns[3] = column("owner", ty, false);
            let sql = changed(&other).expect("it can be changed").expect("a type differs");
            assert!(sql.contains(clause), "{sql}");
        }
    }

    #[test]
    fn what_would_be_lost_or_stand_in_the_way_is_refused() {
        let mut other = live();
        other.columns[1] = column("json", "longblob", true);
        other.columns.push(column("site", "int", true));
        other.columns.push(column("remark", "text", false));
        other.primary_key = vec!["site".to_owned()];
        other.keys.push(key("model_once", "owner", true));
        let blockers = changed(&other).expect_err("four parts are foreign");
        assert_eq!(blockers.len(), 4, "{blockers:?}");
        for word in ["json", "site", "primary key", "model_once"] {
            assert!(blockers.iter().any(|it| it.contains(word)), "{word}: {blockers:?}");
        }
    }
}
