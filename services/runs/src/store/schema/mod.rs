//! The tables, as versions that are applied one after the other. A version that was released never changes.

use sqlx::{Connection as _, SqliteConnection};

use super::error::StoreError;

/// Every version, from 1.
const VERSIONS: &[&str] = &[
    include_str!("0001_runs.sql"),
    include_str!("0002_artifacts.sql"),
    include_str!("0003_tokens.sql"),
    include_str!("0004_crashed.sql"),
    include_str!("0005_by_time.sql"),
    include_str!("0006_bodies.sql"),
];

/// Brings a file to the newest version, each in a transaction of its own.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let version: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut *connection)
        .await?;
    let newest = VERSIONS.len() as i64;
    if version > newest {
        return Err(StoreError::Newer { version, newest });
    }
    for (place, statements) in VERSIONS.iter().enumerate().skip(version as usize) {
        let mut transaction = connection.begin().await?;
        sqlx::raw_sql(*statements).execute(&mut *transaction).await?;
        let number = format!("PRAGMA user_version = {}", place + 1);
        // The text is made of a number.
        sqlx::raw_sql(sqlx::AssertSqlSafe(number))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
    Ok(())
}
