//! Whether an object owns others by what SQL holds of these: by the columns of declared references, whether the
//! references are placed or not.

use async_trait::async_trait;
use kindex_model::kind::{ColumnType, Kind};
use kindex_model::object::Uid;
use kindex_model::reference::Reference;
use kindex_model::value::Value;
use kindex_query::Reader as _;
use kindex_query::select::{Condition, Select};

use crate::driver::Driver;
use crate::error::StoreError;
use crate::read::naming::select_naming;
use crate::sql_store::SqlStore;

const UID: &[(&str, ColumnType)] = &[("uid", ColumnType::Text { chars: 64 })];

/// What objects own.
#[async_trait]
pub trait Owners: Send + Sync {
    /// Whether a live row of another object names this one as its owner, in a field that is declared with `owned`. An
    /// object of the whole cluster has an empty namespace.
    ///
    /// # Guarantees
    /// One page of a query for each such field that has columns, up to the first that finds a row, and none for a kind
    /// that no such field may name. Fields without columns are not read: each question would read all objects of the
    /// kind.
    async fn owns_live_rows(&self, kind: &Kind, namespace: &str, name: &str, uid: &Uid) -> Result<bool, StoreError>;
}

#[async_trait]
impl<D: Driver> Owners for SqlStore<D> {
    async fn owns_live_rows(&self, kind: &Kind, namespace: &str, name: &str, uid: &Uid) -> Result<bool, StoreError> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let mut selects = Vec::new();
        for (holder, reference, _) in self.registry().referrers(kind) {
            if reference.owned && holder.cluster && !reference.columns.is_empty() {
                selects.push(select_owned(holder, reference, kind.name, namespace, name));
            }
        }
        for select in &selects {
            let page = self.project(select, UID, None).await?;
            let is_other = |row: &Vec<Value>| !matches!(&row[..], [Value::Text(found)] if **found == *uid.0);
            if page.items.iter().any(is_other) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The live rows of a kind that name an object as their owner by a reference: as many as tell whether another one does.
fn select_owned(
    holder: &'static Kind,
    reference: &Reference,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Select {
    let mut select = select_naming(holder, reference, kind, namespace, name);
    select.conditions.push(Condition::Null { column: "evicted_time" });
    // The object may name itself.
    select.limit = Some(2);
    // Mostly no row names the object, and a walk in the order of uid would read the whole table to find none.
    select.scan = false;
    select
}

#[cfg(test)]
mod tests {
    use kindex_model::reference::{Named, OnDelete};

    use super::*;
    use crate::dialect::Dialect;
    use crate::statements::select::ToSql as _;
    use crate::statements::typed_queries::KIND;

    const PIPELINE: Reference = Reference {
        name: "pipeline",
        targets: &[],
        kind_column: None,
        path: &["spec", "pipeline"],
        named: Named::Identifier,
        columns: &["pipeline_namespace", "pipeline_name"],
        owned: true,
        on_delete: OnDelete::Cascade,
    };

    /// As if SQLite could take the order of uid, or a key on the times, for a way to what an object owns.
    #[test]
    fn what_an_object_owns_is_found_by_the_columns_that_name_it() {
        let select = select_owned(&KIND, &PIPELINE, "Pipeline", Some("ns"), "train");
        let sql = select.to_sql(Dialect::Sqlite).sql;
        let condition = " WHERE +t.`delete_time` IS NULL AND t.`pipeline_namespace` = ? AND t.`pipeline_name` = ? \
                         AND +t.`evicted_time` IS NULL ORDER BY +t.`uid` ASC LIMIT ?";
        assert!(sql.ends_with(condition), "{sql}");
    }
}
