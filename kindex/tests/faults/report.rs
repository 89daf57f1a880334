//! What a scenario measured, as one line for people.

use std::time::Duration;

/// The measurements of one scenario.
pub(crate) struct Report {
    name: String,
    fault: &'static str,
    faults: usize,
    recoveries: Vec<Duration>,
}

impl Report {
    pub(crate) fn new(name: &str, fault: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            fault,
            faults: 0,
            recoveries: Vec::new(),
        }
    }

    /// One fault was made.
    pub(crate) fn fault(&mut self) {
        self.faults += 1;
    }

    /// It took so long until a new object had its row.
    pub(crate) fn recovered(&mut self, after: Duration) {
        self.recoveries.push(after);
    }

    /// Prints the line.
    pub(crate) fn finish(mut self, objects: usize) {
        self.recoveries.sort();
        let last = self.recoveries.last().copied().unwrap_or_default();
        let median = self.recoveries.get(self.recoveries.len() / 2).copied().unwrap_or(last);
        println!(
            "faults: {}: {} × {}, {objects} objects, all kept; rows came again after {:.2} s (median of {}), \
             {:.2} s at most",
            self.name,
            self.faults,
            self.fault,
            median.as_secs_f64(),
            self.recoveries.len(),
            last.as_secs_f64()
        );
    }
}
