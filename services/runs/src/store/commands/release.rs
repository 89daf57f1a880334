//! Carries out what was decided on held batches.

use crate::ledger::Placement;
use crate::store::statements::batches;
use crate::store::transaction::{Effect, Failure, Tx};

/// Applies held batches of a run in the order of a decision, which is settled then. `arriving` is the batch that the
/// decision is about: sequence, arrival number and time of receipt; its own row is written by the caller with the
/// ordinal that is returned.
pub(super) async fn carry_out(
    tx: &mut Tx,
    run: i64,
    placement: &Placement,
    arriving: Option<(Option<i64>, i64, i64)>,
) -> Result<Option<i64>, Failure> {
    let own = arriving.map(|(_, arrival, _)| arrival);
    let mut own_ordinal = None;
    for arrival in &placement.applied {
        let ordinal = tx.next_ordinal().await?;
        if Some(*arrival) == own {
            own_ordinal = Some(ordinal);
            continue;
        }
        let (points, bytes) = batches::release(tx.change()?, *arrival, ordinal).await?;
        tx.holds(0, bytes);
        tx.after_commit(Effect::Applied {
            arrival: *arrival,
            run,
            points,
            body: None,
        });
    }
    let held = arriving.and_then(|(sequence, arrival, received_at)| Some((sequence?, arrival, received_at)));
    tx.update(run, |state| state.queue.settle(placement, held));
    let oldest = tx.run(run).queue.oldest();
    tx.holds_since(run, oldest);
    Ok(own_ordinal)
}

/// Applies all held batches of a run.
pub(super) async fn release_all(tx: &mut Tx, run: i64) -> Result<(), Failure> {
    let queue = &tx.run(run).queue;
    if queue.is_empty() {
        return Ok(());
    }
    let placement = queue.release();
    carry_out(tx, run, &placement, None).await?;
    Ok(())
}
