//! `FinishRun`.

use crate::domain::{FinishRun, Finished, Status};
use crate::lifecycle::{Ending, finish, finish_status, refusals};
use crate::store::statements::{attributes, runs};
use crate::store::transaction::{Command, Effect, Failure, Tx};

use super::release::release_all;

/// `FinishRun`.
#[derive(Debug)]
pub(in crate::store) struct Finish(pub(in crate::store) FinishRun);

impl Finish {
    async fn end(&self, tx: &mut Tx, number: i64, status: Status) -> Result<(), Failure> {
        // What was answered is visible before the end is.
        release_all(tx, number).await?;
        let now = tx.now();
        tx.update(number, |run| {
            run.status = status;
            run.finished_at = Some(now);
            run.seen(now);
        });
        runs::set_end(tx.change()?, number, self.0.exit_code, self.0.error_message.as_deref()).await?;
        for (name, value) in &self.0.summary {
            attributes::set_summary(tx.change()?, number, name, value).await?;
        }
        tx.after_commit(Effect::Ended(number));
        Ok(())
    }
}

impl Command for Finish {
    type Answer = Finished;

    async fn apply(&self, tx: &mut Tx) -> Result<Finished, Failure> {
        let id = &self.0.run;
        let wanted = finish_status(self.0.status)?;
        let number = tx.find(id).await?.ok_or_else(|| refusals::unknown_run(id))?;
        let artifacts = match finish(id, Some(tx.run(number).status), wanted)? {
            Ending::End(status) => {
                let artifacts = runs::artifacts(tx.step()?, number).await?;
                self.end(tx, number, status).await?;
                artifacts
            }
            Ending::Stored => runs::artifacts(tx.step()?, number).await?,
        };
        let run = tx.run(number);
        let finished_at = run.finished_at.unwrap_or(run.last_seen_at);
        Ok(Finished {
            duration: finished_at.saturating_sub(run.created_at).max(0),
            points: run.points,
            artifacts,
            finished_at,
            warnings: self.0.warnings.clone(),
        })
    }

    fn bytes(&self) -> usize {
        let summary = self
            .0
            .summary
            .iter()
            .map(|(name, value)| name.len() + value.len() + 64)
            .sum::<usize>();
        512 + summary + self.0.error_message.as_ref().map_or(0, String::len)
    }
}
