//! Fills SQL from the cluster's list, like the first start of an ingester, but as a command that shows its progress,
//! resumes after an interruption, and writes only what differs.
//!
//! `resume` holds the saved progress, `run` reads the list, and `fill` writes.

mod resume;

mod fill;

mod run;

pub use fill::Filled;
pub(crate) use fill::Filler;
pub use run::{Options, backfill};
