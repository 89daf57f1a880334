//! Several processes of one service side by side. Of the ingester's, each kind belongs to a shard, and each shard to
//! the replica that holds its Lease. One shard is leader election; more of them divide the kinds. Nothing here is
//! needed for correctness: two replicas may work on one kind for a moment, because every write is conditional. No clock
//! of another machine is used.

use std::collections::BTreeSet;

use crate::driver::Ingester;

mod assignment;
mod leases;

/// A service whose work is divided into shards.
pub trait Sharded {
    /// How many there are.
    fn shards(&self) -> usize;

    /// Assigns these shards, and takes all others away. Returns at once.
    fn assign(&self, shards: &BTreeSet<usize>);

    /// Waits until the work on a shard that was taken away has ended.
    fn drain(&self, shard: usize) -> impl Future<Output = ()> + Send;
}

impl Sharded for Ingester {
    fn shards(&self) -> usize {
        Self::shards(self)
    }

    fn assign(&self, shards: &BTreeSet<usize>) {
        Self::assign(self, shards);
    }

    async fn drain(&self, shard: usize) {
        Self::drain(self, shard).await;
    }
}

pub use assignment::{Assignment, LeaseAction, LeaseSubject, Record, Timing};
pub use leases::{LeaseConfig, run};
