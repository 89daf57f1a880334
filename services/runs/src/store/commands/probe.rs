//! A transaction that changes nothing, and writes all the same.

use crate::store::statements::counters;
use crate::store::transaction::{Command, Failure, Tx};

/// Whether something can be written.
#[derive(Debug)]
pub(in crate::store) struct Probe;

impl Command for Probe {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        counters::probe(tx.change()?).await?;
        Ok(())
    }
}
