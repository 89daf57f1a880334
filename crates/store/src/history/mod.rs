//! Reading the past: the versions of an object, one of them by number, and what stood under
//! a name at a moment.

mod as_of;

mod list;

use as_of::Reader;
pub use as_of::{AsOf, HistoryVersion};
use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Page;
pub use list::ListAt;

use crate::driver::Driver;
use crate::error::StoreError;
use crate::read::RowsOfName as _;
use crate::sql_store::SqlStore;

/// The SQL store as a memory of what was.
#[async_trait]
pub trait History: Send + Sync {
    /// The newest versions of an object, or those before one of them; the newest first.
    ///
    /// # Errors
    /// [`StoreError::NoHistory`], here and below.
    async fn history(
        &self,
        kind: &Kind,
        uid: &Uid,
        before: Option<&HistoryVersion>,
        limit: u32,
    ) -> Result<Vec<HistoryVersion>, StoreError>;

    /// A version of an object by its number. Of two, the one that the cluster did not lose.
    async fn version(
        &self,
        kind: &Kind,
        uid: &Uid,
        version: ResourceVersion,
    ) -> Result<Option<HistoryVersion>, StoreError>;

    /// What stood under a name at a time: the last version that had been seen by then.
    async fn version_at(&self, kind: &Kind, namespace: &str, name: &str, time: Timestamp) -> Result<AsOf, StoreError>;

    /// A page of what stood under all names at a time and was not deleted, each object as it was then, in order
    /// of namespace and name. What changes meanwhile does not show.
    ///
    /// # Errors
    /// [`StoreError::Continue`] for a token of another list.
    async fn list_at(
        &self,
        kind: &'static Kind,
        wanted: &ListAt,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError>;
}

#[async_trait]
impl<D: Driver> History for SqlStore<D> {
    async fn history(
        &self,
        kind: &Kind,
        uid: &Uid,
        before: Option<&HistoryVersion>,
        limit: u32,
    ) -> Result<Vec<HistoryVersion>, StoreError> {
        self.reader(kind)?.page(uid, before, limit).await
    }

    async fn version(
        &self,
        kind: &Kind,
        uid: &Uid,
        version: ResourceVersion,
    ) -> Result<Option<HistoryVersion>, StoreError> {
        self.reader(kind)?.version(uid, version).await
    }

    async fn version_at(&self, kind: &Kind, namespace: &str, name: &str, time: Timestamp) -> Result<AsOf, StoreError> {
        let reader = self.reader(kind)?;
        let rows = self.rows_of_name(kind, namespace, name).await?;
        reader.as_of(rows, time).await
    }

    async fn list_at(
        &self,
        kind: &'static Kind,
        wanted: &ListAt,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError> {
        list::list(self, &self.reader(kind)?, kind, wanted, continue_token).await
    }
}

impl<D: Driver> SqlStore<D> {
    fn reader<'a>(&'a self, kind: &'a Kind) -> Result<Reader<'a, D>, StoreError> {
        if !kind.history {
            return Err(StoreError::NoHistory(kind.name.to_owned()));
        }
        Ok(Reader {
            connections: &self.connections,
            kind,
            sql: self.history_sql(kind),
        })
    }
}
