//! Parameters, tags and summaries.

use std::collections::HashMap;

use sqlx::SqliteConnection;

/// All parameters of a run by name.
pub(in crate::store) async fn params(
    connection: &mut SqliteConnection,
    run: i64,
) -> sqlx::Result<HashMap<String, String>> {
    let rows: Vec<(String, String)> = sqlx::query_as("SELECT name, value FROM param WHERE run_no = ?1")
        .bind(run)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Adds a parameter.
pub(in crate::store) async fn insert_param(
    connection: &mut SqliteConnection,
    run: i64,
    name: &str,
    value: &str,
) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO param (run_no, name, value) VALUES (?1, ?2, ?3)")
        .bind(run)
        .bind(name)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}

/// All tags of a run by key.
pub(in crate::store) async fn tags(
    connection: &mut SqliteConnection,
    run: i64,
) -> sqlx::Result<HashMap<String, String>> {
    let rows: Vec<(String, String)> = sqlx::query_as("SELECT key, value FROM tag WHERE run_no = ?1")
        .bind(run)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Sets a tag.
pub(in crate::store) async fn set_tag(
    connection: &mut SqliteConnection,
    run: i64,
    key: &str,
    value: &str,
) -> sqlx::Result<()> {
    sqlx::query("INSERT OR REPLACE INTO tag (run_no, key, value) VALUES (?1, ?2, ?3)")
        .bind(run)
        .bind(key)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes a tag.
pub(in crate::store) async fn remove_tag(connection: &mut SqliteConnection, run: i64, key: &str) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM tag WHERE run_no = ?1 AND key = ?2")
        .bind(run)
        .bind(key)
        .execute(connection)
        .await?;
    Ok(())
}

/// Sets a value of the summary.
pub(in crate::store) async fn set_summary(
    connection: &mut SqliteConnection,
    run: i64,
    name: &str,
    value: &str,
) -> sqlx::Result<()> {
    sqlx::query("INSERT OR REPLACE INTO summary (run_no, name, value) VALUES (?1, ?2, ?3)")
        .bind(run)
        .bind(name)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}
