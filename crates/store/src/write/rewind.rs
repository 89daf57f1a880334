//! A restored cluster: rewinds rows, and moves lost versions of histories to a branch.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};

use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::{LIST_MAX, padded_list};
use crate::write::versions::lost_branch;

/// Letting a restored cluster win over newer rows.
#[async_trait]
pub trait Rewind: Send + Sync {
    /// Sets `res_version` of these rows to 0, so that any version of the cluster replaces them. Only for a restored
    /// cluster with older versions than SQL. Idempotent; absent rows are skipped; nothing else of a row changes. Their
    /// versions in the history move to a branch that was lost `now`.
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError>;

    /// Moves every version above this one in the history, of all objects, to a branch that was lost `now`: the cluster
    /// was restored to that version and will assign the numbers again. Idempotent; has no effect for a kind without a
    /// history.
    async fn branch_off_beyond(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError>;
}

#[async_trait]
impl<D: Driver> Rewind for SqlStore<D> {
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError> {
        let mut names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        names.sort_unstable();
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            if kind.history {
                // First: after the rewind, the row no longer shows that its history must be moved.
                let branch = [Param::Int(lost_branch(now))];
                let statement = self.history_sql(kind).branch_off(params.len());
                self.change(kind, statement, &[&branch[..], &params].concat()).await?;
            }
            let statement = self.texts(kind).rewind(params.len());
            self.change(kind, statement, &params).await?;
        }
        Ok(())
    }

    async fn branch_off_beyond(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError> {
        if !kind.history {
            return Ok(());
        }
        let params = [Param::Int(lost_branch(now)), Param::Int(beyond.0.cast_signed())];
        let statement = self.history_sql(kind).branch_off_beyond();
        self.change(kind, statement, &params).await
    }
}
