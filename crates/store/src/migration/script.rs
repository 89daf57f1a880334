//! A migration's text as steps. Pure: what a step does is said by its directive, and never read
//! out of its SQL.

use crate::schema::statements;

const DIRECTIVE: &str = "-- step: ";

/// One step of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A statement, and what is there or gone once it has run.
    Statement { effect: Effect<'a>, sql: &'a str },
    /// Columns are read anew from the stored text of every row.
    Fill { table: &'a str, columns: Vec<&'a str> },
}

/// What a statement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect<'a> {
    Table {
        name: &'a str,
        is_there: bool,
    },
    Column {
        table: &'a str,
        name: &'a str,
        is_there: bool,
    },
    Key {
        table: &'a str,
        name: &'a str,
        is_there: bool,
    },
    /// The new name is there, and nothing can tell whether the old one ever was.
    Renamed {
        table: &'a str,
        to: &'a str,
    },
    /// Another type, which running again does not change further.
    Changed {
        table: &'a str,
        column: &'a str,
    },
}

impl Step<'_> {
    /// The directive, for people.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Fill { table, columns } => format!("fill {table}: {}", columns.join(", ")),
            Self::Statement { effect, .. } => effect.title(),
        }
    }
}

impl Effect<'_> {
    /// Whether what the statement is about is there once it has run.
    pub(super) fn leaves_it_there(&self) -> bool {
        match self {
            Self::Table { is_there, .. } | Self::Column { is_there, .. } | Self::Key { is_there, .. } => *is_there,
            Self::Renamed { .. } | Self::Changed { .. } => true,
        }
    }

    fn title(self) -> String {
        let verb = |is_there| if is_there { "add" } else { "drop" };
        match self {
            Self::Table { name, is_there: true } => format!("create table {name}"),
            Self::Table { name, is_there: false } => format!("drop table {name}"),
            Self::Column { table, name, is_there } => format!("{} column {table}.{name}", verb(is_there)),
            Self::Key { table, name, is_there } => format!("{} key {name} of {table}", verb(is_there)),
            Self::Renamed { table, to } => format!("rename a column of {table} to {to}"),
            Self::Changed { table, column } => format!("change column {table}.{column}"),
        }
    }
}

/// Why a text is no migration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    line: usize,
    problem: String,
}

/// Reads the steps in order.
pub(super) fn parse(text: &str) -> Result<Vec<Step<'_>>, ScriptError> {
    let mut heads: Vec<Head<'_>> = Vec::new();
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (number, start) = (index + 1, offset);
        offset += line.len();
        if let Some(directive) = line.strip_prefix(DIRECTIVE) {
            let directive = directive.trim();
            heads.push(Head {
                line: number,
                directive,
                start,
                end: offset,
            });
        } else if heads.is_empty() && !line.trim().is_empty() && !line.starts_with("--") {
            let problem = format!("a statement before the first `{}`", DIRECTIVE.trim());
            return Err(ScriptError { line: number, problem });
        }
    }
    let ends = heads.iter().skip(1).map(|head| head.start).chain([text.len()]);
    let steps = heads.iter().zip(ends).map(|(head, end)| {
        let problem = |problem| ScriptError {
            line: head.line,
            problem,
        };
        step(head.directive, &text[head.end..end]).map_err(problem)
    });
    steps.collect()
}

/// The line that begins a step.
struct Head<'a> {
    line: usize,
    directive: &'a str,
    /// Where the line starts and ends, in bytes.
    start: usize,
    end: usize,
}

fn step<'a>(directive: &'a str, body: &'a str) -> Result<Step<'a>, String> {
    let words: Vec<&str> = directive.split_whitespace().collect();
    let effect = match words.as_slice() {
        ["fill", table, columns] => {
            if !statements(body).is_empty() {
                return Err("a fill has no statement".to_owned());
            }
            return Ok(Step::Fill {
                table,
                columns: columns.split(',').collect(),
            });
        }
        ["create-table", name] => Effect::Table { name, is_there: true },
        ["drop-table", name] => Effect::Table { name, is_there: false },
        ["add-column", table, name] => Effect::Column {
            table,
            name,
            is_there: true,
        },
        ["drop-column", table, name] => Effect::Column {
            table,
            name,
            is_there: false,
        },
        ["add-key", table, name] => Effect::Key {
            table,
            name,
            is_there: true,
        },
        ["drop-key", table, name] => Effect::Key {
            table,
            name,
            is_there: false,
        },
        ["rename-column", table, _, to] => Effect::Renamed { table, to },
        // Keys have no other trace than their names.
        ["rename-key", table, _, name] => Effect::Key {
            table,
            name,
            is_there: true,
        },
        ["change-column", table, column] => Effect::Changed { table, column },
        _ => return Err(format!("`{directive}` is not a step that this program knows")),
    };
    match statements(body).as_slice() {
        [sql] => Ok(Step::Statement { effect, sql }),
        others => Err(format!("`{directive}` has {} statements, and needs one", others.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-- 0002_model_budget\n-- compatible: 2\n\n\
        -- step: add-column model budget\n-- why; not\nALTER TABLE `model` ADD COLUMN `budget` BIGINT;\n\n\
        -- step: fill model budget,owner\n";

    #[test]
    fn steps_come_in_order_with_their_statements() {
        let steps = parse(TEXT).expect("a migration");
        assert_eq!(steps.len(), 2);
        let effect = Effect::Column {
            table: "model",
            name: "budget",
            is_there: true,
        };
        assert!(
            matches!(&steps[0], Step::Statement { effect: found, sql } if *found == effect && sql.ends_with("BIGINT")),
            "{steps:?}"
        );
        assert_eq!(
            steps[1],
            Step::Fill {
                table: "model",
                columns: vec!["budget", "owner"]
            }
        );
        assert_eq!(steps[1].title(), "fill model: budget, owner");
    }

    #[test]
    fn a_text_without_steps_changes_nothing() {
        assert_eq!(parse("-- 0003_nothing\n"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_migration_is_refused_by_line() {
        for (text, line, problem) in [
            ("DROP TABLE model;\n", 1, "before the first"),
            ("-- step: drop-table model\n", 1, "0 statements"),
            (
                "\n-- step: drop-table a\nDROP TABLE a; DROP TABLE b;\n",
                2,
                "2 statements",
            ),
            ("-- step: explode model\nSELECT 1;\n", 1, "not a step"),
            ("-- step: fill model a\nUPDATE model SET a = 1;\n", 1, "no statement"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.problem.contains(problem), "{error}");
        }
    }
}
