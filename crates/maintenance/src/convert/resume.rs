//! How far a conversion is, saved with a batch once all batches before that place are written. Where it goes on
//! is a matter of time saved and of nothing else: a resumed run goes on to the end, and then over the rows before the
//! place where it began.

use kindex_store::Arrival;
use serde::{Deserialize, Serialize};

/// The saved progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumePoint {
    /// The primary key of the last row that is done.
    after: i64,
    /// Rows that were walked over in this run.
    rows: u64,
    /// Rows that were converted in this run.
    converted: u64,
    /// Rows that were refused in this run.
    refused: u64,
}

impl ResumePoint {
    pub(super) fn new(after: Arrival, rows: u64, converted: u64, refused: u64) -> Self {
        Self {
            after: after.0,
            rows,
            converted,
            refused,
        }
    }

    /// `None` for a text that another program saved: the run begins at the beginning.
    pub(super) fn parse(text: &str) -> Option<Arrival> {
        let point: Self = serde_json::from_str(text).ok()?;
        Some(Arrival(point.after))
    }

    pub(super) fn text(self) -> String {
        serde_json::to_string(&self).expect("numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_and_anything_else_is_none() {
        assert_eq!(
            ResumePoint::parse(&ResumePoint::new(Arrival(7), 1, 2, 3).text()),
            Some(Arrival(7))
        );
        for other in ["", "7", "{\"after\":\"7\"}"] {
            assert_eq!(ResumePoint::parse(other), None, "{other}");
        }
    }
}
