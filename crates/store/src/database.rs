//! The database behind a store: whether it is there, how busy it is, and its end.

use async_trait::async_trait;

use crate::calls::Calls;
use crate::connections::failure;
use crate::dialect::Dialect;
use crate::driver::{Driver, PoolUse};
use crate::error::StoreError;
use crate::outage::Outage;
use crate::sql_store::{BOOKKEEPING, SqlStore};
use crate::statements::fixed;

/// The store as a database that can be away.
#[async_trait]
pub trait Database: Send + Sync {
    /// The SQL that this store speaks.
    fn dialect(&self) -> Dialect;

    /// Asks the database something that reads no table: whether it answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// How many connections are open now.
    fn pool(&self) -> PoolUse;

    /// The calls that wait for the database now.
    fn calls(&self) -> &Calls;

    /// Whether the database can be reached.
    fn outage(&self) -> &Outage;

    /// Closes all connections; further calls fail.
    async fn close(&self);
}

#[async_trait]
impl<D: Driver> Database for SqlStore<D> {
    fn dialect(&self) -> Dialect {
        self.connections.driver.spelling().dialect()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let answered = self.connections.query(fixed("SELECT 1"), &[]).await;
        answered.map(drop).map_err(|error| failure::<D>(BOOKKEEPING, error))
    }

    fn pool(&self) -> PoolUse {
        self.connections.driver.pool()
    }

    fn calls(&self) -> &Calls {
        &self.connections.calls
    }

    fn outage(&self) -> &Outage {
        &self.connections.outage
    }

    async fn close(&self) {
        self.connections.driver.close().await;
    }
}
