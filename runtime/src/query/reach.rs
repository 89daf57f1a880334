//! How much of a table a query reads, as far as its conditions tell: the same rule for queries that
//! are typed at run time as `state` has for those that are compiled. Knows no engine.

use crate::kind::Kind;
use crate::store::Select;
use crate::store::select::{Condition, Order};

/// What bounds the rows that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This key of the main table, on which a condition stands.
    Key(&'static str),
    /// The key on labels.
    Label,
    /// The limit: nothing but life is asked for, and a key has the rows in order.
    InOrder,
    /// Nothing: every row is compared, because no key starts with this column.
    Scan(&'static str),
    /// Nothing: every row is sorted, because no key has the rows in the order of this column.
    Sort(&'static str),
}

impl Select {
    /// What bounds the rows that this query reads.
    pub fn reach(&self) -> Reach {
        let kind = self.kind();
        if let Some(key) = self.conditions.iter().find_map(|condition| narrows(kind, condition)) {
            return Reach::Key(key);
        }
        if !self.labels.is_empty() {
            return Reach::Label;
        }
        if let Some(column) = self.conditions.iter().find_map(filtered) {
            return Reach::Scan(column);
        }
        match self.order.first() {
            Some(first) if !has_order(kind, &self.order) => Reach::Sort(first.column),
            Some(_) | None => Reach::InOrder,
        }
    }
}

/// The key that a condition makes use of.
fn narrows(kind: &Kind, condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Compare { operator: "<>", .. } => None,
        Condition::Compare { column, .. } | Condition::OneOf { column, .. } | Condition::StartsWith { column, .. } => {
            key_that_starts_with(kind, column)
        }
        Condition::Null { .. }
        | Condition::NotNull { .. }
        | Condition::Empty { .. }
        | Condition::NotEmpty { .. }
        | Condition::Differs { .. }
        | Condition::Side { .. } => None,
    }
}

fn key_that_starts_with(kind: &Kind, column: &str) -> Option<&'static str> {
    if column == "uid" {
        return Some("PRIMARY");
    }
    let key = kind.keys.iter().find(|key| key.columns.first() == Some(&column));
    key.map(|key| key.name)
}

/// The column, or the side table, that a condition filters by; life is no filter.
fn filtered(condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Null { column } | Condition::NotNull { column } if *column == "delete_time" => None,
        Condition::Compare { column, .. }
        | Condition::OneOf { column, .. }
        | Condition::StartsWith { column, .. }
        | Condition::Null { column }
        | Condition::NotNull { column }
        | Condition::Empty { column, .. }
        | Condition::NotEmpty { column, .. }
        | Condition::Differs { column, .. } => Some(column),
        Condition::Side { suffix, .. } => Some(suffix),
    }
}

fn has_order(kind: &Kind, order: &[Order]) -> bool {
    let one_way = order.windows(2).all(|pair| pair[0].direction == pair[1].direction);
    let columns = || order.iter().map(|order| order.column);
    let primary = columns().next() == Some("uid");
    let key = kind.keys.iter().any(|key| {
        let mut sorted = columns();
        let walked = key
            .columns
            .iter()
            .all(|column| sorted.next().is_none_or(|sorted| sorted == *column));
        walked && sorted.next().is_none_or(|last| last == "uid")
    });
    primary || one_way && key
}
