//! Which cluster's objects a database has: two clusters that write to one database would each close the rows of the
//! other.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};

use super::state;
use crate::connections::failure;
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::sql_store::{BOOKKEEPING, SqlStore};
use crate::statements::{bookkeeping, fixed};
use crate::write::number;

/// What stands for all kinds in `kindex_state`. The names of kinds begin with a capital letter.
static OF_ALL_KINDS: Kind = Kind {
    name: BOOKKEEPING,
    ..Kind::EMPTY
};
/// Under which name it is there.
const CLUSTER: &str = "cluster";
/// The name in `kindex_state` under which a backfill keeps, for its kind, from where it goes on in its cluster.
pub const BACKFILL_PROGRESS: &str = "backfill";

/// The cluster of a database, by the uid of its namespace `kube-system`.
#[async_trait]
pub trait ClusterBinding: Send + Sync {
    /// The cluster whose objects the database has; `None` before any was recorded.
    async fn cluster(&self) -> Result<Option<Uid>, StoreError>;

    /// Records a cluster where none is recorded, and says which one is afterwards: of two that come at once, both are
    /// told the same.
    async fn claim(&self, cluster: &Uid, now: Timestamp) -> Result<Uid, StoreError>;

    /// From now on the database has the objects of this cluster. Each kind is compared with the whole cluster at its
    /// next start, since its checkpoint is a version of the former one. A backfill of the former one is not continued.
    async fn hand_over(&self, cluster: &Uid, now: Timestamp) -> Result<(), StoreError>;
}

#[async_trait]
impl<D: Driver> ClusterBinding for SqlStore<D> {
    async fn cluster(&self) -> Result<Option<Uid>, StoreError> {
        let found = state::state(&self.connections, &OF_ALL_KINDS, CLUSTER).await?;
        Ok(found.as_deref().map(Uid::from))
    }

    async fn claim(&self, cluster: &Uid, now: Timestamp) -> Result<Uid, StoreError> {
        let statement = bookkeeping::first_state(self.connections.driver.spelling());
        let params = [
            Param::Text(BOOKKEEPING),
            Param::Text(CLUSTER),
            Param::Text(&cluster.0),
            Param::Time(now),
        ];
        self.count_changed(&OF_ALL_KINDS, statement, &params).await?;
        Ok(self.cluster().await?.unwrap_or_else(|| cluster.clone()))
    }

    async fn hand_over(&self, cluster: &Uid, now: Timestamp) -> Result<(), StoreError> {
        // First, so that whoever is interrupted finds the former cluster, and begins again.
        self.compare_all(now).await?;
        state::save_state(&self.connections, &OF_ALL_KINDS, CLUSTER, &cluster.0, now).await?;
        // An ingester of the former cluster may have saved a version of it meanwhile.
        self.compare_all(now).await
    }
}

impl<D: Driver> SqlStore<D> {
    /// Whoever starts compares its kind with the whole cluster, from its beginning.
    async fn compare_all(&self, now: Timestamp) -> Result<(), StoreError> {
        let held = number(Checkpoint::Held(ResourceVersion(0)).pack());
        let hold = fixed(
            "UPDATE [kindex_checkpoint] SET [res_version] = [res_version] + ?, [update_time] = ? \
             WHERE [res_version] < ?",
        );
        let forget = fixed("DELETE FROM [kindex_state] WHERE [name] = ?");
        let held = self.connections.execute(hold, &[held, Param::Time(now), held]).await;
        held.map_err(|error| failure::<D>(BOOKKEEPING, error))?;
        let forgotten = self
            .connections
            .execute(forget, &[Param::Text(BACKFILL_PROGRESS)])
            .await;
        forgotten.map_err(|error| failure::<D>(BOOKKEEPING, error))?;
        Ok(())
    }
}
