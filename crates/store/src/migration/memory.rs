//! The migrations that a database has recorded.

use jiff::Timestamp;
use kindex_model::kind::Migration;

use crate::connections::failure;
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Fault, Param, Statement};
use crate::error::StoreError;
use crate::migration::script::{Step, parse};
use crate::migration::window::Applied;
use crate::migration::{MigrateError, sql};
use crate::sql_store::SqlStore;

/// What errors of the migrations' table name as their kind.
pub(super) const BOOKKEEPING: &str = "kindex_migrations";

impl<D: Driver> SqlStore<D> {
    /// What the database remembers, in order.
    pub(super) async fn applied(&self) -> Result<Vec<Applied>, StoreError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        let rows = match self.connections.query(sql::applied(), &[]).await {
            Ok(rows) => rows,
            Err(error) if D::classify(&error) == Fault::Schema => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        rows.iter().map(remembered).collect::<Result<_, _>>().map_err(failed)
    }

    /// Remembers all of the program's migrations as done: the tables are those that they lead to.
    pub(in super::super) async fn record_all_migrations(&self) -> Result<(), StoreError> {
        let now = Timestamp::now();
        for migration in self.registry.migrations {
            let steps = steps_if_any(migration, self.connections.driver.spelling());
            let steps = steps.map_err(|error| StoreError::Schema(error.to_string()))?;
            let count = steps.map_or(0, |steps| steps.len());
            self.begin(migration, count, Some(now)).await?;
        }
        Ok(())
    }

    /// Remembers that one has begun, and perhaps that it has ended; what is remembered stays.
    pub(super) async fn begin(
        &self,
        migration: &Migration,
        steps: usize,
        finish: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let statement = sql::begin(self.connections.driver.spelling());
        let params = [
            Param::Int(migration.number.into()),
            Param::Text(migration.name),
            Param::Text(migration.checksum),
            Param::Int(migration.compatible.into()),
            Param::Int(i64::try_from(steps).unwrap_or(i64::MAX)),
            Param::Time(Timestamp::now()),
            finish.map_or(Param::Null, Param::Time),
        ];
        let begun = self.connections.execute(statement, &params).await;
        begun.map(drop).map_err(|error| failure::<D>(BOOKKEEPING, error))
    }
}

fn remembered(row: &impl Cells) -> Result<Applied, sqlx::Error> {
    let number = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Applied {
        number: number(row.int(0)?),
        name: row.text(1)?,
        checksum: row.text(2)?,
        compatible: number(row.int(3)?),
        steps_done: usize::try_from(row.int(4)?).unwrap_or(0),
        fill_after: row.int_or_null(5)?,
        is_finished: row.int(6)? != 0,
    })
}

pub(super) fn title(migration: &Migration) -> String {
    format!("{:04}_{}", migration.number, migration.name)
}

pub(super) fn steps(
    migration: &Migration,
    spelling: &'static dyn Spelling,
) -> Result<Vec<Step<'static>>, MigrateError> {
    // A text that is missing must not pass for one without steps.
    steps_if_any(migration, spelling)?.ok_or_else(|| {
        let (migration, engine) = (title(migration), spelling.word());
        MigrateError::Refused(format!("migration {migration} has no text for {engine}"))
    })
}

/// As [`steps`]; `None` of a migration that was planned before there was a dialect for the engine. No database of the
/// engine ever had the tables before it.
pub(super) fn steps_if_any(
    migration: &Migration,
    spelling: &'static dyn Spelling,
) -> Result<Option<Vec<Step<'static>>>, MigrateError> {
    let parsed = migration.text(spelling.word()).map(parse).transpose();
    parsed.map_err(|source| MigrateError::Script {
        migration: title(migration),
        source,
    })
}

pub(super) async fn note<D: Driver>(
    store: &SqlStore<D>,
    statement: Statement,
    params: &[Param<'_>],
) -> Result<(), StoreError> {
    let noted = store.connections.execute(statement, params).await;
    noted.map(drop).map_err(|error| failure::<D>(BOOKKEEPING, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::engines;

    #[test]
    fn a_migration_without_a_text_for_the_engine_is_refused() {
        let migration = Migration {
            number: 2,
            name: "wider",
            compatible: 1,
            texts: &[("mysql", "-- 0002_wider\n")],
            checksum: "",
        };
        let read = |dialect| steps(&migration, engines::spelling(dialect));
        assert!(read(Dialect::MySql).expect("a text").is_empty());
        let refused = read(Dialect::Sqlite).expect_err("no text").to_string();
        assert_eq!(refused, "migration 0002_wider has no text for sqlite");
        let none = steps_if_any(&migration, engines::spelling(Dialect::Sqlite));
        assert!(none.expect("nothing to parse").is_none());
    }
}
