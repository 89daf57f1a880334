//! Is SQL what the cluster is? Every object of the cluster's list is held against its row,
//! every row against itself, and every live row against the list; what differs is read
//! again before it is reported, for changes that are on their way are no differences.
//!
//! `compare` and `confirm` decide and are pure; `run`, `scan` and `again` read.

mod held;

mod report;

mod compare;

mod confirm;

mod run;

mod scan;

mod again;

pub use compare::compare;
pub use held::{Held, HeldObjects};
pub use report::{Checked, Class, Difference, Finding, Report};
pub use run::{Options, verify};
