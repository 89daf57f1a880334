//! Which archived objects were replaced, and by whom. Knows no engine.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Stored;

use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::{LIST_MAX, kept};
use crate::write::{list, state_name};

impl<D: Driver> SqlStore<D> {
    /// The same rows, saying of those that were replaced by which object.
    pub(crate) async fn with_replaced(&self, kind: &Kind, mut rows: Vec<Stored>) -> Result<Vec<Stored>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let may_be = |row: &Stored| row.delete_time.is_some() && row.evicted_time.is_some();
        let names: Vec<String> = rows.iter().filter(|row| may_be(row)).map(name_of).collect();
        for chunk in names.chunks(LIST_MAX) {
            let mut params = vec![Param::Text(kind.name)];
            params.extend(list(chunk));
            let spelling = self.connections.driver.spelling();
            let statement = kept(format!(
                "SELECT [name], [value], {} FROM [kindex_state] WHERE [kind] = ? AND {}",
                spelling.time_text("update_time"),
                spelling.value_in("[name]", params.len() - 1),
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

fn name_of(row: &Stored) -> String {
    state_name(&row.object.metadata.uid.0)
}
