//! How far the events of each kind are stored.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;

use crate::cells::res_version;
use crate::connections::failure;
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::bookkeeping;

/// A saved version from here on is a mark, which is replaced only by who knows it.
pub const MARKS_FROM: ResourceVersion = ResourceVersion(1 << 62);

/// What became of a version that was to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// It is saved.
    Done,
    /// This one was saved already, and stays: a mark that the caller did not know, unless it was replaced while the
    /// caller was being refused.
    Refused(ResourceVersion),
}

/// From where a watch goes on after a restart.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// The resource version up to which every event of the kind is stored.
    async fn checkpoint(&self, kind: &Kind) -> Result<Option<ResourceVersion>, StoreError>;

    /// Remembers such a version, but never in place of a mark, a version from [`MARKS_FROM`] on, other than the one
    /// that the caller knows: of two callers that save the same mark, one is refused. A caller that does not hear of
    /// its mark having been saved is refused as well when it comes again.
    async fn save_checkpoint(
        &self,
        kind: &Kind,
        version: ResourceVersion,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<Saving, StoreError>;
}

#[async_trait]
impl<D: Driver> Checkpoints for SqlStore<D> {
    async fn checkpoint(&self, kind: &Kind) -> Result<Option<ResourceVersion>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = [Param::Text(kind.name)];
        let rows = self
            .connections
            .query(bookkeeping::checkpoint(), &params)
            .await
            .map_err(failed)?;
        let version = rows.first().map(|row| res_version(row, 0));
        version.transpose().map_err(failed)
    }

    async fn save_checkpoint(
        &self,
        kind: &Kind,
        version: ResourceVersion,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<Saving, StoreError> {
        let [kind_name, now] = [Param::Text(kind.name), Param::Time(now)];
        let [version, least, known] =
            [version, MARKS_FROM, known_mark.unwrap_or_default()].map(|version| Param::Int(version.0.cast_signed()));
        let replace = bookkeeping::replace_checkpoint();
        let params = [version, now, kind_name, least, known];
        if self.count_changed(kind, replace, &params).await? > 0 {
            return Ok(Saving::Done);
        }
        let first = bookkeeping::first_checkpoint(self.connections.driver.spelling());
        if self.count_changed(kind, first, &[kind_name, version, now]).await? > 0 {
            return Ok(Saving::Done);
        }
        let found = self.checkpoint(kind).await?;
        Ok(Saving::Refused(found.unwrap_or_default()))
    }
}
