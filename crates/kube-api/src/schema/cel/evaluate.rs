//! Whether an expression holds for a value. Work and memory are bounded by a budget for all rules of one object.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::expression::{Comparison, Expression, TextTest, Variable};

/// How many steps the rules of one object may take together, as on the API server.
const STEPS_MAX: u64 = 10_000_000;
/// A string counts one step for so many of its bytes.
const BYTES_OF_STEP: u64 = 10;

/// What is left for the rules of one object.
#[derive(Debug)]
pub(in crate::schema) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS_MAX)
    }
}

impl Budget {
    fn take(&mut self, steps: u64) -> Result<(), Failure> {
        self.0 = self.0.checked_sub(steps).ok_or(Failure::Exhausted)?;
        Ok(())
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::schema) enum Failure {
    /// The value is not as the expression needs it.
    Error(String),
    /// The budget is used up.
    Exhausted,
}

#[derive(Debug)]
enum Found<'a> {
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Other(&'a Value),
}

/// Whether `expression` is true of `new`, which replaces `old`.
pub(in crate::schema) fn holds(
    expression: &Expression,
    new: &Value,
    old: Option<&Value>,
    budget: &mut Budget,
) -> Result<bool, Failure> {
    Evaluation { new, old, budget }.truth(expression)
}

struct Evaluation<'a, 'b> {
    new: &'a Value,
    old: Option<&'a Value>,
    budget: &'b mut Budget,
}

/// Types are checked when a rule is written, and objects before they are asked: such a value is not met.
fn no_overload<T>() -> Result<T, Failure> {
    Err(Failure::Error("no such overload".to_owned()))
}

impl<'a> Evaluation<'a, '_> {
    fn of(&mut self, expression: &'a Expression) -> Result<Found<'a>, Failure> {
        self.budget.take(1)?;
        Ok(match expression {
            Expression::Bool(value) => Found::Bool(*value),
            Expression::Int(value) => Found::Int(*value),
            Expression::Text(text) => Found::Text(Cow::Borrowed(text)),
            Expression::Variable(Variable::New) => found(self.new),
            Expression::Variable(Variable::Old) => match self.old {
                Some(old) => found(old),
                None => return no_overload(),
            },
            Expression::Field(of, name) => match self.of(of)? {
                Found::Other(value) => match value.get(name) {
                    Some(field) => found(field),
                    None => return Err(Failure::Error(format!("no such key: {name}"))),
                },
                Found::Bool(_) | Found::Int(_) | Found::Text(_) => return no_overload(),
            },
            Expression::Has(of, name) => match self.of(of)? {
                Found::Other(value) => Found::Bool(value.get(name).is_some_and(|field| !field.is_null())),
                Found::Bool(_) | Found::Int(_) | Found::Text(_) => return no_overload(),
            },
            Expression::Size(of) => Found::Int(self.size(of)?),
            Expression::Test(test, text, part) => Found::Bool(self.test(*test, text, part)?),
            Expression::Not(of) => Found::Bool(!self.truth(of)?),
            Expression::Compare(comparison, left, right) => Found::Bool(self.compare(*comparison, left, right)?),
            Expression::Sum(all) => self.sum(all)?,
            Expression::And(all) => Found::Bool(self.joined(all, false)?),
            Expression::Or(all) => Found::Bool(self.joined(all, true)?),
            Expression::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                let chosen = if self.truth(condition)? { then } else { otherwise };
                self.of(chosen)?
            }
        })
    }

    fn truth(&mut self, expression: &'a Expression) -> Result<bool, Failure> {
        match self.of(expression)? {
            Found::Bool(value) => Ok(value),
            Found::Int(_) | Found::Text(_) | Found::Other(_) => no_overload(),
        }
    }

