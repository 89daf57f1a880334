//! Answers that go on: what their clients have not taken is known, and they end where others need the room.

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
