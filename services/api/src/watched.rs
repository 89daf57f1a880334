//! Streamed answers: tracks what clients have not read, and ends the slowest when the memory limit is reached.

use axum::body::Body;
use axum::response::Response;
use kindex_serve::cut::Ended;
use kindex_serve::watches::{Seat, Texture};

/// The answer of a watch that has this place.
pub(crate) fn watched(response: Response, seat: Seat, texture: Texture) -> Response {
    let ended = Ended(seat.ended().clone());
    let mut response = response.map(|body| Body::new(seat.seen(body, texture)));
    response.extensions_mut().insert(ended);
    response
}
