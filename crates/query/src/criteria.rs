//! Conditions as Michelangelo's `ListOptionsExt` has them: comparisons of fields with typed values, in
//! groups within groups. Checks names, types and size; knows no spelling of SQL.

use kindex_model::kind::{ColumnType, Comparison};
use kindex_model::value::Value;

use super::text::{TextError, check_time, operand, resolve};
use crate::Select;
use crate::pattern::Pattern;
use crate::select::{Condition, QuerySize};

/// Most levels of nested groups.
pub(super) const DEPTH_MAX: usize = 16;

/// A group: its comparisons and nested groups, joined by one operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CriterionOperation {
    /// Comparisons.
    pub criterion: Vec<Criterion>,
    /// What joins all of them.
    pub logical_operator: LogicalOperator,
    /// Nested groups.
    pub sub_operations: Vec<CriterionOperation>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// A column by its name in SQL, or by its path in a manifest.
    pub field_name: String,
    /// How it is compared.
    pub operator: CriterionOperator,
    /// The values: one, several for `In` and `NotIn`, none for the tests for NULL. A text is read as the
    /// column's type.
    pub match_values: Vec<Value>,
}

/// What joins a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogicalOperator {
    /// All of it must hold.
    #[default]
    And,
    /// Some of it must hold.
    Or,
}

/// How a field is compared, with the semantics of SQL: a row without a value matches no comparison and no negated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CriterionOperator {
    /// Equal, byte for byte.
    Equal,
    /// A value, and another one.
    NotEqual,
    /// Greater; texts by their code points.
    GreaterThan,
    /// Greater or equal.
    GreaterThanOrEqualTo,
    /// Less.
    LessThan,
    /// Less or equal.
    LessThanOrEqualTo,
    /// One of the values.
    In,
    /// A value, and none of these.
    NotIn,
    /// A text of this form: `%` for any characters, `_` for one, a backslash before those that stand for
    /// themselves. The case of letters counts.
    Like,
    /// No value.
    IsNull,
    /// A value.
    IsNotNull,
}

impl Select {
    /// Only rows for which a group holds; an empty one is no condition.
    ///
    /// # Errors
    /// [`TextError`] for an unknown field, a value of another type, and a group that is too large.
    pub fn filter_by_operation(&mut self, operation: &CriterionOperation) -> Result<(), TextError> {
        if operation.criterion.is_empty() && operation.sub_operations.is_empty() {
            return Ok(());
        }
        let mut size = self.size;
        let condition = self.group(operation, &mut size, 1)?;
        self.size = size;
        self.require(condition);
        Ok(())
    }

    fn group(
        &self,
        operation: &CriterionOperation,
        size: &mut QuerySize,
        depth: usize,
    ) -> Result<Condition, TextError> {
        check_depth(depth)?;
        let comparisons = operation.criterion.iter().map(|criterion| {
            let (column, ty) = resolve(self.kind(), &criterion.field_name)?;
            let values = criterion.match_values.iter().map(|value| typed(column, ty, value));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            size.grow(values.len()).map_err(TextError::Group)?;
            compared(column, ty, criterion.operator, values)
        });
        let mut conditions = comparisons.collect::<Result<Vec<_>, _>>()?;
        for inner in &operation.sub_operations {
            conditions.push(self.group(inner, size, depth + 1)?);
        }
        if conditions.is_empty() {
            return Err(TextError::Group("a nested group has no comparison".to_owned()));
        }
        Ok(match operation.logical_operator {
            LogicalOperator::And => Condition::All(conditions),
            LogicalOperator::Or => Condition::Any(conditions),
        })
    }

    /// Adds a condition. The parts of a conjunction are added one by one, so that a key can serve them.
    pub(super) fn require(&mut self, condition: Condition) {
        match condition {
            Condition::All(conditions) => {
                for condition in conditions {
                    self.require(condition);
                }
            }
            condition => self.conditions.push(condition),
        }
    }
}

pub(super) fn check_depth(depth: usize) -> Result<(), TextError> {
    if depth > DEPTH_MAX {
        let message = format!("groups may be nested at most {DEPTH_MAX} deep");
        return Err(TextError::Group(message));
    }
    Ok(())
}

