//! A cluster that came back from a backup: rows and histories are taken back to what it knows.

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
    /// Sets `res_version` of these rows to 0, so that the cluster's version wins whatever it is.
    /// Only for a cluster that came back from a backup and shows older versions than SQL
    /// holds. Idempotent; absent rows are left out; nothing else of a row changes. What a history
    /// holds of them goes to a branch that was lost `now`.
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError>;

    /// Puts every version beyond this one that a history holds, of all objects, on a branch that was
    /// lost `now`: the cluster came back from a backup of that version, and will use the numbers again.
    /// Idempotent; without an effect for a kind that keeps no history.
    async fn unsay(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError>;
}

#[async_trait]
impl<D: Driver> Rewind for SqlStore<D> {
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError> {
        let mut names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        names.sort_unstable();
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            if kind.history {
                // First: a row whose history was not taken back would hide what follows.
                let branch = [Param::Int(lost_branch(now))];
                let statement = self.history_sql(kind).branch_off(params.len());
                self.change(kind, statement, &[&branch[..], &params].concat()).await?;
            }
            let statement = self.texts(kind).rewind(params.len());
            self.change(kind, statement, &params).await?;
        }
        Ok(())
    }

    async fn unsay(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError> {
        if !kind.history {
            return Ok(());
        }
        let params = [Param::Int(lost_branch(now)), Param::Int(beyond.0.cast_signed())];
        let statement = self.history_sql(kind).branch_off_beyond();
        self.change(kind, statement, &params).await
    }
}
