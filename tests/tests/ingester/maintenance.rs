//! What the ingester never asks of its database: the fake of it has no answers.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_runtime::kind::Kind;
use kindex_runtime::object::{ResourceVersion, Uid};
use kindex_runtime::store::{Gone, GoneRow, Maintenance, Quarantined, RowImage, StoreError};

use super::fakes::FakeStorage;

#[async_trait]
impl Maintenance for FakeStorage {
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

    async fn gone_rows(&self, _: &'static Kind, _: &Gone, _: Option<&Uid>, _: u32) -> Result<Vec<GoneRow>, StoreError> {
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