/// A value as the column has them.
fn typed(column: &'static str, ty: ColumnType, value: &Value) -> Result<Value, TextError> {
    match (ty, value) {
        (ColumnType::Text { .. }, Value::Text(_))
        | (ColumnType::Int32 | ColumnType::Int64, Value::Int(_))
        | (ColumnType::UInt64, Value::UInt(_))
        | (ColumnType::Bool, Value::Bool(_))
        | (ColumnType::Time, Value::Time(_)) => Ok(value.clone()),
        (ColumnType::Double, Value::Double(number)) if number.is_finite() => Ok(value.clone()),
        // With the precision of doubles, in which SQL compares them.
        (ColumnType::Double, Value::Int(number)) => Ok(Value::Double(*number as f64)),
        (ColumnType::Double, Value::UInt(number)) => Ok(Value::Double(*number as f64)),
        (ColumnType::Int32 | ColumnType::Int64, Value::UInt(number)) => operand(column, ty, &number.to_string()),
        (ColumnType::UInt64, Value::Int(number)) => operand(column, ty, &number.to_string()),
        (_, Value::Text(text)) => operand(column, ty, text),
        (_, Value::Null) => Err(TextError::Comparison {
            column,
            message: "NULL cannot be compared: test whether the column is null".to_owned(),
        }),
        (ty, value) => Err(TextError::Comparison {
            column,
            message: format!("{value:?} is not a value of {ty:?}"),
        }),
    }
}

/// The condition of one comparison, with values of the column's type.
pub(super) fn compared(
    column: &'static str,
    ty: ColumnType,
    operator: CriterionOperator,
    mut values: Vec<Value>,
) -> Result<Condition, TextError> {
    let refused = |message: String| TextError::Comparison { column, message };
    let wanted = match operator {
        CriterionOperator::IsNull => 0..=0,
        CriterionOperator::IsNotNull => 0..=0,
        CriterionOperator::In | CriterionOperator::NotIn => 1..=usize::MAX,
        CriterionOperator::Equal
        | CriterionOperator::NotEqual
        | CriterionOperator::GreaterThan
        | CriterionOperator::GreaterThanOrEqualTo
        | CriterionOperator::LessThan
        | CriterionOperator::LessThanOrEqualTo
        | CriterionOperator::Like => 1..=1,
    };
    if !wanted.contains(&values.len()) {
        let message = format!("{operator:?} takes {}, not {}", count(&wanted), values.len());
        return Err(refused(message));
    }
    for value in &values {
        check_time(column, value)?;
    }
    let not = |condition| Condition::Not(Box::new(condition));
    let ordering = |comparison, mut values: Vec<Value>| match values.pop().expect("counted above") {
        Value::Text(text) => Condition::Ordered {
            column,
            comparison,
            text,
        },
        value => Condition::Compare {
            column,
            comparison,
            value,
        },
    };
    Ok(match operator {
        CriterionOperator::IsNull => Condition::Null { column },
        CriterionOperator::IsNotNull => Condition::NotNull { column },
        CriterionOperator::Equal | CriterionOperator::In => one_of(column, values),
        CriterionOperator::NotEqual | CriterionOperator::NotIn => not(one_of(column, values)),
        CriterionOperator::GreaterThan => ordering(Comparison::Greater, values),
        CriterionOperator::GreaterThanOrEqualTo => ordering(Comparison::GreaterOrEqual, values),
        CriterionOperator::LessThan => ordering(Comparison::Less, values),
        CriterionOperator::LessThanOrEqualTo => ordering(Comparison::LessOrEqual, values),
        CriterionOperator::Like => match (ty, values.pop()) {
            (ColumnType::Text { .. }, Some(Value::Text(text))) => {
                let pattern = Pattern::parse(&text).map_err(refused)?;
                Condition::Like { column, pattern }
            }
            _ => return Err(refused("LIKE compares texts, but the column holds no text".to_owned())),
        },
    })
}

fn count(range: &std::ops::RangeInclusive<usize>) -> &'static str {
    match (range.start(), range.end()) {
        (0, _) => "no value",
        (1, 1) => "1 value",
        (_, _) => "1 or more values",
    }
}

fn one_of(column: &'static str, values: Vec<Value>) -> Condition {
    let texts: Option<Vec<String>> = values
        .iter()
        .map(|value| match value {
            Value::Text(text) => Some(text.clone()),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Time(_) => None,
        })
        .collect();
    match texts {
        Some(values) => Condition::Exactly { column, values },
        None if values.len() == 1 => {
            let value = values.into_iter().next().expect("there is one");
            Condition::equal(column, value)
        }
        None => Condition::OneOf { column, values },
    }
}
