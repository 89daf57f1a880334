//! The writes of the decisions: when a row needs one, for the version and the state that it is to hold.

use kindex_model::head::Head;
use kindex_query::{Life, Revive};

use super::{Context, OwnDelete, Write};
use crate::row::{Row, TextComparison};

/// The write after which the row holds this version in this state. The version that our own delete made differs from
/// the stored one only by its deletionTimestamp; it is not stored unless finalizers of others hold the object.
pub(super) fn needed(head: &Head, row: Option<&Row>, life: Life, context: &Context) -> Option<Write> {
    let by_us = context.own_delete == OwnDelete::Accepted(head.version) && !head.held;
    let held = by_us && row.is_some_and(|row| row.life == life);
    (!held && differs(head, row, life)).then_some(store(life))
}

/// Whether the row holds another version or has another state.
pub(super) fn differs(head: &Head, row: Option<&Row>, life: Life) -> bool {
    row.is_none_or(|row| {
        let holds = matches!(
            row.compare_text(head.version),
            TextComparison::Current | TextComparison::Edited
        );
        !holds || row.life != life
    })
}

/// The observed text is stored in a row that is not revived.
pub(super) fn store(life: Life) -> Write {
    Write::Store {
        life,
        revive: Revive::Never,
    }
}

/// From which state a row comes back by a write that brings it back.
pub(super) fn revive(row: Option<&Row>, brings_back: bool) -> Revive {
    match row {
        Some(row) if brings_back => Revive::From(row.life),
        Some(_) | None => Revive::Never,
    }
}
