//! Conditions as MySQL wants them. Its binary collations pass over spaces at the end of a text.

use std::ops::RangeInclusive;

use kindex_model::value::Value;
use kindex_query::pattern::Pattern;

use crate::dialect::{ConditionSql, escape, marks, padded_bounds, piece, spaced_marks, text_piece, text_values};
use crate::mysql::notation::MySqlSpelling;
use crate::statement::Statement;

impl ConditionSql for MySqlSpelling {
    /// The length tells what the collation passes over.
    fn equals(&self, column: &str, text: &str) -> Statement {
        let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
        piece(
            format!("{column} = ? AND LENGTH({column}) = ?"),
            vec![Value::Text(text.to_owned()), Value::Int(bytes)],
        )
    }

    fn exactly(&self, column: &str) -> String {
        format!("[{column}] = ? AND LENGTH([{column}]) = ?")
    }

    fn one_of(&self, column: &str, texts: &[String]) -> Statement {
        let equal: Vec<Statement> = texts.iter().map(|text| self.equals(column, text)).collect();
        let conditions: Vec<&str> = equal.iter().map(|one| one.sql.as_str()).collect();
        piece(
            format!("({})", conditions.join(" OR ")),
            equal.iter().flat_map(|one| one.values.clone()).collect(),
        )
    }

    /// The first list is what finds a key.
    fn keyed_one_of(&self, column: &str, texts: &[String]) -> Statement {
        if let [text] = texts {
            let Statement { sql, values } = self.equals(column, text);
            return piece(format!("({sql})"), values);
        }
        let list = |mark| spaced_marks(mark, texts.len());
        piece(
            format!(
                "({column} IN ({}) AND CAST({column} AS BINARY) IN ({}))",
                list("?"),
                list("CAST(? AS BINARY)"),
            ),
            [text_values(texts), text_values(texts)].concat(),
        )
    }

    /// Its collation would fill up the shorter text with spaces first, and so has no key for this order.
    fn ordered(&self, column: &str, sign: &str, text: &str) -> Statement {
        text_piece(
            format!("CAST({column} AS BINARY) {sign} CAST(? AS BINARY)"),
            text.to_owned(),
        )
    }

    fn starts_with(&self, column: &str, prefix: &str) -> Statement {
        let pattern = escape(prefix, "\\%_", |c| format!("\\{c}")) + "%";
        text_piece(format!("{column} LIKE ?"), pattern)
    }

    fn like(&self, column: &str, pattern: &Pattern) -> Statement {
        text_piece(format!("{column} LIKE ? ESCAPE '!'"), like(pattern))
    }

    fn digits_within(&self, column: &str, digits_max: usize, bounds: RangeInclusive<u64>) -> Statement {
        let [least, most] = padded_bounds(digits_max, &bounds);
        piece(
            format!("{column} REGEXP ? AND LPAD({column}, {digits_max}, '0') BETWEEN ? AND ?"),
            vec![Value::Text("^[0-9]+$".to_owned()), least, most],
        )
    }

    fn value_in(&self, column: &str, values: usize) -> String {
        format!("{column} IN ({})", marks("?", values))
    }

    fn value_among(&self, column: &str, values: Vec<Value>) -> Statement {
        piece(format!("{column} IN ({})", spaced_marks("?", values.len())), values)
    }

    fn pair_in(&self, a: &str, b: &str, pairs: usize) -> String {
        format!("([{a}], [{b}]) IN ({})", marks("(?,?)", pairs))
    }
}

/// For `LIKE ? ESCAPE '!'`.
fn like(pattern: &Pattern) -> String {
    pattern.spelled('%', '_', |character| match character {
        '%' | '_' | '!' => format!("!{character}"),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_spelled_for_like() {
        let pattern = Pattern::parse(r"a%_\%\_\\*?[]!").expect("a pattern");
        assert_eq!(like(&pattern), r"a%_!%!_\*?[]!!");
    }

    #[test]
    fn a_prepared_comparison_is_of_a_text_and_its_bytes() {
        assert_eq!(MySqlSpelling.exactly("name"), "[name] = ? AND LENGTH([name]) = ?");
    }

    #[test]
    fn people_are_shown_a_list_with_spaces() {
        assert_eq!(MySqlSpelling.value_in("[uid]", 3), "[uid] IN (?,?,?)");
        let shown = MySqlSpelling.value_among("[uid]", vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(shown.sql, "[uid] IN (?, ?)");
    }
}
