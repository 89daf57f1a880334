//! The checks of tables that an older program made: each is compared with the one that this program gives to new
//! tables, and replaced where it differs. No migration names them, since they belong to the program's own form of a
//! table.
//!
//! A server checks every row when it takes a check, and says of the first that breaks it only that there is one. So the
//! rows are looked at before, and a table in which some break the check keeps its old one, with their names in the
//! report.

use crate::adoption::{AdoptionSql, BrokenRows, BrokenTable, Renewal};
use crate::catalog;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Statement};
use crate::error::StoreError;
use crate::migration::adopt::check::without_time_limit;
use crate::migration::run::Lock;
use crate::migration::{MigrateError, PendingStep, run};
use crate::progress::Progress;
use crate::sql_store::SqlStore;

/// What a dry run calls the migration.
const NAME: &str = "checks";
/// What errors name as their kind.
const SUBJECT: &str = "the checks of the tables";
/// Rows of a table that are named one by one.
const NAMED_MAX: usize = 10;

impl<D: Driver> SqlStore<D> {
    /// What [`renew_checks`](Self::renew_checks) would do.
    pub(in super::super) async fn pending_checks(&self) -> Result<Vec<PendingStep>, MigrateError> {
        // SQLite's tables have had one check all along.
        let Some(sql) = self.connections.driver.spelling().adoption() else {
            return Ok(Vec::new());
        };
        let renewals = self.renewals(sql).await?.into_iter();
        Ok(renewals
            .map(|renewal| PendingStep {
                migration: NAME.to_owned(),
                step: renewal.title(),
                sql: Some(renewal.sql),
            })
            .collect())
    }

    /// Replaces the checks that differ; a table whose rows break its new one keeps the old one.
    pub(in super::super) async fn renew_checks(
        &self,
        lock: &mut Lock<D>,
        progress: &dyn Progress,
    ) -> Result<(), MigrateError> {
        let Some(sql) = self.connections.driver.spelling().adoption() else {
            return Ok(());
        };
        let mut broken = Vec::new();
        for renewal in self.renewals(sql).await? {
            lock.check(self).await?;
            let title = renewal.title();
            progress.begin(&title, None);
            if let Some(table) = self.broken(sql, &renewal).await? {
                broken.push(table);
            } else if let Err(source) = run::change(self, None, &renewal.sql, progress).await {
                // Somebody may have written such a row meanwhile, and the server does not say which.
                match self.broken(sql, &renewal).await? {
                    Some(table) => broken.push(table),
                    None => {
                        return Err(MigrateError::Step {
                            migration: NAME.to_owned(),
                            step: title,
                            source: Box::new(source),
                        });
                    }
                }
            }
            progress.end();
        }
        match broken.is_empty() {
            true => Ok(()),
            false => Err(MigrateError::Broken(BrokenRows(broken))),
        }
    }

    async fn renewals(&self, sql: &dyn AdoptionSql) -> Result<Vec<Renewal>, MigrateError> {
        let wanted = sql.definitions(self.schema).map_err(|line| {
            MigrateError::Refused(format!(
                "the schema of this program has a line that it cannot read: {line}"
            ))
        })?;
        let live = catalog::tables(&self.connections).await?;
        let mut renewals = Vec::new();
        for kind in self.registry.kinds {
            let wanted = wanted.iter().find(|it| it.table == kind.table);
            let is_there = live.iter().any(|table| table.name == kind.table);
            if let Some(wanted) = wanted.filter(|_| is_there) {
                renewals.extend(sql.renewal(&self.definition_of(sql, kind.table).await?, wanted));
            }
        }
        Ok(renewals)
    }

    /// The statement by which the server would create a table.
    async fn definition_of(&self, sql: &dyn AdoptionSql, table: &str) -> Result<String, StoreError> {
        let failed = |error| failure::<D>(SUBJECT, error);
        let show = Statement::once(sql.show(table));
        let asked = self.connections.query(show, &[]).await.map_err(failed)?;
        asked
            .first()
            .map_or(Ok(String::new()), |row| row.text(1))
            .map_err(failed)
    }

    async fn broken(&self, sql: &dyn AdoptionSql, renewal: &Renewal) -> Result<Option<BrokenTable>, StoreError> {
        let failed = |error| failure::<D>(SUBJECT, error);
        let breaking = Statement::once(sql.breaking(renewal));
        let rows = without_time_limit(&self.connections, breaking, &[])
            .await
            .map_err(failed)?;
        let named = |row: &D::Row| Ok((row.text(0)?, format!("{}/{}", row.text(1)?, row.text(2)?)));
        let first: Result<_, sqlx::Error> = rows.iter().take(NAMED_MAX).map(named).collect();
        Ok((!rows.is_empty()).then_some(BrokenTable {
            table: renewal.table.clone(),
            rows: rows.len(),
            first: first.map_err(failed)?,
            look_up: sql.look_up(&renewal.table),
        }))
    }
}
