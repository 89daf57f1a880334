//! A connection on which something is under way that nobody else may meet there: a transaction, a lock, a setting of
//! the session, a reading of a whole table. It goes back to the pool once that has ended, and never before: whoever
//! waits for a call may give up at any moment.

use std::ops::{Deref, DerefMut};

use crate::driver::{Driver, Pooled, Raw};

/// Where that did not come to its end, the connection is not used again. sqlx 0.9 knows a transaction on MySQL only
/// once its beginning was answered: one that begins after its call was dropped stays open, and what others write on
/// that connection would be part of it, and be lost. A node of a Galera cluster would commit nothing of it. A lock that
/// is given so late would be held for as long as the pool keeps the connection.
pub(super) struct Occupied<D: Driver>(Option<Pooled<D>>);

impl<D: Driver> Occupied<D> {
    pub(super) fn new(connection: Pooled<D>) -> Self {
        Self(Some(connection))
    }

    /// The connection, once nothing is under way on it any more.
    pub(super) fn ended(mut self) -> Pooled<D> {
        self.0.take().expect("it is taken once")
    }
}

impl<D: Driver> Deref for Occupied<D> {
    type Target = Raw<D>;

    fn deref(&self) -> &Raw<D> {
        self.0.as_ref().expect("it is taken at the end")
    }
}

impl<D: Driver> DerefMut for Occupied<D> {
    fn deref_mut(&mut self) -> &mut Raw<D> {
        self.0.as_mut().expect("it is taken at the end")
    }
}

impl<D: Driver> Drop for Occupied<D> {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            D::discard(connection);
        }
    }
}
