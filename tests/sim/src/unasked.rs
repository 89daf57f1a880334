//! What the ingester never asks of its database: the simulated one has no answers.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::{ColumnType, Kind};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::value::Value;
use kindex_query::{Page, Reader, Select, Stored};
use kindex_store::progress::Progress;
use kindex_store::{
    AdoptOptions, Adopted, Arrival, AsOf, Change, Changes, Collected, DeleteCollection, Direct, Gone, GoneRow, History,
    ListAt, LiveTable, Maintenance, MigrateError, MigrateOptions, Migrated, MigrationStanding, Migrations, Past,
    PendingStep, Plan, Position, Quarantined, Queries, RowImage, StoreError,
};

use super::storage::SimStorage;

#[async_trait]
impl History for SimStorage {
    async fn incarnations(&self, _: &Kind, namespace: &str, name: &str) -> Result<Vec<Stored>, StoreError> {
        // Whom an object replaced is told in an event alone.
        Ok(self.database().incarnations(namespace, name))
    }

    async fn history(&self, _: &Kind, _: &Uid, _: Option<&Past>, _: u32) -> Result<Vec<Past>, StoreError> {
        unreachable!("the ingester reads no history")
    }

    async fn version(&self, _: &Kind, _: &Uid, _: ResourceVersion) -> Result<Option<Past>, StoreError> {
        unreachable!("the ingester reads no history")
    }

    async fn version_at(&self, _: &Kind, _: &str, _: &str, _: Timestamp) -> Result<AsOf, StoreError> {
        unreachable!("the ingester reads no history")
    }

    async fn list_at(&self, _: &'static Kind, _: &ListAt, _: Option<&str>) -> Result<Page, StoreError> {
        unreachable!("the ingester reads no history")
    }
}

#[async_trait]
impl Migrations for SimStorage {
    async fn standing(&self) -> Result<MigrationStanding, StoreError> {
        unreachable!("the ingester migrates nothing")
    }

    async fn tables(&self) -> Result<Vec<LiveTable>, StoreError> {
        unreachable!("the ingester looks at no catalogue")
    }

    async fn pending(&self) -> Result<Vec<PendingStep>, MigrateError> {
        unreachable!("the ingester migrates nothing")
    }

    async fn migrate(&self, _: &MigrateOptions, _: &dyn Progress) -> Result<Vec<Migrated>, MigrateError> {
        unreachable!("the ingester migrates nothing")
    }

    async fn adoption(&self) -> Result<Vec<PendingStep>, MigrateError> {
        unreachable!("the ingester adopts no tables")
    }

    async fn adopt(&self, _: &AdoptOptions, _: &dyn Progress) -> Result<Adopted, MigrateError> {
        unreachable!("the ingester adopts no tables")
    }
}

#[async_trait]
impl Reader for SimStorage {
    type Error = StoreError;

    async fn select(&self, _: &Select, _: Option<&str>) -> Result<Page, StoreError> {
        unreachable!("the ingester reads no objects back")
    }

