//! How far the events of each kind are stored.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;

use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::bookkeeping;
use crate::write::feed::number;

/// What became of a checkpoint that was to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointOutcome {
    /// It is saved.
    Done,
    /// This one was saved already, and stays: a mark that the caller did not know, unless it was replaced while the
    /// caller was being refused.
    Refused(Checkpoint),
}

/// From where a watch goes on after a restart.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Up to where every event of the kind is stored.
    async fn checkpoint(&self, kind: &Kind) -> Result<Option<Checkpoint>, StoreError>;

    /// Remembers how far events are stored, but never in place of a [restore mark](Checkpoint::restored_to) other than
    /// the one that the caller knows by its version: of two callers that save the same mark, one is refused. A caller
    /// that does not hear of its mark having been saved is refused as well when it comes again.
    async fn save_checkpoint(
        &self,
        kind: &Kind,
        checkpoint: Checkpoint,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<CheckpointOutcome, StoreError>;
}

#[async_trait]
impl<D: Driver> Checkpoints for SqlStore<D> {
    async fn checkpoint(&self, kind: &Kind) -> Result<Option<Checkpoint>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = [Param::Text(kind.name)];
        let rows = self
            .connections
            .query(bookkeeping::checkpoint(), &params)
            .await
            .map_err(failed)?;
        let number = rows.first().map(|row| row.int(0)).transpose().map_err(failed)?;
        Ok(number.map(|number| Checkpoint::unpack(number.cast_unsigned())))
    }

    async fn save_checkpoint(
        &self,
        kind: &Kind,
        checkpoint: Checkpoint,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<CheckpointOutcome, StoreError> {
        let [kind_name, now] = [Param::Text(kind.name), Param::Time(now)];
        let [checkpoint, least] = [checkpoint, Checkpoint::LEAST_MARK].map(|one| number(one.pack()));
        // NULL is no mark at all.
        let known = known_mark.map_or(Param::Null, |mark| number(Checkpoint::Restoring(mark).pack()));
        let replace = bookkeeping::replace_checkpoint();
        let params = [checkpoint, now, kind_name, least, known];
        if self.count_changed(kind, replace, &params).await? > 0 {
            return Ok(CheckpointOutcome::Done);
        }
        let first = bookkeeping::first_checkpoint(self.connections.driver.spelling());
        if self.count_changed(kind, first, &[kind_name, checkpoint, now]).await? > 0 {
            return Ok(CheckpointOutcome::Done);
        }
        let found = self.checkpoint(kind).await?;
        Ok(CheckpointOutcome::Refused(
            found.unwrap_or(Checkpoint::Settled(ResourceVersion(0))),
        ))
    }
}
