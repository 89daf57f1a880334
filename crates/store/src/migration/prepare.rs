//! Prepares a database for this program, or reports why it cannot be used.

use async_trait::async_trait;

use crate::connections::failure;
use crate::driver::{Cells, Driver, Fault};
use crate::error::StoreError;
use crate::migration::window::{MigrationState, judge};
use crate::schema;
use crate::sql_store::{BOOKKEEPING, SqlStore};
use crate::statements::bookkeeping;

/// The tables that all other roles need.
#[async_trait]
pub trait Prepare: Send + Sync {
    /// Creates the database and the tables where they are missing, and checks that all columns that
    /// this program writes are there. Idempotent; nothing else creates anything.
    async fn prepare(&self) -> Result<(), StoreError>;
}

#[async_trait]
impl<D: Driver> Prepare for SqlStore<D> {
    async fn prepare(&self) -> Result<(), StoreError> {
        let bookkeeping = |error| failure::<D>(BOOKKEEPING, error);
        let created = self.connections.driver.create_database().await;
        created
            .inspect_err(|error| self.connections.note(error))
            .map_err(bookkeeping)?;
        let recorded = self.recorded_schema().await?;
        let state = judge(&self.applied().await?, self.registry.migrations);
        let refusal = recorded.as_ref().and_then(|(version, _)| schema::refusal(*version));
        let refusal = refusal.or_else(|| state.refusal(self.registry.migrations));
        if let Some(refusal) = refusal {
            return Err(StoreError::Schema(refusal));
        }
        let checksum = schema::checksum(self.schema);
        let notice = recorded.as_ref().map(|(_, known)| schema::notice(known, &checksum));
        let known = notice == Some(None);
        // An account that may only read and write is enough for a database that is ready, or that a newer program
        // has migrated, which allows this one to write.
        let is_ready = known && state == MigrationState::Current || matches!(state, MigrationState::Ahead { .. });
        if is_ready && self.probe_tables().await.is_ok() {
            return self.fill_outbox().await;
        }
        if state == MigrationState::Untracked {
            self.refuse_foreign().await?;
        }
        if let Some(notice) = notice.flatten() {
            tracing::warn!("{notice}");
        }
        self.create_tables().await?;
        self.probe_tables().await?;
        if state == MigrationState::Untracked {
            self.record_all_migrations().await?;
        }
        self.record_schema().await?;
        self.fill_outbox().await
    }
}

impl<D: Driver> SqlStore<D> {
    async fn recorded_schema(&self) -> Result<Option<(i64, String)>, StoreError> {
        match self.connections.query(bookkeeping::schema_version(), &[]).await {
            Ok(rows) => rows
                .first()
                .map(|row| Ok((row.int(0)?, row.text(1)?)))
                .transpose()
                .map_err(|error| failure::<D>(BOOKKEEPING, error)),
            Err(error) if D::classify(&error) == Fault::Schema => Ok(None),
            Err(error) => Err(failure::<D>(BOOKKEEPING, error)),
        }
    }
}
