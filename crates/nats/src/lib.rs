//! Events over NATS JetStream: a stream for each topic, fed from the outbox, with the last event of each object, and
//! the contract of `kindex-events` over it. Knows no SQL and no HTTP.
//!
//! # Guarantees
//! - A stream has the events of all objects before anybody reads a replay from it.
//! - A replay ends where nothing is left to deliver, so it has what changes while it goes on.
//! - One process feeds a stream: what another one sends that thinks it still does is refused by the server.
//! - What a cut connection loses on its way to a subscriber ends the subscription, which is resumed before it.
//! - A subscriber whose set of partitions changes goes on where it was, after a replay of those that came anew.
//! - A stream that lost its disk, or whose database was restored, is made anew. All positions in the old one are gone
//!   then, and every subscriber replays.
//!
//! # Assumptions
//! A server of version 2.11 or newer with JetStream, whose account may create streams.

pub mod names;

pub mod partitions;

pub mod connection;

pub mod stream;

mod stream_position;

pub mod progress;

pub mod feed;

pub mod feeders;

pub mod source;

pub use connection::{Connection, ConnectionError, Server};
pub use feed::{FeedError, Feeder};
pub use feeders::Feeders;
pub use partitions::Partitions;
pub use progress::{Metrics, Progress};
pub use source::NatsSource;
