//! The SQL of conditions that mean the same on all engines, whatever their collations do, and of
//! groups of conditions. Knows no query around them.

use kindex_model::value::Value;
use kindex_query::pattern::Pattern;
use kindex_query::select::Condition;

use super::dialect::Dialect;
use super::select_sql::{Writer, column_of};
use super::sql::Side;

/// The longest value of a label.
const LABEL_CHARS_MAX: usize = 63;

impl Writer {
    /// One of these texts, to the byte: MySQL's binary collations pass over spaces at the end.
    pub(super) fn texts(&mut self, column: &str, values: &[String]) {
        match (self.dialect(), values) {
            (_, []) => self.push("FALSE"),
            (Dialect::MySql, [value]) => {
                self.push("(");
                self.exactly("t", column, value);
                self.push(")");
            }
            (Dialect::MySql, values) => {
                let named = column_of("t", column);
                // The first list is what finds a key.
                self.push(&format!("({named}"));
                self.list("?", values);
                self.push(&format!(" AND CAST({named} AS BINARY)"));
                self.list("CAST(? AS BINARY)", values);
                self.push(")");
            }
            (Dialect::Sqlite, values) => {
                self.push(&column_of("t", column));
                self.list("?", values);
            }
        }
    }

    pub(super) fn list(&mut self, mark: &str, values: &[String]) {
        for (number, value) in values.iter().enumerate() {
            self.push(if number == 0 { " IN (" } else { ", " });
            self.bind_as(mark, Value::Text(value.clone()));
        }
        self.push(")");
    }

    /// By code points, which is the order of UTF-8's bytes. MySQL's collation would fill up the shorter text with
    /// spaces first, and so has no key for this order.
    pub(super) fn ordered(&mut self, column: &str, operator: &str, text: &str) {
        let named = column_of("t", column);
        let text = Value::Text(text.to_owned());
        match self.dialect() {
            Dialect::MySql => {
                self.push(&format!("CAST({named} AS BINARY) {operator} "));
                self.bind_as("CAST(? AS BINARY)", text);
            }
            Dialect::Sqlite => {
                self.push(&format!("{named} {operator} "));
                self.bind_as("?", text);
            }
        }
    }

    pub(super) fn like(&mut self, column: &str, pattern: &Pattern) {
        self.push(&column_of("t", column));
        match self.dialect() {
            Dialect::MySql => {
                self.push(" LIKE ");
                self.bind_as("? ESCAPE '!'", Value::Text(like(pattern)));
            }
            Dialect::Sqlite => {
                self.push(" GLOB ");
                self.bind_as("?", Value::Text(glob(pattern)));
            }
        }
    }

    /// Whether the side table has such a row.
    pub(super) fn side(&mut self, suffix: &str, key: &str, values: &[String], present: bool) {
        // One value is found by the key of values at once, all else among the few rows of an object.
        let by_value = suffix == Side::Labels.suffix() && values.len() == 1;
        self.side_row(suffix, by_value, present, |writer| {
            writer.exactly("s", "key", key);
            if !values.is_empty() {
                writer.push(" AND ");
                writer.exactly_one_of("s", "value", values);
            }
        });
    }

    /// Whether the side table has a row of this object for which a condition on `s` holds. Asked once for each row that
    /// the others find: an engine that may choose collects all rows of the key first, however many there are.
    fn side_row(&mut self, suffix: &str, by_value: bool, present: bool, condition: impl FnOnce(&mut Self)) {
        let side = format!("{}_{suffix}", self.table);
        let walk = format!("{side}_{}", if by_value { "key_value" } else { "uid" });
        let walk = self.dialect().walk(&walk);
        let rows = format!("SELECT 1 FROM `{side}` AS s{walk} WHERE s.`obj_uid` = t.`uid` AND ");
        let (open, close) = match (self.dialect(), present) {
            (Dialect::MySql, true) => ("(", " LIMIT 1) IS NOT NULL"),
            (Dialect::MySql, false) => ("(", " LIMIT 1) IS NULL"),
            (Dialect::Sqlite, true) => ("EXISTS (", ")"),
            (Dialect::Sqlite, false) => ("NOT EXISTS (", ")"),
        };
        self.push(open);
        self.push(&rows);
        if !by_value && self.dialect() == Dialect::Sqlite {
            // Without statistics SQLite takes the key of values for as good as that of uids.
            self.push("+");
        }
        condition(self);
        self.push(close);
    }

    /// A label whose value is a decimal integer within these bounds. Digits are compared as texts of one length, since
    /// engines differ in what they make of numbers that are too long.
    pub(super) fn label_within(&mut self, key: &str, least: u64, most: u64) {
        let dialect = self.dialect();
        let value = column_of("s", "value");
        self.side_row(Side::Labels.suffix(), false, true, |writer| {
            writer.exactly("s", "key", key);
            let padded = dialect.padded(&value, LABEL_CHARS_MAX);
            writer.push(&format!(
                " AND {} AND {padded} BETWEEN ",
                dialect.has_digits_alone(&value)
            ));
            writer.bind(Value::Text(format!("{least:0LABEL_CHARS_MAX$}")));
            writer.push(" AND ");
            writer.bind(Value::Text(format!("{most:0LABEL_CHARS_MAX$}")));
        });
    }

    pub(super) fn group(&mut self, conditions: &[Condition], between: &str, none: &str) {
        if conditions.is_empty() {
            return self.push(none);
        }
        for (number, condition) in conditions.iter().enumerate() {
            self.push(if number == 0 { "(" } else { between });
            self.condition(condition);
        }
        self.push(")");
    }

    pub(super) fn not(&mut self, condition: &Condition) {
        self.push("NOT (");
        self.condition(condition);
        self.push(")");
    }
}

/// For `LIKE ? ESCAPE '!'`.
fn like(pattern: &Pattern) -> String {
    pattern.spelt('%', '_', |character| match character {
        '%' | '_' | '!' => format!("!{character}"),
        other => other.to_string(),
    })
}

/// For SQLite's `GLOB ?`: its LIKE passes over the case of letters.
fn glob(pattern: &Pattern) -> String {
    pattern.spelt('*', '?', |character| match character {
        '*' | '?' | '[' => format!("[{character}]"),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_spelt_as_each_engine_wants_it() {
        let pattern = Pattern::parse(r"a%_\%\_\\*?[]!").expect("a pattern");
        assert_eq!(like(&pattern), r"a%_!%!_\*?[]!!");
        assert_eq!(glob(&pattern), r"a*?%_\[*][?][[]]!");
    }
}
