//! What happens because time has passed: held batches are released, silent runs crash and are given up in the end, old
//! ids of batches are forgotten.

use std::sync::{Arc, Mutex};

use crate::domain::{RunId, Status};
use crate::lifecycle::Watch;
use crate::store::statements::{batches, chunks, runs};
use crate::store::transaction::{Command, Effect, Failure, Tx};

use super::release::release_all;

/// Runs that crash in one transaction at most, so that it stays short.
const CRASHES_MAX: i64 = 200;

/// A look at the clock.
#[derive(Clone, Debug)]
pub(in crate::store) struct Tick {
    /// Since when the server has listened.
    pub(in crate::store) watch: Arc<Mutex<Watch>>,
}

/// What a look at the clock has led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Runs whose held batches were released.
    pub released: u64,
    /// Runs that have crashed.
    pub crashed: Vec<RunId>,
}

impl Tick {
    /// Nothing of it depends on whether the transaction is committed.
    fn look(&self, tx: &Tx) -> Watch {
        let rules = tx.settings().silence;
        let mut watch = self.watch.lock().expect("nothing panics while it looks at the clock");
        *watch = watch.look(tx.now(), &rules);
        *watch
    }

    async fn release_due(tx: &mut Tx) -> Result<u64, Failure> {
        let settings = tx.settings();
        let before = tx.now().saturating_sub(settings.reorder.wait);
        let mut released = 0;
        for number in tx.held_before(before).await? {
            let Some(id) = runs::id(tx.step()?, number).await? else {
                continue;
            };
            if let Some(number) = tx.find(&id).await?
                && tx.run(number).queue.is_due(tx.now(), &settings.reorder)
            {
                release_all(tx, number).await?;
                released += 1;
            }
        }
        Ok(released)
    }

    async fn crash_silent(tx: &mut Tx, watch: Watch) -> Result<Vec<RunId>, Failure> {
        let rules = tx.settings().silence;
        let Some(since) = watch.silent_since(&rules) else {
            return Ok(Vec::new());
        };
        let mut crashed = Vec::new();
        for id in runs::silent(tx.read().await?, since, CRASHES_MAX).await? {
            let Some(number) = tx.find(&id).await? else {
                continue;
            };
            let run = tx.run(number);
            if run.status != Status::Running || !watch.has_crashed(run.last_seen_at, &rules) {
                continue;
            }
            release_all(tx, number).await?;
            tx.update(number, |run| run.status = Status::Crashed);
            crashed.push(id);
        }
        Ok(crashed)
    }
}

impl Command for Tick {
    type Answer = TickReport;

    async fn apply(&self, tx: &mut Tx) -> Result<TickReport, Failure> {
        let watch = self.look(tx);
        let released = Self::release_due(tx).await?;
        let crashed = Self::crash_silent(tx, watch).await?;
        Ok(TickReport { released, crashed })
    }
}

/// Forgets ids of batches that are old enough, some at a time; how many.
#[derive(Debug)]
pub(in crate::store) struct ForgetBatches {
    pub(in crate::store) limit: i64,
}

impl Command for ForgetBatches {
    type Answer = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Failure> {
        let rules = tx.settings().retention;
        let (received, seen) = (rules.received_before(tx.now()), rules.seen_before(tx.now()));
        let old = batches::old(tx.read().await?, received, seen, self.limit).await?;
        for row in &old {
            batches::forget(tx.change()?, row).await?;
        }
        Ok(old.len() as u64)
    }
}

/// Gives up crashed runs, some at a time: no token resumes them any more, so that they can be sealed.
#[derive(Debug)]
pub(in crate::store) struct GiveUpCrashed {
    pub(in crate::store) limit: i64,
}

impl Command for GiveUpCrashed {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        let before = tx.settings().retention.seen_before(tx.now());
        for run in chunks::unsealed_crashed(tx.read().await?, before, self.limit).await? {
            tx.after_commit(Effect::Ended(run));
        }
        Ok(())
    }
}
