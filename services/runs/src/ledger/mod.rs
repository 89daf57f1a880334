//! What becomes of a batch: is it known, which of its metrics are admitted, is it applied now or held for those before
//! it, and when is its id forgotten. Pure: the store reads the state, asks, and writes what was decided.

mod admission;

mod reorder;

mod retention;

pub use admission::{Admission, StoredMatch};
pub(crate) use admission::{admit_names, compare_with_stored};
pub use reorder::{Placement, Queue, ReorderRules};
pub use retention::RetentionRules;

#[cfg(test)]
mod tests;
