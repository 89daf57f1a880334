//! The store over any driver: connections, transactions, retries and errors around
//! the statements. Knows no dialect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kindex_model::kind::{Kind, Registry};

use crate::connections::{Connections, failure};
use crate::driver::{Driver, Fault, Param, Statement};
use crate::error::StoreError;
use crate::statements::history::HistorySql;
use crate::statements::{KindSql, bookkeeping, history as history_sql};
use crate::{schema, statements};

/// What errors of the bookkeeping tables name as their kind.
pub(super) const BOOKKEEPING: &str = "kindex";

pub(super) struct SqlStore<D> {
    pub(super) connections: Connections<D>,
    pub(super) registry: Registry,
    pub(super) schema: &'static str,
    /// Draws the stamps of the outbox.
    pub(super) draw: fn() -> u64,
    /// Texts by main table.
    texts: Mutex<HashMap<&'static str, Arc<KindSql>>>,
}

impl<D: Driver> SqlStore<D> {
    pub(super) fn new(driver: D, registry: Registry, draw: fn() -> u64) -> Self {
        Self {
            draw,
            // A registry without a text for this engine creates no tables, like one without kinds.
            schema: registry.schema(driver.spelling().word()).unwrap_or_default(),
            connections: Connections::new(driver),
            registry,
            texts: Mutex::default(),
        }
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(super) fn texts(&self, kind: &Kind) -> Arc<KindSql> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let found = texts
            .entry(kind.table)
            .or_insert_with(|| Arc::new(KindSql::new(self.connections.driver.spelling(), kind)));
        found.clone()
    }

    pub(super) async fn create_tables(&self) -> Result<(), StoreError> {
        let bookkeeping = |error| failure::<D>(BOOKKEEPING, error);
        for text in schema::statements(self.schema) {
            let done = self.connections.execute(bookkeeping::schema_statement(text), &[]).await;
            done.map_err(bookkeeping)?;
        }
        Ok(())
    }

    /// Whether all tables have the columns that this program writes.
    pub(super) async fn probe_tables(&self) -> Result<(), StoreError> {
        for kind in self.registry.kinds {
            let history = kind.history.then(|| history_sql::table_and_columns(kind));
            for (table, columns) in statements::tables(kind).into_iter().chain(history) {
                let probed = self.connections.query(bookkeeping::probe(&table, &columns), &[]).await;
                probed.map_err(|error| match D::classify(&error) {
                    Fault::Schema => StoreError::Schema(format!(
                        "table `{table}` is not the one that kind {} is written to ({error}): \
                         write a migration with `kindex plan`, build, and run `kindex migrate`; \
                         or use an empty database",
                        kind.name
                    )),
                    _ => failure::<D>(kind.name, error),
                })?;
            }
        }
        Ok(())
    }

    /// Remembers that the tables are those of this program.
    pub(super) async fn record_schema(&self) -> Result<(), StoreError> {
        let checksum = schema::checksum(self.schema);
        let params = [
            Param::Int(schema::VERSION),
            Param::Text(&checksum),
            Param::Time(Timestamp::now()),
        ];
        let statement = bookkeeping::record_schema(self.connections.driver.spelling());
        let recorded = self.connections.execute(statement, &params).await;
        recorded.map(drop).map_err(|error| failure::<D>(BOOKKEEPING, error))
    }
}

impl<D: Driver> SqlStore<D> {
    pub(super) fn history_sql(&self, kind: &Kind) -> HistorySql {
        HistorySql {
            spelling: self.connections.driver.spelling(),
            tables: kind.tables(),
        }
    }

    pub(super) async fn change(
        &self,
        kind: &Kind,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<(), StoreError> {
        self.count_changed(kind, statement, params).await.map(drop)
    }

    /// How many rows a statement found, whether it changed their values or not.
    pub(super) async fn count_changed(
        &self,
        kind: &Kind,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<u64, StoreError> {
        let changed = self.connections.execute(statement, params).await;
        changed.map_err(|error| failure::<D>(kind.name, error))
    }
}
