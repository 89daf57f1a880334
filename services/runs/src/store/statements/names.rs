//! The numbers of metrics.

use std::collections::HashMap;

use sqlx::SqliteConnection;

/// All metrics of a run.
pub(in crate::store) async fn all(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<HashMap<String, u32>> {
    let rows: Vec<(String, u32)> = sqlx::query_as("SELECT name, metric_no FROM metric_name WHERE run_no = ?1")
        .bind(run)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Adds metrics with numbers from `first` on.
pub(in crate::store) async fn insert(
    connection: &mut SqliteConnection,
    run: i64,
    first: u32,
    names: &[&str],
) -> sqlx::Result<()> {
    let list = serde_json::to_string(names).expect("texts are JSON");
    sqlx::query("INSERT INTO metric_name (run_no, metric_no, name) SELECT ?1, ?2 + key, value FROM json_each(?3)")
        .bind(run)
        .bind(first)
        .bind(list)
        .execute(connection)
        .await?;
    Ok(())
}
