//! `Heartbeat`.

use crate::domain::{HeartbeatAnswer, RunId};
use crate::lifecycle::{Call, Rule, permit, refusals};
use crate::store::transaction::{Command, Failure, Tx};

/// `Heartbeat`.
#[derive(Debug)]
pub(in crate::store) struct Heartbeat(pub(in crate::store) RunId);

impl Command for Heartbeat {
    type Answer = HeartbeatAnswer;

    async fn apply(&self, tx: &mut Tx) -> Result<HeartbeatAnswer, Failure> {
        let number = tx.find(&self.0).await?.ok_or_else(|| refusals::unknown_run(&self.0))?;
        let rule = permit(Call::Heartbeat, &self.0, Some(tx.run(number).status))?;
        let request_resync = rule == Rule::Resync;
        if !request_resync {
            tx.seen(number);
        }
        Ok(HeartbeatAnswer {
            server_time: tx.now(),
            request_resync,
        })
    }
}
