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

/// Takes up some pages and gives them back.
pub(in crate::store) async fn probe(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    /// Of no run.
    const ROW: &str = "INSERT INTO summary (run_no, name, value) VALUES (-1, 'probe', hex(zeroblob(65536)))";
    sqlx::query(ROW).execute(&mut *connection).await?;
    sqlx::query("DELETE FROM summary WHERE run_no = -1")
        .execute(connection)
        .await?;
    Ok(())
}
