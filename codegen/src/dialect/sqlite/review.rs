//! Statements that people edited: what in them may fail. Nothing may lock: the database is a file of one program, which
//! waits for it.

use crate::dialect::words::{has_pair, words};
use crate::dialect::{Lock, Verb};

/// Extracted columns may be NULL and repeat.
pub(super) fn refused_by_rows(verb: Verb, statement: &str) -> Option<&'static str> {
    let words = words(statement);
    match verb {
        Verb::AddKey => has_pair(&words, "CREATE", "UNIQUE").then_some("UNIQUE"),
        Verb::AddColumn | Verb::ChangeColumn => has_pair(&words, "NOT", "NULL").then_some("NOT NULL"),
        Verb::CreateTable
        | Verb::DropTable
        | Verb::DropKey
        | Verb::DropColumn
        | Verb::RenameColumn
        | Verb::RenameKey
        | Verb::Fill => None,
    }
}

/// There is one writer at a time, whatever a statement says.
pub(super) fn locks(_verb: Verb, _statement: &str) -> Option<Lock> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_rows_is_found_and_a_name_is_not() {
        for (verb, statement, found) in [
            (
                Verb::AddKey,
                "CREATE UNIQUE INDEX IF NOT EXISTS `a` ON `t` (`c`);",
                Some("UNIQUE"),
            ),
            (Verb::AddKey, "create unique index `a` ON `t` (`c`);", Some("UNIQUE")),
            (Verb::AddKey, "CREATE INDEX IF NOT EXISTS `a` ON `t` (`unique`);", None),
            (
                Verb::AddColumn,
                "ALTER TABLE `t` ADD COLUMN `c` TEXT NOT NULL;",
                Some("NOT NULL"),
            ),
            (Verb::AddColumn, "ALTER TABLE `t` ADD COLUMN `c` TEXT;", None),
            (Verb::CreateTable, "CREATE TABLE `t` (`c` TEXT NOT NULL) STRICT;", None),
        ] {
            assert_eq!(refused_by_rows(verb, statement), found, "{statement}");
        }
    }
}
