//! Decisions on objects that stay in the cluster: their rows are live.

use kindex_model::head::Head;
use kindex_query::Life;

use super::write::{differs, revive};
use super::{Action, Context, FollowUp, Write};
use crate::row::Row;

/// The object stays, and gets our finalizer if objects are adopted.
pub(super) fn decide_sync(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let then = if context.adopt_finalizers && !head.has_finalizer {
        FollowUp::AddFinalizer
    } else {
        FollowUp::Nothing
    };
    decide_live(head, row, context, then)
}

/// The object is there and its row is live, whatever it was before.
pub(super) fn decide_live(head: &Head, row: Option<&Row>, context: &Context, then: FollowUp) -> Action {
    // Where it is archived in this version, another ingester may have deleted the object: what that owned has left.
    let brings_back = row.is_some_and(|row| row.life == Life::Deleted || row.is_archived_in(head.version));
    if brings_back && context.confirmed.as_ref() != row {
        return Action::CONFIRM;
    }
    let write = differs(head, row, Life::Live).then_some(Write::Store {
        life: Life::Live,
        revive: revive(row, brings_back),
    });
    Action { write, then }
}
