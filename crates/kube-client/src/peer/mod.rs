//! Other services of the deletion graph. Their API is all that is used of them: an object of theirs is looked up with
//! the references on it, ours are placed and released there.

mod token;

mod address;

mod answer;

mod peer_kind;

pub use address::Address;
pub use peer_kind::{PeerKind, Resource};
