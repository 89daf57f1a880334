//! Numbers that are given once.

use sqlx::SqliteConnection;

/// The highest ordinal that was given.
pub(in crate::store) async fn ordinal(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    let stored = sqlx::query_scalar("SELECT value FROM counter WHERE name = 'apply_ordinal'");
    Ok(stored.fetch_optional(connection).await?.unwrap_or(0))
}

/// Stores it.
pub(in crate::store) async fn set_ordinal(connection: &mut SqliteConnection, ordinal: i64) -> sqlx::Result<()> {
    sqlx::query("INSERT OR REPLACE INTO counter (name, value) VALUES ('apply_ordinal', ?1)")
        .bind(ordinal)
        .execute(connection)
        .await?;
    Ok(())
}
