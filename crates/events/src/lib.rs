//! Events of a kind: what is sent of each object, how a subscription goes, and what a consumer may conclude from it.
//! One contract for all transports, with the tests that each of them runs. No SQL; HTTP and Kubernetes in optional
//! clients.
//!
//! # Guarantees
//! - A subscription from nothing begins with all objects that exist, archived ones too, says when these ended, and goes
//!   on with what changes.
//! - A subscription from a position has what came after it, each change of an object at least once. Of several changes
//!   of one object the last is enough.
//! - An object is seen with its deletionTimestamp before it is seen erased, by who reads both in time.
//! - A position that is not known any more is refused with [`SourceError::Gone`]. It is never taken for another one.
//!
//! # Assumptions
//! Consumers read the state of an object from the API: an event says only that there is something to read.

pub mod position;

pub mod event;

pub mod source;

pub mod sse;

pub mod held;

pub mod resume;

pub mod consumer;

pub mod contract;

#[cfg(feature = "http")]
pub mod http_source;

#[cfg(feature = "watch")]
pub mod list_watch;

pub use event::{Event, Message};
pub use position::{Position, PositionError};
pub use source::{PartitionAssignment, Source, SourceError, Subscribe, Subscription};
