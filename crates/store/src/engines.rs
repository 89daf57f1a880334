//! The engines by the names of their dialects.

use crate::dialect::{Dialect, Spelling};
use crate::mysql::MySqlSpelling;
use crate::sqlite::SqliteSpelling;

/// How an engine spells SQL, for who asks without a connection.
pub(super) fn spelling(dialect: Dialect) -> &'static dyn Spelling {
    match dialect {
        Dialect::MySql => &MySqlSpelling,
        Dialect::Sqlite => &SqliteSpelling,
    }
}

/// In which the identity of a query is written, for all engines and always the same: tokens are under way for long.
pub(super) fn of_tokens() -> &'static dyn Spelling {
    &SqliteSpelling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_parameters_stay() {
        for dialect in [Dialect::MySql, Dialect::Sqlite] {
            let spelt = spelling(dialect).spell("SELECT t.[key] FROM [thing] AS t WHERE t.[uid] IN (?,?)");
            assert_eq!(spelt, "SELECT t.`key` FROM `thing` AS t WHERE t.`uid` IN (?,?)");
        }
    }

    #[test]
    fn a_prepared_comparison_is_of_a_text_and_its_bytes() {
        for dialect in [Dialect::MySql, Dialect::Sqlite] {
            let condition = spelling(dialect).exactly("name");
            assert!(condition.starts_with("[name] = ? AND LENGTH("), "{condition}");
            assert!(condition.ends_with(") = ?"), "{condition}");
        }
    }

    #[test]
    fn a_list_has_a_parameter_for_each_value() {
        for dialect in [Dialect::MySql, Dialect::Sqlite] {
            let condition = spelling(dialect).value_in("[uid]", 3);
            assert_eq!(condition, "[uid] IN (?,?,?)");
        }
    }
}
