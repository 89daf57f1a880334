//! Decides when a difference counts. A change in flight is a difference until it is stored, so both sides are read
//! again: a difference counts if neither side changed in between. Pure.

use jiff::Timestamp;
use kindex_model::object::{Object, ResourceVersion};
use kindex_query::Life;
use kindex_store::RowImage;

use super::report::Difference;

/// One reading of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    object: Option<ResourceVersion>,
    row: Option<RowMark>,
    pub(super) differences: Vec<Difference>,
}

/// What shows that a row was written in between.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RowMark {
    version: i64,
    life: Life,
    update_time: Option<Timestamp>,
}

impl Reading {
    pub(super) fn new(object: Option<&Object>, row: Option<&RowImage>, differences: Vec<Difference>) -> Self {
        Self {
            object: object.map(|object| object.metadata.resource_version),
            row: row.map(|row| RowMark {
                version: row.res_version,
                life: row.life(),
                update_time: row.update_time,
            }),
            differences,
        }
    }

    /// Whether the row is the only copy of the object.
    pub(super) fn is_only_copy(&self) -> bool {
        let stored_only = self.row.as_ref().is_some_and(|row| row.life != Life::Live);
        self.object.is_none() && stored_only
    }
}

/// The result of a second reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No difference any more.
    Equal,
    /// Neither side changed, and they differ.
    Confirmed,
    /// One side changed: read again.
    Moving,
}

/// Judges a later reading by the one before.
pub(super) fn judge(before: &Reading, after: &Reading) -> Verdict {
    if after.differences.is_empty() {
        Verdict::Equal
    } else if before == after {
        Verdict::Confirmed
    } else {
        Verdict::Moving
    }
}

/// Judges the last reading if a side changed each time: a row that was never written does not follow its object.
pub(super) fn judge_last(first: &Reading, last: &Reading) -> Verdict {
    if last.differences.is_empty() {
        Verdict::Equal
    } else if first.row == last.row {
        Verdict::Confirmed
    } else {
        Verdict::Moving
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::report::Class;

    fn reading(object: u64, row: i64) -> Reading {
        let differences = match i64::try_from(object) == Ok(row) {
            true => Vec::new(),
            false => vec![Difference::new(Class::Version, format!("{row}, {object}"))],
        };
        Reading {
            object: Some(ResourceVersion(object)),
            row: Some(RowMark {
                version: row,
                life: Life::Live,
                update_time: None,
            }),
            differences,
        }
    }

    #[test]
    fn what_stands_still_and_differs_is_a_difference() {
        assert_eq!(judge(&reading(5, 4), &reading(5, 4)), Verdict::Confirmed);
        assert_eq!(judge(&reading(5, 4), &reading(5, 5)), Verdict::Equal);
        assert_eq!(judge(&reading(5, 4), &reading(6, 5)), Verdict::Moving);
    }

    #[test]
    fn a_row_that_never_moves_does_not_follow_its_object() {
        assert_eq!(judge_last(&reading(5, 4), &reading(9, 4)), Verdict::Confirmed);
        assert_eq!(judge_last(&reading(5, 4), &reading(9, 8)), Verdict::Moving);
        assert_eq!(judge_last(&reading(5, 4), &reading(9, 9)), Verdict::Equal);
    }
}
