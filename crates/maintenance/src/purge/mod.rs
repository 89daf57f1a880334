//! Removes rows for good that a kind's retention rule lets go. Rows of objects that are in the
//! cluster are out of its reach.
//!
//! `rule` says which rows go and is pure; `run` walks over them and removes them.

mod rule;

mod run;

pub use rule::describe;
pub use run::{Mode, Options, Purged, purge};
