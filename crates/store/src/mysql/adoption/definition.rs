//! The program's own schema text as tables, columns and keys. Reads the form that the emitter
//! writes, a line for each column and key, and refuses any other. Pure.

use crate::adoption::{ColumnDefinition, Definition, KeyDefinition};
use crate::schema::statements;

impl ColumnDefinition<'_> {
    /// The type as the servers' catalog tells it.
    pub(super) fn catalog_type(&self) -> String {
        match self.ty {
            "BOOLEAN" => "tinyint(1)".to_owned(),
            other => other.to_lowercase().replace(", ", ","),
        }
    }
}

/// Whether a statement creates one of the tables that Kindex keeps for itself.
pub(super) fn is_of_kindex(statement: &str) -> bool {
    statement.contains("CREATE TABLE IF NOT EXISTS `kindex_")
}

/// All tables of a script in order; the first line that cannot be read otherwise.
pub(super) fn definitions(script: &str) -> Result<Vec<Definition<'_>>, String> {
    statements(script).into_iter().filter_map(definition).collect()
}

/// `None` for a statement that creates no table.
fn definition(statement: &str) -> Option<Result<Definition<'_>, String>> {
    let create = &statement[statement.find("CREATE TABLE IF NOT EXISTS `")?..];
    let mut lines = create.lines();
    let (table, _) = quoted(lines.next()?.trim_start_matches("CREATE TABLE IF NOT EXISTS "))?;
    let mut definition = Definition {
        table,
        create,
        columns: Vec::new(),
        primary_key: Vec::new(),
        keys: Vec::new(),
        constraints: Vec::new(),
    };
    for line in lines {
        let line = line.trim();
        if line.starts_with(')') {
            return Some(Ok(definition));
        }
        let text = line.strip_suffix(',').unwrap_or(line);
        if definition.take(text).is_none() {
            return Some(Err(line.to_owned()));
        }
    }
    Some(Err(format!("the end of `{table}`")))
}

impl<'a> Definition<'a> {
    fn take(&mut self, text: &'a str) -> Option<()> {
        if let Some(columns) = text.strip_prefix("PRIMARY KEY ") {
            self.primary_key = names(columns)?;
        } else if text.starts_with("CONSTRAINT ") {
            self.constraints.push(text);
        } else if let Some((unique, key)) = key(text) {
            let (name, columns) = quoted(key)?;
            self.keys.push(KeyDefinition {
                name,
                text,
                columns: names(columns)?,
                unique,
            });
        } else {
            let (name, rest) = quoted(text)?;
            let ends = [" NOT NULL", " AUTO_INCREMENT"].into_iter();
            let end = ends.filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
            self.columns.push(ColumnDefinition {
                name,
                text,
                ty: &rest[..end],
                required: rest.contains(" NOT NULL"),
            });
        }
        Some(())
    }
}

/// Whether a key is unique, and what follows the words that say so.
fn key(text: &str) -> Option<(bool, &str)> {
    let unique = text.strip_prefix("UNIQUE KEY ").map(|rest| (true, rest));
    unique.or_else(|| Some((false, text.strip_prefix("KEY ")?)))
}

/// The name in backticks that a text begins with, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('`')?.split_once('`')?;
    Some((name, rest.trim_start()))
}

/// `` (`a`, `b`) ``
fn names(list: &str) -> Option<Vec<&str>> {
    let list = list.strip_prefix('(')?.strip_suffix(')')?;
    list.split(", ").map(|name| Some(quoted(name)?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "-- the tables; of one kind\nCREATE TABLE IF NOT EXISTS `model` (\n    \
        `uid` VARCHAR(64) NOT NULL,\n    `json` LONGTEXT NOT NULL,\n    \
        `cost` DECIMAL(20, 2),\n    `ready` BOOLEAN,\n    `id` BIGINT NOT NULL AUTO_INCREMENT,\n    \
        PRIMARY KEY (`id`),\n    UNIQUE KEY `model_uid` (`uid`),\n    KEY `model_cost` (`cost`, `ready`),\n    \
        CONSTRAINT `model_json` CHECK (JSON_VALID(`json`))\n) ENGINE=InnoDB;\n";

    #[test]
    fn every_line_of_a_table_is_a_column_a_key_or_a_constraint() {
        let tables = definitions(SCRIPT).expect("the emitter's form");
        let [table] = tables.as_slice() else {
            panic!("{tables:?}")
        };
        assert_eq!(
            (table.table, table.primary_key.as_slice()),
            ("model", ["id"].as_slice())
        );
        assert!(table.create.starts_with("CREATE TABLE") && table.create.ends_with("ENGINE=InnoDB"));
        let columns: Vec<_> = table
            .columns
            .iter()
            .map(|it| (it.name, it.catalog_type(), it.required))
            .collect();
        let wanted = [
            ("uid", "varchar(64)", true),
            ("json", "longtext", true),
            ("cost", "decimal(20,2)", false),
            ("ready", "tinyint(1)", false),
            ("id", "bigint", true),
        ];
        assert_eq!(
            columns,
            wanted.map(|(name, ty, required)| (name, ty.to_owned(), required))
        );
        assert_eq!(table.columns[1].text, "`json` LONGTEXT NOT NULL");
        assert_eq!(
            table.constraints,
            ["CONSTRAINT `model_json` CHECK (JSON_VALID(`json`))"]
        );
        assert_eq!((table.keys[0].name, table.keys[0].unique), ("model_uid", true));
        assert_eq!(table.keys[1].columns, ["cost", "ready"]);
        assert_eq!(table.keys[1].text, "KEY `model_cost` (`cost`, `ready`)");
        assert!(!table.keys[1].unique);
    }

    #[test]
    fn another_form_is_refused_by_line() {
        let strange = SCRIPT.replace("    `ready` BOOLEAN,", "    ready BOOLEAN,");
        assert_eq!(definitions(&strange), Err("ready BOOLEAN,".to_owned()));
    }
}
