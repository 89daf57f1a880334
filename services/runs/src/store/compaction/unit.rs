//! What one transaction of compaction writes: chunks in the place of others, and batches that are in chunks by then.

use crate::store::statements::chunks::{self, NewChunk};
use crate::store::transaction::{Command, Effect, Failure, Tx};

/// What a transaction writes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Unit {
    pub(super) run: i64,
    /// Batches that are in chunks once it is committed.
    pub(super) arrivals: Vec<i64>,
    /// Accepted points of those.
    pub(super) points: i64,
    /// Chunks that go.
    pub(super) removed: Vec<i64>,
    /// Points of those.
    pub(super) removed_points: i64,
    /// Chunks that come.
    pub(super) added: Vec<NewChunk>,
    /// Whether all chunks of the run have their last encoding by then.
    pub(super) is_sealed: bool,
}

impl Unit {
    /// One of a run that writes nothing yet.
    pub(super) fn of(run: i64) -> Self {
        Self { run, ..Self::default() }
    }
}

impl Command for Unit {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        let added: u64 = self.added.iter().map(|chunk| chunk.stats.count).sum();
        // Below zero where chunks have points of batches that are still there; the batches make up for it.
        let replaced = self.points + self.removed_points - added as i64;
        // A run that was deleted meanwhile has no row to count in, and gets no chunks.
        if chunks::count(tx.change()?, self.run, self.points, replaced).await? > 0 {
            if !self.removed.is_empty() {
                chunks::delete(tx.change()?, &self.removed).await?;
            }
            for chunk in &self.added {
                chunks::insert(tx.change()?, self.run, chunk).await?;
            }
            if !self.arrivals.is_empty() {
                chunks::set_compacted(tx.change()?, &self.arrivals).await?;
            }
            if self.is_sealed {
                chunks::set_sealed(tx.change()?, self.run).await?;
            }
        }
        if !self.arrivals.is_empty() {
            tx.after_commit(Effect::Compacted {
                run: self.run,
                points: self.points as u64,
                arrivals: self.arrivals.clone(),
            });
        }
        Ok(())
    }
}
