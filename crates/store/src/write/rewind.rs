//! A restored cluster: rewinds rows, and moves lost versions of histories to a branch.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};

use crate::connections::{InTransaction, failure};
use crate::driver::{Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::history::HistorySql;
use crate::statements::{KindSql, LIST_MAX, padded_list};
use crate::write::versions::lost_branch;

/// Letting a restored cluster win over newer rows.
#[async_trait]
pub trait Rewind: Send + Sync {
    /// Sets `res_version` of these rows to 0, so that any version of the cluster replaces them. Only for a restored
    /// cluster with older versions than SQL. Idempotent; absent rows are skipped; nothing else of a row changes. Their
    /// versions in the history move to a branch that was lost `now`, in the same transaction as the row.
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError>;

    /// Moves every version above this one in the history, of all objects, to a branch that was lost `now`: the cluster
    /// was restored to that version and will assign the numbers again. Idempotent; has no effect for a kind without a
    /// history.
    ///
    /// A second ingester that joins a restoration also moves what the first one has stored since. Nothing but its time
    /// tells such a version from one of the lost time that was written late, and clocks of different machines are not
    /// compared. A lost version that stayed would take the place of the one that gets its number.
    async fn branch_off_beyond(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError>;
}

/// Rows that are rewound in one transaction.
struct RewindRows<'a> {
    kind: &'a Kind,
    sql: &'a KindSql,
    /// Where the kind keeps a history.
    history: Option<HistorySql>,
    /// As many as one list holds, in the order of uid that all writers have.
    uids: &'a [&'a str],
    now: Timestamp,
}

impl<D: Driver> InTransaction<D> for RewindRows<'_> {
    type Done = ();

    fn kind(&self) -> &'static str {
        self.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, _: Limits) -> Result<(), sqlx::Error> {
        let uids = padded_list(self.uids);
        // The rows first, as every writer locks them before it changes their history. One that came between a history
        // that has moved and its row would find a version that is not kept, and bring it back into the present.
        D::execute(connection, self.sql.rewind(uids.len()), &uids).await?;
        if let Some(history) = self.history {
            let branch = [Param::Int(lost_branch(self.now))];
            let params = [&branch[..], &uids].concat();
            D::execute(connection, history.branch_off(uids.len()), &params).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl<D: Driver> Rewind for SqlStore<D> {
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError> {
        let mut names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        names.sort_unstable();
        let sql = self.texts(kind);
        for uids in names.chunks(LIST_MAX) {
            let rows = RewindRows {
                kind,
                sql: &sql,
                history: kind.history.then(|| self.history_sql(kind)),
                uids,
                now,
            };
            let rewound = self.connections.transact(&rows).await;
            rewound.map_err(|error| failure::<D>(kind.name, error))?;
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
