//! Requests whose senders have given up, or have died: the cluster and the database may still carry them out.

use kindex_runtime::message::Output;

/// What nobody waits for any more, in the order in which it was given up.
#[derive(Default)]
pub(crate) struct Abandoned {
    /// Requests to the cluster.
    pub(crate) late: Vec<Output>,
    /// Transactions; they still hold their locks.
    pub(crate) open_transactions: Vec<Output>,
}

impl Abandoned {
    /// One of the requests to the cluster.
    pub(crate) fn take_late(&mut self, pick: usize) -> Option<Output> {
        let index = pick.checked_rem(self.late.len())?;
        Some(self.late.swap_remove(index))
    }

    /// The oldest of the transactions.
    pub(crate) fn take_transaction(&mut self) -> Option<Output> {
        let is_open = !self.open_transactions.is_empty();
        is_open.then(|| self.open_transactions.remove(0))
    }
}
