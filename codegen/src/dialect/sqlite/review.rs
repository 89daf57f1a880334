//! Statements that people edited: what in them may fail, and what may lock. Edits of this dialect are not reviewed: the
//! database is a file of one program, which waits for it.

use crate::dialect::{Lock, Verb};

/// Nothing is known of.
pub(super) fn refused_by_rows(_verb: Verb, _statement: &str) -> Option<&'static str> {
    None
}

/// There is one writer at a time, whatever a statement says.
pub(super) fn locks(_verb: Verb, _statement: &str) -> Option<Lock> {
    None
}
