//! Several ingesters beside each other: each kind belongs to a shard, and each shard to the replica that holds its
//! Lease. One shard is leader election; more of them divide the kinds. Two replicas that work on one kind at once,
//! as they may for a moment, are only wasteful: every write is guarded by what it was decided on. So nothing here
//! is needed for correctness, and no clock of another machine is believed.

mod board;
mod leases;

pub use board::{Board, Held, Record, Timing, Wish};
pub use leases::{Place, run};