    async fn project(
        &self,
        _: &Select,
        _: &[(&'static str, ColumnType)],
        _: Option<&str>,
    ) -> Result<Page<Vec<Value>>, StoreError> {
        unreachable!("the ingester reads no columns back")
    }

    async fn newest_by_names(&self, _: &Kind, _: &[(String, String)]) -> Result<Vec<Stored>, StoreError> {
        unreachable!("the ingester reads no objects back")
    }
}

#[async_trait]
impl Queries for SimStorage {
    async fn count_selected(&self, _: &Select) -> Result<u64, StoreError> {
        unreachable!("the ingester counts nothing")
    }

    async fn explain(&self, _: &Select, _: Option<&str>) -> Result<Plan, StoreError> {
        unreachable!("the ingester asks for no plans")
    }

    async fn query_by_template_id(
        &self,
        _: &str,
        _: &BTreeMap<String, String>,
        _: Option<u32>,
        _: Option<&str>,
    ) -> Result<Page, StoreError> {
        unreachable!("the ingester knows no queries")
    }
}

#[async_trait]
impl Direct for SimStorage {
    async fn update_direct(&self, _: &Kind, _: &Object, _: Timestamp) -> Result<Object, StoreError> {
        unreachable!("the ingester writes what the cluster shows")
    }

    async fn delete_direct(
        &self,
        _: &Kind,
        _: &Uid,
        _: Option<ResourceVersion>,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        unreachable!("the ingester writes what the cluster shows")
    }

    async fn delete_collection(
        &self,
        _: &DeleteCollection,
        _: Option<&str>,
        _: Timestamp,
    ) -> Result<Collected, StoreError> {
        unreachable!("the ingester writes what the cluster shows")
    }
}

#[async_trait]
impl Changes for SimStorage {
    async fn positions(&self) -> Result<HashMap<String, Position>, StoreError> {
        unreachable!("the ingester follows the cluster")
    }

    async fn changes(&self, _: &Kind, _: Position, _: u32) -> Result<Option<Vec<Change>>, StoreError> {
        unreachable!("the ingester follows the cluster")
    }

    async fn mark(&self, _: &Kind, _: Position, _: ResourceVersion) -> Result<(), StoreError> {
        unreachable!("the ingester follows the cluster")
    }

    async fn marked_before(&self, _: &Kind, _: ResourceVersion) -> Result<Option<Position>, StoreError> {
        unreachable!("the ingester follows the cluster")
    }
}

#[async_trait]
impl Maintenance for SimStorage {
    async fn row_images(&self, _: &Kind, _: &[Uid]) -> Result<Vec<RowImage>, StoreError> {
        unreachable!("the ingester compares no rows")
    }

    async fn side_owners(&self, _: &Kind, _: Option<&Uid>, _: u32) -> Result<Vec<Uid>, StoreError> {
        unreachable!("the ingester compares no rows")
    }

    async fn strays(&self, _: &Kind, _: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        unreachable!("the ingester compares no rows")
    }

    async fn namesakes(&self, _: &Kind, _: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        unreachable!("the ingester compares no rows")
    }

    async fn gone_rows(
        &self,
        _: &'static Kind,
        _: &Gone,
        _: Option<Arrival>,
        _: u32,
    ) -> Result<Vec<GoneRow>, StoreError> {
        unreachable!("the ingester removes no rows")
    }

    async fn nth_newest_gone(&self, _: &'static Kind, _: &Gone, _: u32) -> Result<Vec<GoneRow>, StoreError> {
        unreachable!("the ingester removes no rows")
    }

    async fn remove(&self, _: &'static Kind, _: &Gone, _: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        unreachable!("the ingester removes no rows")
    }

    async fn quarantine_page(&self, _: &Kind, _: Option<&Uid>, _: u32) -> Result<Vec<Quarantined>, StoreError> {
        unreachable!("the ingester shows no records")
    }

    async fn quarantined_text(&self, _: &Kind, _: &Uid) -> Result<Option<String>, StoreError> {
        unreachable!("the ingester shows no records")
    }

    async fn save_first_checkpoint(&self, _: &Kind, _: ResourceVersion, _: Timestamp) -> Result<(), StoreError> {
        unreachable!("the ingester knows its checkpoints")
    }

    async fn state(&self, _: &Kind, _: &str) -> Result<Option<String>, StoreError> {
        unreachable!("the ingester has a checkpoint")
    }

    async fn save_state(&self, _: &Kind, _: &str, _: &str, _: Timestamp) -> Result<(), StoreError> {
        unreachable!("the ingester has a checkpoint")
    }

    async fn forget_state(&self, _: &Kind, _: &str) -> Result<(), StoreError> {
        unreachable!("the ingester has a checkpoint")
    }

    async fn clock(&self) -> Result<Timestamp, StoreError> {
        unreachable!("the ingester has a clock")
    }
}
