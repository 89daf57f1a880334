//! Pages of the file.

use sqlx::{AssertSqlSafe, SqliteConnection};

/// Pages that are free, and all.
pub(in crate::store) async fn count(connection: &mut SqliteConnection) -> sqlx::Result<(i64, i64)> {
    let free = sqlx::query_scalar("PRAGMA freelist_count")
        .fetch_one(&mut *connection)
        .await?;
    let all = sqlx::query_scalar("PRAGMA page_count").fetch_one(connection).await?;
    Ok((free, all))
}

/// Moves pages from the end of the file to where some are free, and makes the file shorter.
pub(in crate::store) async fn release(connection: &mut SqliteConnection, pages: u32) -> sqlx::Result<()> {
    // A pragma takes no parameters, and a number says nothing else.
    let statement = AssertSqlSafe(format!("PRAGMA incremental_vacuum({pages})"));
    sqlx::query(statement).fetch_all(connection).await?;
    Ok(())
}
