//! What SQLite's texts are called among those of the program.

use crate::dialect::{Dialect, Notation};

/// The SQL of SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteSpelling;

impl Notation for SqliteSpelling {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn word(&self) -> &'static str {
        "sqlite"
    }

    fn products(&self) -> &'static str {
        "SQLite"
    }

    /// Names in backquotes; parameters are `?` here, too.
    fn spell(&self, text: &str) -> String {
        text.replace(['[', ']'], "`")
    }

    /// Its whole numbers have 64 bits.
    fn power_of_two(&self, bit: u32) -> String {
        format!("(1 << {bit})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_parameters_stay() {
        let spelled = SqliteSpelling.spell("SELECT t.[key] FROM [thing] AS t WHERE t.[uid] IN (?,?)");
        assert_eq!(spelled, "SELECT t.`key` FROM `thing` AS t WHERE t.`uid` IN (?,?)");
    }

    #[test]
    fn a_power_of_two_is_one_operand() {
        assert_eq!(SqliteSpelling.power_of_two(62), "(1 << 62)");
    }
}
