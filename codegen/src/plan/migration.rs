//! A migration as files: how they are named, what their lines say, how the next one is called. What is in a chain of
//! them is not known here.

use std::fmt::Write as _;

use crate::dialect::{self, Dialect, Step, Verb};
use crate::model::ColumnName;
use crate::source::MIGRATIONS;

/// Starts the line of the lowest schema number whose programs may go on writing.
const COMPATIBLE: &str = "-- compatible: ";
/// Starts the line of a step.
pub const STEP: &str = "-- step: ";

/// Starts the line that lets a finding of the lint pass: in front of the first step for the whole file, in a step for
/// that step.
pub const ALLOW: &str = "-- kindex:allow ";

/// A planned migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// From 1, without gaps.
    pub number: u32,
    /// `model_budget`.
    pub name: String,
    /// The lowest number of a schema whose programs may go on writing once this migration has run.
    pub compatible: u32,
    /// Those that it has a file of. One that was planned before there was a dialect has none of that one.
    pub dialects: Vec<&'static dyn Dialect>,
    /// The chain's value at the last file of this number.
    pub checksum: String,
}

impl Migration {
    /// `0002_model_budget`.
    pub fn stem(&self) -> String {
        stem(self.number, &self.name)
    }

    /// `0002_model_budget.mysql.sql`.
    pub fn file(&self, dialect: &dyn Dialect) -> String {
        file_name(self.number, &self.name, dialect)
    }

    /// `schema/migrations/0002_model_budget.mysql.sql`.
    pub fn path(&self, dialect: &dyn Dialect) -> String {
        format!("{MIGRATIONS}/{}", self.file(dialect))
    }
}

fn stem(number: u32, name: &str) -> String {
    format!("{number:04}_{name}")
}

pub(super) fn file_name(number: u32, name: &str, dialect: &dyn Dialect) -> String {
    format!("{}.{}.sql", stem(number, name), dialect.word())
}

/// The number, name and dialect that a file name says.
pub(crate) fn parse_file_name(file: &str) -> Option<(u32, &str, &'static dyn Dialect)> {
    let (stem, dialect) = file.strip_suffix(".sql")?.rsplit_once('.')?;
    let dialect = dialect::named(dialect)?;
    let (digits, name) = stem.split_once('_')?;
    let number: u32 = digits.parse().ok()?;
    let is_right = file_name(number, name, dialect) == file && is_name(name) && number > 0;
    is_right.then_some((number, name, dialect))
}

/// Whether a migration may be called so: as a column may.
pub fn is_name(name: &str) -> bool {
    ColumnName::parse(name).is_ok()
}

/// The lowest compatible number that the text of a migration names.
pub(crate) fn parse_compatible(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix(COMPATIBLE))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The lowest number of a schema whose programs may go on writing after these steps, which make up number `number`.
/// `before` is that of the migration before.
pub(super) fn compatible(steps: &[Step], number: u32, before: Option<u32>) -> u32 {
    match before {
        Some(before) if steps.iter().all(Step::is_additive) => before,
        Some(_) | None => number,
    }
}

/// The text of a migration in one dialect.
pub(super) fn render(
    (number, name): (u32, &str),
    compatible: u32,
    steps: &[Step],
    allowed: &[String],
    dialect: &dyn Dialect,
) -> String {
    let mut text = format!(
        "-- {}\n\
         {COMPATIBLE}{compatible}\n\
         --\n\
         -- Planned by `kindex plan`; `kindex migrate` takes the steps in order and can go on after any of them.\n",
        stem(number, name)
    );
    for allowed in allowed {
        text.push_str(&format!("{ALLOW}{allowed}\n"));
    }
    for (step, statement) in dialect.spell(steps) {
        write!(text, "\n{STEP}{step}\n").expect("writing to a String cannot fail");
        if let Some(note) = note(&step, dialect) {
            text.push_str(&format!("-- {note}\n"));
        }
        if let Some(statement) = statement {
            text.push_str(&statement);
            text.push('\n');
        }
    }
    text
}

/// What the statement, if there is one, does not say: what was there before, and where values come from.
fn note(step: &Step, dialect: &dyn Dialect) -> Option<String> {
    matches!(step.verb(), Verb::ChangeColumn | Verb::Fill)
        .then(|| step.detail(|ty, required| dialect.column_type(ty, required)))
}

/// What a migration of these steps is called where nobody says: after the first step that says most.
pub(super) fn suggest_name(steps: &[Step], number: u32) -> String {
    if number == 1 {
        return "initial".to_owned();
    }
    let telling = |step: &&Step| !matches!(step, Step::Fill { .. } | Step::DropKey { .. });
    let (mut telling, all) = (steps.iter().filter(telling), steps.first());
    let Some(step) = telling.next().or(all) else {
        return "empty".to_owned();
    };
    let words = format!("{step}").replace([' ', '-', ','], "_");
    let table = step.table();
    let elsewhere = steps
        .iter()
        .any(|other| other.table() != table && !is_beside(other, step));
    let name = if elsewhere { format!("{words}_and_more") } else { words };
    if is_name(&name) { name } else { "changes".to_owned() }
}

/// Side tables come and go with their table.
fn is_beside(step: &Step, other: &Step) -> bool {
    let (one, other) = (step.table().as_str(), other.table().as_str());
    one.starts_with(&format!("{other}_")) || other.starts_with(&format!("{one}_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Sqlite;

    #[test]
    fn a_file_name_reads_back() {
        let file = file_name(12, "model_budget", &Sqlite);
        assert_eq!(file, "0012_model_budget.sqlite.sql");
        let sqlite: &dyn Dialect = &Sqlite;
        assert_eq!(parse_file_name(&file), Some((12, "model_budget", sqlite)));
    }

    #[test]
    fn other_files_are_no_migrations() {
        for wrong in [
            "migrations.sum",
            "12_short.mysql.sql",
            "0000_zero.mysql.sql",
            "0001_Upper.mysql.sql",
            "0001_a.postgres.sql",
            "0001.mysql.sql",
            "0001_a.sql",
        ] {
            assert_eq!(parse_file_name(wrong), None, "{wrong}");
        }
    }
}
