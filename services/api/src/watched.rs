//! Streamed answers: tracks what clients have not read, and ends the slowest when the memory limit is reached.

use axum::body::Body;
use axum::response::Response;
use kindex_serve::abort::AbortToken;
use kindex_serve::watches::{Accounting, WatchSlot};

/// The answer of a watch that has this place.
pub(crate) fn watched(response: Response, slot: WatchSlot, accounting: Accounting) -> Response {
    let abort = AbortToken(slot.ended().clone());
    let mut response = response.map(|body| Body::new(slot.track(body, accounting)));
    response.extensions_mut().insert(abort);
    response
}
