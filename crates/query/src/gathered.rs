//! Adds labels, annotations and orders to a query. Does not track how far it is narrowed.

use kindex_model::kind::ColumnType;
use kindex_model::tables::Side;

use crate::Select;
use crate::select::{Condition, Direction, Label, Order};

impl Select {
    /// Only objects that carry this label with one of these values.
    pub fn label_one_of(&mut self, key: &str, values: &[&str]) {
        self.labels.push(Label {
            key: key.to_owned(),
            values: owned(values),
        });
    }

    /// Only objects that carry a label of this key, or only those that do not: with one of these
    /// values, or with any where none is given.
    pub fn side_label(&mut self, key: &str, values: &[&str], present: bool) {
        self.side(Side::Labels, key, values, present);
    }

    /// Only objects that carry this annotation.
    pub fn annotation(&mut self, key: &str, value: &str) {
        self.side(Side::Annotations, key, &[value], true);
    }

    fn side(&mut self, side: Side, key: &str, values: &[&str], present: bool) {
        self.conditions.push(Condition::Side {
            side,
            key: key.to_owned(),
            values: owned(values),
            present,
        });
    }

    /// Only rows without a value in that base column.
    pub fn without(&mut self, column: &'static str) {
        self.conditions.push(Condition::Null { column });
    }

    /// Only rows with a value in that base column.
    pub fn with(&mut self, column: &'static str) {
        self.conditions.push(Condition::NotNull { column });
    }

    /// Latest first in that base column of times, after any order given before.
    pub fn newest_first(&mut self, column: &'static str) {
        self.order.push(Order {
            column,
            ty: ColumnType::Time,
            direction: Direction::Descending,
        });
    }

    /// At most so many rows a page.
    pub fn limit(&mut self, rows: u32) {
        self.limit = Some(rows);
    }

    /// Accepts that the whole table is read.
    pub fn allow_scan(&mut self) {
        self.scan = true;
    }
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}
