//! The store as a reader of typed queries.

use async_trait::async_trait;
use kindex_model::kind::{ColumnType, Kind};
use kindex_model::value::Value;
use kindex_query::{Page, Reader, Select, Stored};

use crate::cells::{param, stored};
use crate::connections::failure;
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::read::page;
use crate::sql_store::SqlStore;
use crate::statements::{LIST_MAX, kept, padded_pairs, select};

#[async_trait]
impl<D: Driver> Reader for SqlStore<D> {
    type Error = StoreError;

    async fn select(&self, select: &Select, continue_token: Option<&str>) -> Result<Page, StoreError> {
        let after = continue_token.map(|token| page::read(token, select)).transpose()?;
        let rows = i64::from(select.page_rows()) + 1;
        let lead = self.lead(select).await?;
        let query = select::page(select, self.connections.driver.spelling(), lead, after.as_deref(), rows);
        let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
        let rows = self
            .connections
            .query_page(kept(query.sql), &params, page::OBJECT_TEXT)
            .await;
        let rows = rows.map_err(|error| failure::<D>(select.kind().name, error))?;
        page::page(select, &rows)
    }

    async fn project(
        &self,
        select: &Select,
        columns: &[(&'static str, ColumnType)],
        continue_token: Option<&str>,
    ) -> Result<Page<Vec<Value>>, StoreError> {
        let after = continue_token.map(|token| page::read(token, select)).transpose()?;
        let rows = i64::from(select.page_rows()) + 1;
        let lead = self.lead(select).await?;
        let query = select::page_of(
            select,
            columns,
            self.connections.driver.spelling(),
            lead,
            after.as_deref(),
            rows,
        );
        let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
        let texts: Vec<usize> = (0..)
            .zip(columns)
            .filter(|(_, (_, ty))| ty.is_text())
            .map(|(index, _)| index)
            .collect();
        let rows = self.connections.query_page(kept(query.sql), &params, &texts).await;
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
}
