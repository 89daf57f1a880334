//! What is told of a history: what happened, line by line, and how much. Nothing that happens depends on the lines.

use std::time::Duration;

use crate::coverage::Coverage;

/// What happened.
#[derive(Debug)]
pub(crate) struct Log {
    /// Whether more than the first line is kept.
    pub(crate) is_kept: bool,
    lines: Vec<String>,
}

impl Log {
    pub(crate) fn new(first: String, is_kept: bool) -> Self {
        Self {
            is_kept,
            lines: vec![first],
        }
    }

    pub(crate) fn add(&mut self, at: Duration, line: &str) {
        let at = at.as_secs_f64();
        self.lines.push(format!("{at:>8.3}s {line}"));
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// How much has happened.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Turns that did something.
    pub(crate) steps: u64,
    pub(crate) faults: u64,
    /// How often each fault happened in each step.
    pub(crate) coverage: Coverage,
    /// The lost counter when this history began.
    lost_before: u64,
}

impl Counts {
    pub(crate) fn new(lost_before: u64) -> Self {
        Self {
            steps: 0,
            faults: 0,
            coverage: Coverage::default(),
            lost_before,
        }
    }

    /// How many objects this history has added to the lost counter, which shows so many now.
    pub(crate) fn lost(&self, now: u64) -> u64 {
        now - self.lost_before
    }
}
