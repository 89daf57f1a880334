//! Which columns of a query have one value each, so that a key on them leads to its rows. Knows no engine.

use kindex_model::kind::{Comparison, Kind};
use kindex_model::value::Value;

use crate::select::{Condition, Select};

impl Select {
    /// The columns that have one value each; `None` where a key may serve the query in another way.
    pub fn fixed_columns(&self) -> Option<Vec<(&'static str, Value)>> {
        let mut fixed = Vec::new();
        for condition in &self.conditions {
            match condition {
                Condition::Compare {
                    column,
                    comparison: Comparison::Equal,
                    value,
                } if *column != "uid" => fixed.push((*column, value.clone())),
                Condition::Exactly { column, values } if values.len() == 1 && *column != "uid" => {
                    fixed.push((*column, Value::Text(values[0].clone())));
                }
                condition if condition.is_of_life() || !may_narrow(self.kind(), condition) => {}
                _ => return None,
            }
        }
        Some(fixed)
    }
}

/// Whether a key could find the rows of a condition that is no equality.
fn may_narrow(kind: &Kind, condition: &Condition) -> bool {
    let starts_a_key = |column: &str| column == "uid" || kind.keys.iter().any(|key| key.columns[0] == column);
    match condition {
        Condition::Compare { column, .. }
        | Condition::OneOf { column, .. }
        | Condition::StartsWith { column, .. }
        | Condition::Exactly { column, .. }
        | Condition::Ordered { column, .. }
        | Condition::Like { column, .. } => starts_a_key(column),
        Condition::All(_) | Condition::Any(_) => true,
        Condition::Null { .. }
        | Condition::NotNull { .. }
        | Condition::Differs { .. }
        | Condition::Empty { .. }
        | Condition::NotEmpty { .. }
        | Condition::Side { .. }
        | Condition::LabelWithin { .. }
        | Condition::Not(_) => false,
    }
}
