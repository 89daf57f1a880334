//! What is asked of a query besides its objects: some columns of them, what they refer to, how many
//! there are, how the engine finds them, and the queries that crds.toml names.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::connections::failure;
use super::driver::{Cells, Driver, Param};
use super::explained::Plan;
use super::rows::{param, stored};
use super::select::Select;
use super::sql::{LIST_MAX, kept, once};
use super::sql_store::SqlStore;
use super::write::padded_pairs;
use super::{MetadataStorage, Page, StoreError, Stored, page};
use crate::kind::{ColumnType, Kind};
use crate::value::Value;

/// The SQL store as something that is asked by people.
#[async_trait]
pub trait Queries: Send + Sync {
    /// A page of these columns of the rows that the query has; the page after the one that
    /// `continue_token` came with. A flag comes as a number.
    ///
    /// # Errors
    /// [`StoreError::Continue`] for a token of another query.
    async fn project(
        &self,
        select: &Select,
        columns: &[(&'static str, ColumnType)],
        continue_token: Option<&str>,
    ) -> Result<Page<Vec<Value>>, StoreError>;

    /// For each pair of namespace and name one object, in any order: the one that is not deleted, else
    /// the one that was deleted last. Names without any are left out.
    async fn newest_by_names(&self, kind: &Kind, names: &[(String, String)]) -> Result<Vec<Stored>, StoreError>;

    /// How many rows the query has on all its pages.
    async fn count_selected(&self, select: &Select) -> Result<u64, StoreError>;

    /// How the engine reads a page of the query; no row is read.
    ///
    /// # Errors
    /// [`StoreError::Continue`] for a token of another query.
    async fn explain(&self, select: &Select, continue_token: Option<&str>) -> Result<Plan, StoreError>;

    /// A page of a query that crds.toml names. A `limit` wins over that of the query.
    ///
    /// # Errors
    /// [`StoreError::Template`] for an unknown query, or parameters that are not those that it has.
    async fn query_by_template_id(
        &self,
        id: &str,
        parameters: &BTreeMap<String, String>,
        limit: Option<u32>,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError>;
}

#[async_trait]
impl<D: Driver> Queries for SqlStore<D> {
    async fn project(
        &self,
        select: &Select,
        columns: &[(&'static str, ColumnType)],
        continue_token: Option<&str>,
    ) -> Result<Page<Vec<Value>>, StoreError> {
        let after = continue_token.map(|token| page::read(token, select)).transpose()?;
        let rows = i64::from(select.page_rows()) + 1;
        let lead = self.lead(select).await?;
        let query = select.page_of(columns, self.dialect(), lead, after.as_deref(), rows);
        let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
        let rows = self.connections.query(kept(query.sql), &params).await;
        let rows = rows.map_err(|error| failure::<D>(select.kind().name, error))?;
        page::cells_page(select, &rows, columns)
    }

    async fn newest_by_names(&self, kind: &Kind, names: &[(String, String)]) -> Result<Vec<Stored>, StoreError> {
        let texts = self.texts(kind);
        let names: Vec<(&str, &str)> = names.iter().map(|(namespace, name)| (&**namespace, &**name)).collect();
        let mut newest = Vec::with_capacity(names.len());
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_pairs(chunk);
            let statement = texts.newest(params.len() / 2);
            let rows = self.connections.query(statement, &params).await;
            for row in rows.map_err(|error| failure::<D>(kind.name, error))? {
                newest.push(stored(kind, &row)?);
            }
        }
        Ok(newest)
    }

    async fn count_selected(&self, select: &Select) -> Result<u64, StoreError> {
        let failed = |error| failure::<D>(select.kind().name, error);
        let query = select.counting(self.dialect());
        let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
        let rows = self.connections.query(once(query.sql), &params).await;
        let rows = rows.map_err(failed)?;
        let row = rows.first().expect("an aggregate without groups has one row");
        row.int(0).map(i64::unsigned_abs).map_err(failed)
    }

    async fn explain(&self, select: &Select, continue_token: Option<&str>) -> Result<Plan, StoreError> {
        let failed = |error| failure::<D>(select.kind().name, error);
        let after = continue_token.map(|token| page::read(token, select)).transpose()?;
        let lead = self.lead(select).await?;
        let statement = select.page(self.dialect(), lead, after.as_deref(), select.page_rows().into());
        let params: Vec<Param<'_>> = statement.values.iter().map(param).collect();
        let explaining = once(format!("{} {}", self.dialect().explain(), statement.sql));
        let rows = self.connections.query(explaining, &params).await.map_err(failed)?;
        let steps = rows
            .iter()
            .map(D::plan_step)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        Ok(Plan { statement, steps })
    }

    async fn query_by_template_id(
        &self,
        id: &str,
        parameters: &BTreeMap<String, String>,
        limit: Option<u32>,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError> {
        let mut select = Select::named(self.registry().query(id)?, parameters)?;
        select.limit = limit.or(select.limit);
        self.select(&select, continue_token).await
    }
}
