//! The JSONPath of printer columns and selectable fields, as kubectl and the API server read it: fields, quoted
//! keys, indices, slices, wildcards and filters. Unions and recursive descent are refused when a path is parsed,
//! not ignored when it is used. Knows nothing of what a result is for.

mod parse;

use std::cmp::Ordering;

use serde_json::{Number, Value};

pub(crate) use parse::PathError;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Slice { start: Option<i64>, end: End, step: usize },
    Filter(Filter),
}

/// Where a slice ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// A single index: right after the start.
    AfterStart,
    At(i64),
    Last,
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: JsonPath,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    Compare(Comparison, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Literal(Value),
    Path(JsonPath),
}

/// A path that does not fit its value: an index out of bounds, a filter over something that is not a list, a
/// comparison of different types. Or one that takes too long.
struct PathMismatch;

impl JsonPath {
    /// Parses a path, with or without the leading dot and with or without braces around it: `.spec.a`, `{.spec.a}`.
    ///
    /// # Errors
    /// What cannot be read, or is not supported.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        parse::path(text)
    }

    /// A path that leads to nothing.
    pub(crate) fn nowhere() -> Self {
        Self {
            steps: vec![Step::Slice {
                start: Some(0),
                end: End::At(0),
                step: 1,
            }],
        }
    }

    /// The first value that the path leads to, as a printer column takes it: none when the path does not fit the value,
    /// and none when it takes more than `steps`. What it takes is taken from these.
    pub(crate) fn first<'a>(&self, value: &'a Value, steps: &mut usize) -> Option<&'a Value> {
        self.walk(value, steps).unwrap_or_default().first().copied()
    }

    fn walk<'a>(&self, value: &'a Value, steps: &mut usize) -> Result<Vec<&'a Value>, PathMismatch> {
        let mut current = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in current {
                *steps = steps.checked_sub(1).ok_or(PathMismatch)?;
                step.take(value, &mut next, steps)?;
            }
            // A long path that leads nowhere ends here.
            if next.is_empty() {
                return Ok(next);
            }
            current = next;
        }
        Ok(current)
    }
}

impl Step {
    fn take<'a>(&self, value: &'a Value, next: &mut Vec<&'a Value>, steps: &mut usize) -> Result<(), PathMismatch> {
        match (self, value) {
            (Self::Field(name), _) => next.extend(value.get(name)),
            (Self::Wildcard, Value::Object(fields)) => next.extend(fields.values()),
            (Self::Wildcard, Value::Array(items)) => next.extend(items),
            (Self::Wildcard | Self::Slice { .. }, Value::Null) | (Self::Wildcard, _) => {}
            (Self::Slice { start, end, step }, Value::Array(items)) => {
                let range = bounds(*start, *end, items.len())?;
                next.extend(items[range].iter().step_by(*step));
            }
            (Self::Filter(filter), Value::Array(items)) => {
                for item in items {
                    if filter.passes(item, steps)? {
                        next.push(item);
                    }
                }
            }
            (Self::Slice { .. } | Self::Filter(_), _) => return Err(PathMismatch),
        }
        Ok(())
    }
}

/// The range of a slice; negative indices count from the end.
fn bounds(start: Option<i64>, end: End, length: usize) -> Result<std::ops::Range<usize>, PathMismatch> {
    let length = i64::try_from(length).map_err(|_| PathMismatch)?;
    let from_end = |index: i64| if index < 0 { index + length } else { index };
    let start_at = from_end(start.unwrap_or(0));
    let end_at = match end {
        End::AfterStart => start_at + 1,
        End::At(index) => from_end(index),
        End::Last => length,
    };
    if start_at == end_at {
        return Ok(0..0);
    }
    if start_at < 0 || start_at >= length || end_at > length || start_at > end_at {
        return Err(PathMismatch);
    }
    let index = |index: i64| usize::try_from(index).map_err(|_| PathMismatch);
    Ok(index(start_at)?..index(end_at)?)
}

impl Filter {
    fn passes(&self, item: &Value, steps: &mut usize) -> Result<bool, PathMismatch> {
        let (comparison, operand) = match &self.test {
            Test::Exists => return Ok(self.left.walk(item, steps).is_ok_and(|found| !found.is_empty())),
            Test::Compare(comparison, operand) => (*comparison, operand),
        };
        let Some(left) = only(self.left.walk(item, steps)?)? else {
            return Ok(false);
        };
        let right = match operand {
            Operand::Literal(value) => value,
            Operand::Path(path) => match only(path.walk(item, steps)?)? {
                Some(value) => value,
                None => return Ok(false),
            },
        };
        let order = order(left, right).ok_or(PathMismatch)?;
        Ok(match comparison {
            Comparison::Equal => order == Ordering::Equal,
            Comparison::NotEqual => order != Ordering::Equal,
            Comparison::Less => order == Ordering::Less,
            Comparison::LessOrEqual => order != Ordering::Greater,
            Comparison::Greater => order == Ordering::Greater,
            Comparison::GreaterOrEqual => order != Ordering::Less,
        })
    }
}

/// The single value of a side of a comparison.
fn only(values: Vec<&Value>) -> Result<Option<&Value>, PathMismatch> {
    match values.as_slice() {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err(PathMismatch),
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => number_order(a, b),
        _ => None,
    }
}

fn number_order(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

#[cfg(test)]
mod tests;
