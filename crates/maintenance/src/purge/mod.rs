//! Removes rows for good, as the retention rule of their kind allows. Never removes a live row.
//!
//! `rule` selects the rows and is pure; `run` removes them.

mod rule;

mod run;

pub use run::{Mode, Options, Purged, purge};
