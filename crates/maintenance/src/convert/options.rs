//! The options of a conversion.

use crate::retries::RetryBudget;

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Rows are converted.
    Convert,
    /// Rows are counted.
    DryRun,
}

/// The options of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether anything is written.
    pub mode: Mode,
    /// Most rows a second that are walked over, in whichever version; `None`: as fast as the database.
    pub rows_per_second: Option<f64>,
    /// Most rows of a page, which is one transaction.
    pub page_rows: u32,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Convert,
            rows_per_second: None,
            page_rows: 500,
            retry_budget: RetryBudget::default(),
        }
    }
}
