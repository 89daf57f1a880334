//! Several ingesters side by side: each kind belongs to a shard, and each shard to the replica that holds its Lease.
//! One shard is leader election; more of them divide the kinds. Nothing here is needed for correctness: two replicas
//! may work on one kind for a moment, because every write is conditional. No clock of another machine is used.

mod assignment;
mod leases;

pub use assignment::{Assignment, Held, LeaseAction, Record, Timing};
pub use leases::{LeaseConfig, run};
