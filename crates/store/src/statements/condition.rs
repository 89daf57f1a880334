//! The SQL of conditions, which mean the same on all engines, whatever their collations do, and of
//! groups of conditions. Knows no query around them.

use kindex_model::kind::Comparison;
use kindex_model::tables::Side;
use kindex_model::value::Value;
use kindex_query::pattern::Pattern;
use kindex_query::select::Condition;

use crate::dialect::{WalkedKey, sign};
use crate::statements::writer::{REQUIRED, Writer, column_of};

/// The longest value of a label.
const LABEL_CHARS_MAX: usize = 63;

impl Writer {
    pub(crate) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare {
                column,
                comparison,
                value,
            } => self.compare(column, *comparison, value),
            Condition::OneOf { column, values } => self.one_of(column, values),
            Condition::StartsWith { column, prefix } => {
                let piece = self.spelling().starts_with(&column_of("t", column), prefix);
                self.put(piece);
            }
            Condition::Null { column } => self.null(column),
            Condition::NotNull { column } => self.not_null(column),
            Condition::Differs { column, value } => self.matches_or_null(column, Comparison::NotEqual, value),
            Condition::Empty { column, ty } => match ty.is_text() {
                true => self.matches_or_null(column, Comparison::Equal, &Value::Text(String::new())),
                false => self.null(column),
            },
            Condition::NotEmpty { column, ty } => match ty.is_text() {
                true => self.compare(column, Comparison::NotEqual, &Value::Text(String::new())),
                false => self.not_null(column),
            },
            Condition::Side {
                side,
                key,
                values,
                present,
            } => self.side(*side, key, values, *present),
            Condition::LabelWithin { key, least, most } => self.label_within(key, *least, *most),
            Condition::Exactly { column, values } => self.texts(column, values),
            Condition::Ordered {
                column,
                comparison,
                text,
            } => self.ordered(column, *comparison, text),
            Condition::Like { column, pattern } => self.like(column, pattern),
            Condition::All(conditions) => self.group(conditions, " AND ", "TRUE"),
            Condition::Any(conditions) => self.group(conditions, " OR ", "FALSE"),
            Condition::Not(condition) => self.not(condition),
        }
    }

    pub(super) fn compare(&mut self, column: &str, comparison: Comparison, value: &Value) {
        self.push(&column_of("t", column));
        self.push(&format!(" {} ", sign(comparison)));
        self.bind(value.clone());
    }

    fn one_of(&mut self, column: &str, values: &[Value]) {
        if values.is_empty() {
            return self.push("FALSE");
        }
        let piece = self.spelling().value_among(&column_of("t", column), values.to_vec());
        self.put(piece);
    }

    pub(super) fn null(&mut self, column: &str) {
        let column = self.spelling().unkeyed(&column_of("t", column));
        self.push(&format!("{column} IS NULL"));
    }

    pub(super) fn not_null(&mut self, column: &str) {
        self.push(&column_of("t", column));
        self.push(" IS NOT NULL");
    }

    pub(super) fn matches_or_null(&mut self, column: &str, comparison: Comparison, value: &Value) {
        if REQUIRED.contains(&column) {
            return self.compare(column, comparison, value);
        }
        self.push("(");
        self.compare(column, comparison, value);
        self.push(" OR ");
        self.null(column);
        self.push(")");
    }

    /// One of these texts, to the byte.
    fn texts(&mut self, column: &str, values: &[String]) {
        match values {
            [] => self.push("FALSE"),
            values => {
                let piece = self.spelling().keyed_one_of(&column_of("t", column), values);
                self.put(piece);
            }
        }
    }

    /// By code points, which is the order of UTF-8's bytes.
    fn ordered(&mut self, column: &str, comparison: Comparison, text: &str) {
        let sign = sign(comparison);
        let piece = self.spelling().ordered(&column_of("t", column), sign, text);
        self.put(piece);
    }

    fn like(&mut self, column: &str, pattern: &Pattern) {
        let piece = self.spelling().like(&column_of("t", column), pattern);
        self.put(piece);
    }

    /// Whether the side table has such a row.
    pub(crate) fn side(&mut self, side: Side, key: &str, values: &[String], present: bool) {
        // One value is found by the key of values at once, all else among the few rows of an object.
        let by_value = side == Side::Labels && values.len() == 1;
        self.side_row(side, key, by_value, present, |writer| {
            if !values.is_empty() {
                writer.push(" AND ");
                writer.exactly_one_of("s", "value", values);
            }
        });
    }

    /// A label whose value is a decimal integer within these bounds.
    fn label_within(&mut self, key: &str, least: u64, most: u64) {
        self.side_row(Side::Labels, key, false, true, |writer| {
            let value = column_of("s", "value");
            let within = writer.spelling().digits_within(&value, LABEL_CHARS_MAX, least..=most);
            writer.push(" AND ");
            writer.put(within);
        });
    }

    /// Whether the side table has a row of this object with this key for which `more` holds of `s`. Asked once for each
    /// row that the others find: an engine that may choose collects all rows of the key first, however many there are.
    fn side_row(&mut self, side: Side, key: &str, by_value: bool, present: bool, more: impl FnOnce(&mut Self)) {
        let walk = match by_value {
            true => self.tables.label_key(),
            false => self.tables.side_uid_key(side),
        };
        let (table, walk) = (self.tables.side(side), self.spelling().walk(WalkedKey::Named(&walk)));
        let (open, close) = self.spelling().exists(present);
        let column = column_of("s", "key");
        let column = match by_value {
            true => column,
            // The key of values is not as good here as that of uids.
            false => self.spelling().unkeyed(&column),
        };
        let key = self.spelling().equals(&column, key);
        self.push(open);
        self.push(&format!(
            "SELECT 1 FROM [{table}] AS s{walk} WHERE s.[obj_uid] = t.[uid] AND "
        ));
        self.put(key);
        more(self);
        self.push(close);
    }

    fn group(&mut self, conditions: &[Condition], between: &str, none: &str) {
        if conditions.is_empty() {
            return self.push(none);
        }
        for (number, condition) in conditions.iter().enumerate() {
            self.push(if number == 0 { "(" } else { between });
            self.condition(condition);
        }
        self.push(")");
    }

    fn not(&mut self, condition: &Condition) {
        self.push("NOT (");
        self.condition(condition);
        self.push(")");
    }
}
