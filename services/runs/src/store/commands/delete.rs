//! Deletes runs: the row at once, so that nobody sees the run, and the rows of other tables some at a time.

use crate::domain::RunId;
use crate::lifecycle::refusals;
use crate::store::statements::{batches, runs};
use crate::store::transaction::{Command, Effect, Failure, Tx};

/// Deletes a run.
#[derive(Debug)]
pub(in crate::store) struct DeleteRun(pub(in crate::store) RunId);

impl Command for DeleteRun {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        let number = tx.find(&self.0).await?.ok_or_else(|| refusals::unknown_run(&self.0))?;
        // So that what is held is known before it changes.
        tx.held_bytes().await?;
        let held = batches::held_bytes_of(tx.step()?, number).await?;
        tx.holds(0, held);
        tx.holds_since(number, None);
        tx.forget(number);
        runs::delete(tx.change()?, number).await?;
        tx.after_commit(Effect::Deleted {
            run: self.0.clone(),
            number,
        });
        Ok(())
    }
}

/// Deletes rows of deleted runs, some at a time; whether some may be left.
#[derive(Debug)]
pub(in crate::store) struct PurgeDeleted {
    pub(in crate::store) limit: i64,
}

impl Command for PurgeDeleted {
    type Answer = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Failure> {
        let Some(number) = runs::deleted(tx.step()?).await? else {
            return Ok(false);
        };
        let deleted = runs::purge(tx.change()?, number, self.limit).await?;
        if deleted == 0 {
            runs::purged(tx.change()?, number).await?;
        }
        Ok(true)
    }
}
