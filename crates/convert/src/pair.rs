//! A field in two versions, seen from the version that is left: where it is read, where it is written, and how one
//! value follows from the other.

use kindex_model::kind::{FieldMap, MapRule, Version};
use serde_json::Value;

use super::tree::{Path, Problem};

/// Between which versions a conversion goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the kind's own version.
    ToOwn,
    /// From the kind's own version.
    FromOwn,
}

impl Direction {
    const fn back(self) -> Self {
        match self {
            Self::ToOwn => Self::FromOwn,
            Self::FromOwn => Self::ToOwn,
        }
    }
}

/// A field in the version that is left and in the one that is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    /// Where the version that is left has it.
    pub(crate) from: Option<&'static Path>,
    /// Where the version that is made has it.
    pub(crate) to: Option<&'static Path>,
    rule: MapRule,
    direction: Direction,
}

/// The fields of `version` that differ from those of the kind's own.
pub(crate) fn pairs(version: &Version, direction: Direction) -> Vec<Pair> {
    let pair = |map: &FieldMap| {
        let (from, to) = match direction {
            Direction::ToOwn => (map.here, map.own),
            Direction::FromOwn => (map.own, map.here),
        };
        Pair {
            from,
            to,
            rule: map.rule,
            direction,
        }
    };
    version.map.iter().map(pair).collect()
}

impl Pair {
    /// The value that is written for the one that was read.
    pub(crate) fn value(&self, read: Option<&str>) -> Result<Option<String>, Problem> {
        self.follow(self.direction, read, self.to)
    }

    /// The value that would be read if the one that is written came back.
    pub(crate) fn back(&self, written: Option<&str>) -> Result<Option<String>, Problem> {
        self.follow(self.direction.back(), written, self.from)
    }

    fn follow(
        &self,
        direction: Direction,
        value: Option<&str>,
        into: Option<&'static Path>,
    ) -> Result<Option<String>, Problem> {
        let Some(path) = into else {
            return Ok(None);
        };
        // Without a place in either version, nothing follows from the value.
        let value = value.filter(|_| self.from.is_some() && self.to.is_some());
        match (self.rule, direction) {
            (MapRule::Default(text), Direction::ToOwn) => Ok(Some(value.unwrap_or(text).to_owned())),
            (MapRule::Same, _) | (MapRule::Default(_), Direction::FromOwn) => Ok(value.map(str::to_owned)),
            (MapRule::Function { to_own, .. }, Direction::ToOwn) => call(to_own, value, path),
            (MapRule::Function { from_own, .. }, Direction::FromOwn) => call(from_own, value, path),
        }
    }
}

/// An absent value stays absent.
fn call(
    function: fn(&Value) -> Result<Value, String>,
    value: Option<&str>,
    path: &'static Path,
) -> Result<Option<String>, Problem> {
    let Some(text) = value else {
        return Ok(None);
    };
    let made = function(&serde_json::from_str(text)?);
    let made = made.map_err(|message| Problem::Function {
        path: path.join("."),
        message,
    })?;
    Ok(Some(made.to_string()))
}

/// Whether two texts are of one value. Servers lay texts out anew, and write `1.0` as `1`.
pub(crate) fn are_same(one: Option<&str>, other: Option<&str>) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            one == other
                || read(one)
                    .zip(read(other))
                    .is_some_and(|(one, other)| are_equal(&one, &other))
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value)| other.get(name).is_some_and(|other| are_equal(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        (one, other) => one == other,
    }
}
