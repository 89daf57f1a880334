//! The SQL of conditions that mean the same on all engines, whatever their collations do, and of
//! groups of conditions. Knows no query around them.

use kindex_model::tables::Side;
use kindex_query::pattern::Pattern;
use kindex_query::select::Condition;

use crate::statements::select::{Writer, column_of};

/// The longest value of a label.
const LABEL_CHARS_MAX: usize = 63;

impl Writer {
    /// One of these texts, to the byte.
    pub(crate) fn texts(&mut self, column: &str, values: &[String]) {
        match values {
            [] => self.push("FALSE"),
            values => {
                let piece = self.spelling().keyed_one_of(&column_of("t", column), values);
                self.put(piece);
            }
        }
    }

    /// By code points, which is the order of UTF-8's bytes.
    pub(crate) fn ordered(&mut self, column: &str, operator: &str, text: &str) {
        let piece = self.spelling().ordered(&column_of("t", column), operator, text);
        self.put(piece);
    }

    pub(crate) fn like(&mut self, column: &str, pattern: &Pattern) {
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
    pub(crate) fn label_within(&mut self, key: &str, least: u64, most: u64) {
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
        let (table, walk) = (self.tables.side(side), self.spelling().walk(&walk));
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

    pub(crate) fn group(&mut self, conditions: &[Condition], between: &str, none: &str) {
        if conditions.is_empty() {
            return self.push(none);
        }
        for (number, condition) in conditions.iter().enumerate() {
            self.push(if number == 0 { "(" } else { between });
            self.condition(condition);
        }
        self.push(")");
    }

    pub(crate) fn not(&mut self, condition: &Condition) {
        self.push("NOT (");
        self.condition(condition);
        self.push(")");
    }
}
