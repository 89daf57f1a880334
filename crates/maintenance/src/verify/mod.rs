//! Compares SQL with the cluster: every listed object with its row, every row with its own text, and every live row
//! with the list. What differs is read again before it is reported, because changes in flight are not differences.
//!
//! `compare` and `confirm` decide and are pure; `run`, `scan` and `again` read both sides, over the `state` that
//! they share.

mod held;

mod report;

mod versions;

mod compare;

mod confirm;

mod state;

mod again;

mod scan;

mod run;

pub use compare::compare;
pub use held::{HeldObject, HeldObjects};
pub use report::{Checked, Class, Difference, Finding, Report};
pub use run::verify;
pub use state::Options;
