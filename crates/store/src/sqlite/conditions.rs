//! Conditions as SQLite wants them. It compares bytes, but where LIKE ignores case.

use std::ops::RangeInclusive;

use kindex_model::value::Value;
use kindex_query::pattern::Pattern;

use crate::dialect::{ConditionSql, escape, marks, padded_bounds, piece, spaced_marks, text_piece, text_values};
use crate::sqlite::notation::SqliteSpelling;
use crate::statement::Statement;

impl ConditionSql for SqliteSpelling {
    fn equals(&self, column: &str, text: &str) -> Statement {
        text_piece(format!("{column} = ?"), text.to_owned())
    }

    /// Its length of a text would be in characters.
    fn exactly(&self, column: &str) -> String {
        format!("[{column}] = ? AND LENGTH(CAST([{column}] AS BLOB)) = ?")
    }

    /// A chain of so many words would be deeper than its parser goes.
    fn one_of(&self, column: &str, texts: &[String]) -> Statement {
        self.value_among(column, text_values(texts))
    }

    fn keyed_one_of(&self, column: &str, texts: &[String]) -> Statement {
        self.one_of(column, texts)
    }

    fn ordered(&self, column: &str, sign: &str, text: &str) -> Statement {
        text_piece(format!("{column} {sign} ?"), text.to_owned())
    }

    /// LIKE ignores case, and only GLOB can use a key.
    fn starts_with(&self, column: &str, prefix: &str) -> Statement {
        let pattern = escape(prefix, "*?[", |c| format!("[{c}]")) + "*";
        text_piece(format!("{column} GLOB ?"), pattern)
    }

    fn like(&self, column: &str, pattern: &Pattern) -> Statement {
        text_piece(format!("{column} GLOB ?"), glob(pattern))
    }

    fn digits_within(&self, column: &str, digits_max: usize, bounds: RangeInclusive<u64>) -> Statement {
        let [least, most] = padded_bounds(digits_max, &bounds);
        let padded = format!("substr('{:0digits_max$}' || {column}, -{digits_max})", 0);
        piece(
            format!("{column} <> '' AND {column} NOT GLOB ? AND {padded} BETWEEN ? AND ?"),
            vec![Value::Text("*[^0-9]*".to_owned()), least, most],
        )
    }

    fn value_in(&self, column: &str, values: usize) -> String {
        format!("{column} IN ({})", marks("?", values))
    }

    fn value_among(&self, column: &str, values: Vec<Value>) -> Statement {
        piece(format!("{column} IN ({})", spaced_marks("?", values.len())), values)
    }

    fn pair_in(&self, a: &str, b: &str, pairs: usize) -> String {
        format!("([{a}], [{b}]) IN (VALUES {})", marks("(?,?)", pairs))
    }
}

/// For `GLOB ?`.
fn glob(pattern: &Pattern) -> String {
    pattern.spelled('*', '?', |character| match character {
        '*' | '?' | '[' => format!("[{character}]"),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_spelled_for_glob() {
        let pattern = Pattern::parse(r"a%_\%\_\\*?[]!").expect("a pattern");
        assert_eq!(glob(&pattern), r"a*?%_\[*][?][[]]!");
    }

    #[test]
    fn a_prepared_comparison_is_of_a_text_and_its_bytes() {
        assert_eq!(
            SqliteSpelling.exactly("name"),
            "[name] = ? AND LENGTH(CAST([name] AS BLOB)) = ?"
        );
    }

    #[test]
    fn people_are_shown_a_list_with_spaces() {
        assert_eq!(SqliteSpelling.value_in("[uid]", 3), "[uid] IN (?,?,?)");
        let shown = SqliteSpelling.value_among("[uid]", vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(shown.sql, "[uid] IN (?, ?)");
    }
}
