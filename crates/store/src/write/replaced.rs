//! Archived objects that were replaced by an object of the same name, created directly in the cluster. Their rows are
//! only marked deleted. The replacement is recorded in Kindex's own state by the transaction that closed the row, and
//! is valid as long as the row has the same time. Knows no dialect.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;

use crate::dialect::Spelling;
use crate::driver::{Driver, Param, Raw, Statement};
use crate::row::{RowWrite, Written};
use crate::statements::bookkeeping::save_state;
use crate::statements::{kept, padded};
use crate::write::batch::Batch;

/// An archived object, and the one that has its name now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) uid: Uid,
    pub(crate) by: Uid,
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
    pub(crate) async fn record_replaced(
        &mut self,
        replaced: &[Replaced],
        writes: &[RowWrite],
        written: &mut [Written],
    ) -> Result<(), sqlx::Error> {
        let restored_from = self.work.platform.restored_from;
        for replaced in replaced.iter().filter(|one| !one.came_back(restored_from, writes)) {
            let statement = save_state(self.work.sql.spelling());
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

/// Forgets what is recorded of rows that are removed.
pub(crate) async fn forget<D: Driver>(
    connection: &mut Raw<D>,
    kind: &Kind,
    spelling: &'static dyn Spelling,
    uids: &[&str],
) -> Result<(), sqlx::Error> {
    let names: Vec<String> = uids.iter().map(|uid| state_name(uid)).collect();
    let mut params = vec![Param::Text(kind.name)];
    params.extend(list(&names));
    D::execute(connection, forgetting(spelling, params.len() - 1), &params).await?;
    Ok(())
}

fn forgetting(spelling: &'static dyn Spelling, names: usize) -> Statement {
    kept(format!(
        "DELETE FROM [kindex_state] WHERE [kind] = ? AND {}",
        spelling.value_in("[name]", names),
    ))
}

/// In a size that is kept prepared.
pub(crate) fn list(names: &[String]) -> impl Iterator<Item = Param<'_>> {
    let last = names.last().map(String::as_str).unwrap_or_default();
    (0..padded(names.len())).map(move |index| Param::Text(names.get(index).map_or(last, String::as_str)))
}

pub(crate) fn state_name(uid: &str) -> String {
    format!("replaced/{uid}")
}
