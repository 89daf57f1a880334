//! Archived objects whose name another object took in the cluster, past the API server. Their rows say no more than
//! that they were deleted: what happened stands in Kindex's own state, written by the transaction that closed the row,
//! and counts for as long as the row says the same time. Knows no dialect.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Stored;

use super::bookkeeping::replacing;
use super::connections::failure;
use super::dialect::marks;
use super::driver::{Cells, Driver, Param, Raw, Statement};
use super::sql::{LIST_MAX, kept, padded};
use super::sql_store::SqlStore;
use super::write::Batch;
use super::{RowWrite, StoreError, Written};

/// An archived object, and the one that has its name now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) uid: Uid,
    pub(super) by: Uid,
}

impl Replaced {
    /// Whether the other one is the object itself, created again from SQL.
    fn came_back(&self, restored_from: &str, writes: &[RowWrite]) -> bool {
        writes.iter().any(|write| match write {
            RowWrite::Store { version, .. } => {
                let metadata = &version.object.metadata;
                let from = metadata.annotations.get(restored_from);
                metadata.uid == self.by && from.is_some_and(|uid| **uid == *self.uid.0)
            }
            RowWrite::SoftDelete { .. } | RowWrite::Record { .. } => false,
        })
    }
}

impl<D: Driver> Batch<'_, D> {
    /// Records those that were replaced, and says of the writes which did it.
    pub(super) async fn record_replaced(
        &mut self,
        replaced: &[Replaced],
        writes: &[RowWrite],
        written: &mut [Written],
    ) -> Result<(), sqlx::Error> {
        let restored_from = self.work.restored_from;
        for replaced in replaced.iter().filter(|one| !one.came_back(restored_from, writes)) {
            let statement = replacing(
                self.work.sql.dialect(),
                "kindex_state",
                &["kind", "name", "value", "update_time"],
                "`kind`, `name`",
                &["value", "update_time"],
                "",
            );
            let name = state_name(&replaced.uid.0);
            let params = [
                Param::Text(self.work.kind.name),
                Param::Text(&name),
                Param::Text(&replaced.by.0),
                Param::Time(self.work.now),
            ];
            D::execute(self.connection, statement, &params).await?;
            let by = writes
                .iter()
                .position(|write| write.is_of_a_row() && *write.uid() == replaced.by);
            // Whose write lost against a newer row has to learn of that.
            if let Some(by) = by.filter(|by| matches!(written[*by], Written::Inserted | Written::Updated)) {
                written[by] = Written::Replacing;
            }
        }
        Ok(())
    }
}

impl<D: Driver> SqlStore<D> {
    /// The same rows, saying of those that were replaced by which object.
    pub(super) async fn with_replaced(&self, kind: &Kind, mut rows: Vec<Stored>) -> Result<Vec<Stored>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let may_be = |row: &Stored| row.delete_time.is_some() && row.evicted_time.is_some();
        let names: Vec<String> = rows.iter().filter(|row| may_be(row)).map(name_of).collect();
        for chunk in names.chunks(LIST_MAX) {
            let mut params = vec![Param::Text(kind.name)];
            params.extend(list(chunk));
            let time = self.connections.driver.dialect().time_text("update_time");
            let statement = kept(format!(
                "SELECT `name`, `value`, {time} FROM `kindex_state` WHERE `kind` = ? AND `name` IN ({})",
                marks("?", params.len() - 1),
            ));
            for found in self.connections.query(statement, &params).await.map_err(failed)? {
                let (name, by) = (found.text(0).map_err(failed)?, found.text(1).map_err(failed)?);
                let time = found.time(2).map_err(failed)?;
                let mut same = rows.iter_mut();
                // A row that came back to life, and was deleted since, has another time.
                if let Some(row) = same.find(|row| row.delete_time == time && name_of(row) == name) {
                    row.replaced_by = Some(Uid::from(by.as_str()));
                }
            }
        }
        Ok(rows)
    }
}

/// Forgets what is recorded of rows that are removed.
pub(super) async fn forget<D: Driver>(connection: &mut Raw<D>, kind: &Kind, uids: &[&str]) -> Result<(), sqlx::Error> {
    let names: Vec<String> = uids.iter().map(|uid| state_name(uid)).collect();
    let mut params = vec![Param::Text(kind.name)];
    params.extend(list(&names));
    D::execute(connection, forgetting(params.len() - 1), &params).await?;
    Ok(())
}

fn forgetting(names: usize) -> Statement {
    kept(format!(
        "DELETE FROM `kindex_state` WHERE `kind` = ? AND `name` IN ({})",
        marks("?", names),
    ))
}

/// In a size that is kept prepared.
fn list(names: &[String]) -> impl Iterator<Item = Param<'_>> {
    let last = names.last().map(String::as_str).unwrap_or_default();
    (0..padded(names.len())).map(move |index| Param::Text(names.get(index).map_or(last, String::as_str)))
}

fn name_of(row: &Stored) -> String {
    state_name(&row.object.metadata.uid.0)
}

fn state_name(uid: &str) -> String {
    format!("replaced/{uid}")
}
