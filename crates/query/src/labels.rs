//! Label selectors as conditions of a query. Knows no SQL.

use std::collections::BTreeSet;

use kindex_kube_api::selector::{LabelSelector, Requirement, Test};

use crate::Select;
use crate::select::Condition;

/// Most requirements of one selector: each is a part of the statement, whose size engines limit.
const REQUIREMENTS_MAX: usize = 100;
/// Most values of one selector.
const VALUES_MAX: usize = 2_000;

/// A selector that is too large for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelsTooLarge {
    /// Too many requirements.
    #[error(
        "a selector has at most {REQUIREMENTS_MAX} requirements: put the values of one label into `in (…)`, or \
         split it into several"
    )]
    Requirements,
    /// Too many values.
    #[error("a selector has at most {VALUES_MAX} values: split it into several")]
    Values,
}

impl Select {
    /// Only objects whose labels a selector matches, with the meaning that it has in Kubernetes: `!=` and `notin` match
    /// objects that have no such label at all.
    ///
    /// # Errors
    /// More than a hundred requirements, and more than two thousand values.
    pub fn filter_by_labels(&mut self, selector: &LabelSelector) -> Result<(), LabelsTooLarge> {
        let requirements = selector.requirements();
        if requirements.len() > REQUIREMENTS_MAX {
            return Err(LabelsTooLarge::Requirements);
        }
        if requirements.iter().map(values).sum::<usize>() > VALUES_MAX {
            return Err(LabelsTooLarge::Values);
        }
        for Requirement { key, test } in requirements {
            match test {
                Test::In(values) => self.label_one_of(key, &borrowed(values)),
                Test::NotIn(values) => self.side_label(key, &borrowed(values), false),
                Test::Exists => self.side_label(key, &[], true),
                Test::DoesNotExist => self.side_label(key, &[], false),
                Test::GreaterThan(bound) => self.label_within(key, bound.checked_add(1), Some(i64::MAX)),
                // No value of a label has a minus sign.
                Test::LessThan(bound) => self.label_within(key, Some(0), bound.checked_sub(1)),
            }
        }
        Ok(())
    }

    /// Only objects that carry this label with a decimal integer within these bounds; none where one is missing.
    fn label_within(&mut self, key: &str, least: Option<i64>, most: Option<i64>) {
        self.conditions.push(match (least, most) {
            (Some(least), Some(most)) if least <= most => Condition::LabelWithin {
                key: key.to_owned(),
                least: least.unsigned_abs(),
                most: most.unsigned_abs(),
            },
            _ => Condition::Any(Vec::new()),
        });
    }
}

fn values(requirement: &Requirement) -> usize {
    match &requirement.test {
        Test::In(values) | Test::NotIn(values) => values.len(),
        Test::Exists | Test::DoesNotExist | Test::GreaterThan(_) | Test::LessThan(_) => 0,
    }
}

fn borrowed(values: &BTreeSet<String>) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}
