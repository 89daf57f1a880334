//! Other results of a query than objects: columns, references, counts, plans, and the named queries of crds.toml.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kindex_query::select::Select;
use kindex_query::{Page, Reader as _, named_query};

use crate::cells::param;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::explained::Plan;
use crate::read::page;
use crate::sql_store::SqlStore;
use crate::statements::{once, select};

/// Queries for people.
#[async_trait]
pub trait Queries: Send + Sync {
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
    async fn count_selected(&self, select: &Select) -> Result<u64, StoreError> {
        let failed = |error| failure::<D>(select.kind().name, error);
        let query = select::counting(select, self.connections.driver.spelling());
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
        let statement = select::page(
            select,
            self.connections.driver.spelling(),
            lead,
            after.as_deref(),
            select.page_rows().into(),
        );
        let params: Vec<Param<'_>> = statement.values.iter().map(param).collect();
        let spelling = self.connections.driver.spelling();
        let explaining = once(format!("{} {}", spelling.explain(), statement.sql));
        let rows = self.connections.query(explaining, &params).await.map_err(failed)?;
        let steps = rows
            .iter()
            .map(D::plan_step)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        Ok(Plan {
            statement: select::spelled(statement, spelling),
            steps,
        })
    }

    async fn query_by_template_id(
        &self,
        id: &str,
        parameters: &BTreeMap<String, String>,
        limit: Option<u32>,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError> {
        let mut select = Select::named(named_query(self.registry(), id)?, parameters)?;
        select.limit = limit.or(select.limit);
        self.select(&select, continue_token).await
    }
}
