//! Stored objects, by name and uid, in lists and counted.

use std::collections::HashMap;

use async_trait::async_trait;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Stored;

use crate::cells::stored;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param, Statement};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::{LIST_MAX, ListFilter, exact, padded_pairs};

/// Rows a page of a list where the caller does not say.
const PAGE_ROWS: u32 = 500;

/// Which stored objects a list returns.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// Labels that an object must carry, with equal values.
    pub labels: Vec<(String, String)>,
    /// Deleted rows too.
    pub include_deleted: bool,
    /// Most rows a page; 0 means 500.
    pub limit: u32,
    /// The last row of the page before: rows come in order of uid.
    pub after: Option<Uid>,
}

/// Rows of a kind by life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the cluster and in SQL.
    pub live: u64,
    /// In SQL only.
    pub archived: u64,
    /// Soft-deleted.
    pub deleted: u64,
}

/// All that was ever stored under a name.
#[async_trait]
pub trait RowsOfName: Send + Sync {
    /// All rows of a name, deleted ones too: one that is not deleted first, then the newest.
    async fn rows_of_name(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Vec<Stored>, StoreError>;
}

/// Reading objects without a query.
#[async_trait]
pub trait Objects: Send + Sync {
    /// The newest stored object of this name that is not deleted.
    async fn get_by_name(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Stored>, StoreError>;

    /// The same of several pairs of namespace and name. Names without any are left out.
    async fn get_by_names(
        &self,
        kind: &Kind,
        names: &[(String, String)],
    ) -> Result<HashMap<(String, String), Stored>, StoreError>;

    /// The stored object of this uid, deleted or not.
    async fn get_by_id(&self, kind: &Kind, uid: &Uid) -> Result<Option<Stored>, StoreError>;

    /// A page of stored objects.
    async fn list(&self, kind: &Kind, query: &ListQuery) -> Result<Vec<Stored>, StoreError>;

    /// How many rows are live, archived and deleted.
    async fn count(&self, kind: &Kind) -> Result<Counts, StoreError>;
}

#[async_trait]
impl<D: Driver> RowsOfName for SqlStore<D> {
    async fn rows_of_name(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Vec<Stored>, StoreError> {
        let params = [namespace, name].map(exact).concat();
        let rows = self.connections.query(self.texts(kind).rows_of_name(), &params).await;
        let rows = rows.map_err(|error| failure::<D>(kind.name, error))?;
        let rows: Vec<Stored> = rows.iter().map(|row| stored(kind, row)).collect::<Result<_, _>>()?;
        self.with_replaced(kind, rows).await
    }
}

#[async_trait]
impl<D: Driver> Objects for SqlStore<D> {
    async fn get_by_name(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Stored>, StoreError> {
        let params = [namespace, name].map(exact).concat();
        self.get(kind, self.texts(kind).by_name(), &params).await
    }

    async fn get_by_names(
        &self,
        kind: &Kind,
        names: &[(String, String)],
    ) -> Result<HashMap<(String, String), Stored>, StoreError> {
        let pairs: Vec<(&str, &str)> = names.iter().map(|(namespace, name)| (&**namespace, &**name)).collect();
        let mut found = HashMap::with_capacity(names.len());
        for chunk in pairs.chunks(LIST_MAX) {
            let params = padded_pairs(chunk);
            let statement = self.texts(kind).by_names(params.len() / 2);
            let rows = self.connections.query(statement, &params).await;
            for row in rows.map_err(|error| failure::<D>(kind.name, error))? {
                let row = stored(kind, &row)?;
                let metadata = &row.object.metadata;
                found.insert((metadata.namespace.clone(), metadata.name.clone()), row);
            }
        }
        Ok(found)
    }

    async fn get_by_id(&self, kind: &Kind, uid: &Uid) -> Result<Option<Stored>, StoreError> {
        let params = [Param::Text(&uid.0)];
        let found = self.get(kind, self.texts(kind).by_id(), &params).await?;
        let found = self.with_replaced(kind, found.into_iter().collect()).await?;
        Ok(found.into_iter().next())
    }

    async fn list(&self, kind: &Kind, query: &ListQuery) -> Result<Vec<Stored>, StoreError> {
        let limit = if query.limit == 0 { PAGE_ROWS } else { query.limit };
        let namespace = query.namespace.iter().flat_map(|text| exact(text));
        let after = query.after.iter().map(|uid| Param::Text(&uid.0));
        let labels = query.labels.iter().flat_map(|(key, value)| [key, value]);
        let params: Vec<Param<'_>> = namespace
            .chain(after)
            .chain(labels.flat_map(|text| exact(text)))
            .chain([Param::Int(limit.into())])
            .collect();
        let statement = self.texts(kind).list(ListFilter {
            namespace: query.namespace.is_some(),
            after: query.after.is_some(),
            include_deleted: query.include_deleted,
            labels: query.labels.len(),
        });
        let rows = self.connections.query(statement, &params).await;
        let rows = rows.map_err(|error| failure::<D>(kind.name, error))?;
        rows.iter().map(|row| stored(kind, row)).collect()
    }

    async fn count(&self, kind: &Kind) -> Result<Counts, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let rows = self
            .connections
            .query(self.texts(kind).count(), &[])
            .await
            .map_err(failed)?;
        let row = rows.first().expect("an aggregate without groups has one row");
        let number = |index| row.int(index).map(i64::unsigned_abs).map_err(failed);
        Ok(Counts {
            live: number(0)?,
            archived: number(1)?,
            deleted: number(2)?,
        })
    }
}

impl<D: Driver> SqlStore<D> {
    async fn get(&self, kind: &Kind, statement: Statement, params: &[Param<'_>]) -> Result<Option<Stored>, StoreError> {
        let rows = self.connections.query(statement, params).await;
        let rows = rows.map_err(|error| failure::<D>(kind.name, error))?;
        rows.first().map(|row| stored(kind, row)).transpose()
    }
}
