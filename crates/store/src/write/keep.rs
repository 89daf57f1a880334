//! The part of a batch's transaction that adds to a history.

use kindex_model::object::Uid;

use crate::cells::res_version;
use crate::driver::{Cells, Driver, Param};
use crate::packed;
use crate::statements::history::HistorySql;
use crate::statements::{LIST_MAX, padded_list};
use crate::write::batch::Batch;
use crate::write::versions::{HistoryBatch, PackedVersion, lost_branch};

impl<D: Driver> Batch<'_, D> {
    /// Keeps what rows hold that are about to be replaced, where it is not kept: the history began
    /// after they were written. Under the rows' locks.
    pub(crate) async fn keep_replaced(&mut self, sql: HistorySql, uids: &[&str]) -> Result<(), sqlx::Error> {
        for chunk in uids.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            let rows = D::query(self.connection, sql.unkept(params.len()), &params).await?;
            let unkept = rows.iter().map(|row| self.unkept(row));
            let mut unkept: Vec<PackedVersion> = unkept.collect::<Result<_, sqlx::Error>>()?;
            unkept.sort_unstable_by(|a, b| a.uid.cmp(&b.uid));
            self.keep(sql, &unkept).await?;
        }
        Ok(())
    }

    fn unkept(&self, row: &D::Row) -> Result<PackedVersion, sqlx::Error> {
        Ok(PackedVersion {
            uid: Uid::from(row.text(0)?.as_str()),
            version: res_version(row, 1)?,
            seen: row.time(2)?.unwrap_or(self.work.now),
            payload: packed::pack(&row.text(3)?),
        })
    }

    /// Lets the cluster's versions begin anew where SQL had given larger ones, or had been told otherwise.
    pub(crate) async fn branch_off(&mut self, sql: HistorySql, uids: &[&str]) -> Result<(), sqlx::Error> {
        for chunk in uids.chunks(LIST_MAX) {
            let mut params = vec![Param::Int(lost_branch(self.work.now))];
            params.extend(padded_list(chunk));
            D::execute(self.connection, sql.branch_off(params.len() - 1), &params).await?;
        }
        Ok(())
    }

    /// Adds the batch's versions.
    pub(crate) async fn write_history(&mut self, history: &HistoryBatch) -> Result<(), sqlx::Error> {
        self.keep(history.sql, &history.versions).await
    }

    async fn keep(&mut self, sql: HistorySql, versions: &[PackedVersion]) -> Result<(), sqlx::Error> {
        let rows: Vec<[Param<'_>; 6]> = versions.iter().map(PackedVersion::params).collect();
        self.execute_rows(&rows, |_, rows| sql.insert(rows)).await
    }
}
