//! The rule for components that are absent, by the name under which tests know it.

pub(crate) use kindex_tests::require::{passed_over, require};
