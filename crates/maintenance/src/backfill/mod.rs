//! Fills SQL from the cluster's list: what an ingester does at its first start, as a
//! command that shows how far it is, goes on where it was interrupted, and writes nothing
//! that is there already.
//!
//! `resume` says from where, `run` walks over the list and `fill` writes.

mod resume;

mod fill;

mod run;

pub use fill::Filled;
pub(crate) use fill::Filler;
pub use run::{Options, backfill};