    fn text(&mut self, expression: &'a Expression) -> Result<Cow<'a, str>, Failure> {
        match self.of(expression)? {
            Found::Text(text) => {
                self.budget.take(text.len() as u64 / BYTES_OF_STEP)?;
                Ok(text)
            }
            Found::Bool(_) | Found::Int(_) | Found::Other(_) => no_overload(),
        }
    }

    /// `&&` and `||` in any order: what decides them does so whatever fails beside it.
    fn joined(&mut self, all: &'a [Expression], decisive: bool) -> Result<bool, Failure> {
        let mut failed = None;
        for expression in all {
            match self.truth(expression) {
                Ok(value) if value == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(!decisive), Err)
    }

    fn size(&mut self, of: &'a Expression) -> Result<i64, Failure> {
        let size = match self.of(of)? {
            Found::Text(text) => {
                self.budget.take(text.len() as u64 / BYTES_OF_STEP)?;
                text.chars().count()
            }
            Found::Other(Value::Array(items)) => items.len(),
            Found::Other(Value::Object(fields)) => fields.len(),
            Found::Bool(_) | Found::Int(_) | Found::Other(_) => return no_overload(),
        };
        Ok(i64::try_from(size).unwrap_or(i64::MAX))
    }

    fn test(&mut self, test: TextTest, text: &'a Expression, part: &'a Expression) -> Result<bool, Failure> {
        let (text, part) = (self.text(text)?, self.text(part)?);
        Ok(match test {
            TextTest::StartsWith => text.starts_with(&*part),
            TextTest::EndsWith => text.ends_with(&*part),
            TextTest::Contains => text.contains(&*part),
        })
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &'a Expression,
        right: &'a Expression,
    ) -> Result<bool, Failure> {
        let (left, right) = (self.of(left)?, self.of(right)?);
        self.budget.take(weight(&left))?;
        self.budget.take(weight(&right))?;
        let order = match (&left, &right) {
            (Found::Bool(left), Found::Bool(right)) => left.cmp(right),
            (Found::Int(left), Found::Int(right)) => left.cmp(right),
            (Found::Text(left), Found::Text(right)) => left.cmp(right),
            (Found::Other(left), Found::Other(right)) if left == right => Ordering::Equal,
            (Found::Other(_), Found::Other(_)) if comparison == Comparison::Equal => return Ok(false),
            (Found::Other(_), Found::Other(_)) if comparison == Comparison::Unequal => return Ok(true),
            _ => return no_overload(),
        };
        Ok(match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        })
    }

    fn sum(&mut self, all: &'a [Expression]) -> Result<Found<'a>, Failure> {
        let mut total: Option<Found<'a>> = None;
        for expression in all {
            let next = self.of(expression)?;
            self.budget.take(weight(&next))?;
            total = Some(match (total, next) {
                (None, next) => next,
                (Some(Found::Int(sum)), Found::Int(next)) => match sum.checked_add(next) {
                    Some(sum) => Found::Int(sum),
                    None => return Err(Failure::Error("integer overflow".to_owned())),
                },
                (Some(Found::Text(sum)), Found::Text(next)) => {
                    let mut sum = sum.into_owned();
                    sum.push_str(&next);
                    Found::Text(Cow::Owned(sum))
                }
                _ => return no_overload(),
            });
        }
        total.map_or_else(no_overload, Ok)
    }
}

fn found(value: &Value) -> Found<'_> {
    match value {
        Value::Bool(value) => Found::Bool(*value),
        Value::String(text) => Found::Text(Cow::Borrowed(text)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Found::Int(integer),
            None => Found::Other(value),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => Found::Other(value),
    }
}

/// How many steps it takes to read a value.
fn weight(found: &Found<'_>) -> u64 {
    match found {
        Found::Bool(_) | Found::Int(_) => 1,
        Found::Text(text) => 1 + text.len() as u64 / BYTES_OF_STEP,
        Found::Other(value) => weight_of(value),
    }
}

fn weight_of(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / BYTES_OF_STEP,
        Value::Array(items) => 1 + items.iter().map(weight_of).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(weight_of).sum::<u64>(),
    }
}
