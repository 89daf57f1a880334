//! Rows of runs.

use prost::Message as _;
use sqlx::SqliteConnection;

use crate::domain::{NewRun, ProjectName, RunId, Status};
use crate::ledger::Queue;
use crate::lifecycle::Tokens;
use crate::store::cache::RunState;
use crate::store::row::row;

use super::{batches, names};

row! {
    struct Row {
        run_no: i64,
        project: String,
        status: i64,
        created_at: i64,
        last_seen_at: i64,
        finished_at: Option<i64>,
        token_generation: i64,
        token_shown: i64,
        sequence_next: i64,
        points_accepted: i64,
    }
}

/// What decisions on a run depend on, with its held batches and its metrics.
pub(in crate::store) async fn state(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Option<RunState>> {
    let row: Option<Row> = sqlx::query_as(
        "SELECT run_no, project, status, created_at, last_seen_at, finished_at, token_generation, token_shown, \
         sequence_next, points_accepted FROM run WHERE run_id = ?1",
    )
    .bind(run.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let mut queue = Queue::new(row.sequence_next);
    for held in batches::held(connection, row.run_no).await? {
        queue.restore(held.sequence, held.arrival_no, held.received_at);
    }
    let status = Status::of_number(row.status);
    Ok(Some(RunState {
        number: row.run_no,
        run: run.clone(),
        project: ProjectName::new(row.project),
        status: status.ok_or_else(|| sqlx::Error::Decode(format!("status {}", row.status).into()))?,
        created_at: row.created_at,
        last_seen_at: row.last_seen_at,
        finished_at: row.finished_at,
        tokens: Tokens {
            shown: row.token_shown,
            newest: row.token_generation,
        },
        points: row.points_accepted as u64,
        queue,
        names: names::all(connection, row.run_no).await?,
    }))
}

/// Makes a run, which is running; its number.
pub(in crate::store) async fn insert(
    connection: &mut SqliteConnection,
    run: &RunId,
    new: &NewRun,
    now: i64,
) -> sqlx::Result<i64> {
    let system_info = new.system_info.as_ref().map(|info| info.encode_to_vec());
    let git_info = new.git_info.as_ref().map(|info| info.encode_to_vec());
    sqlx::query_scalar(
        "INSERT INTO run (run_id, project, name, description, status, user, parent_run_id, system_info, git_info, \
         created_at, last_seen_at, sequence_next, token_generation) \
         VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9, ?9, 1, 1) RETURNING run_no",
    )
    .bind(run.as_str())
    .bind(new.project.as_str())
    .bind(&new.name)
    .bind(&new.description)
    .bind(&new.user)
    .bind(new.parent.as_ref().map(RunId::as_str))
    .bind(system_info)
    .bind(git_info)
    .bind(now)
    .fetch_one(connection)
    .await
}

/// Name, description and parent of a run, as it was made.
pub(in crate::store) async fn description(
    connection: &mut SqliteConnection,
    run: i64,
) -> sqlx::Result<(String, String, Option<String>)> {
    sqlx::query_as("SELECT name, description, parent_run_id FROM run WHERE run_no = ?1")
        .bind(run)
        .fetch_one(connection)
        .await
}

/// Writes what changes often.
pub(in crate::store) async fn update(connection: &mut SqliteConnection, run: &RunState) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE run SET status = ?2, last_seen_at = max(last_seen_at, ?3), finished_at = ?4, token_generation = ?5, \
         token_shown = ?6, sequence_next = ?7, points_accepted = ?8 WHERE run_no = ?1",
    )
    .bind(run.number)
    .bind(run.status.number())
    .bind(run.last_seen_at)
    .bind(run.finished_at)
    .bind(run.tokens.newest)
    .bind(run.tokens.shown)
    .bind(run.queue.expected())
    .bind(run.points as i64)
    .execute(connection)
    .await?;
    Ok(())
}

/// How a run ended.
pub(in crate::store) async fn set_end(
    connection: &mut SqliteConnection,
    run: i64,
    exit_code: Option<i32>,
    error_message: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query("UPDATE run SET exit_code = ?2, error_message = ?3 WHERE run_no = ?1")
        .bind(run)
        .bind(exit_code)
        .bind(error_message)
        .execute(connection)
        .await?;
    Ok(())
}

/// How many artifacts of a run were finalized.
pub(in crate::store) async fn artifacts(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<u64> {
    let count: i64 = sqlx::query_scalar("SELECT artifacts FROM run WHERE run_no = ?1")
        .bind(run)
        .fetch_one(connection)
        .await?;
    Ok(count as u64)
}

/// How many runs of a project are running, counted to a bound.
pub(in crate::store) async fn running(
    connection: &mut SqliteConnection,
    project: &ProjectName,
    bound: u64,
) -> sqlx::Result<u64> {
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM (SELECT 1 FROM run WHERE project = ?1 AND status = 1 LIMIT ?2)")
            .bind(project.as_str())
            .bind(bound as i64)
            .fetch_one(connection)
            .await?;
    Ok(count as u64)
}

/// Running runs that were last heard of at a time or before.
pub(in crate::store) async fn silent(
    connection: &mut SqliteConnection,
    since: i64,
    limit: i64,
) -> sqlx::Result<Vec<RunId>> {
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT run_id FROM run WHERE status = 1 AND last_seen_at <= ?1 LIMIT ?2")
            .bind(since)
            .bind(limit)
            .fetch_all(connection)
            .await?;
    Ok(ids.into_iter().map(RunId::new).collect())
}

/// The id of a run.
pub(in crate::store) async fn id(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<Option<RunId>> {
    let id: Option<String> = sqlx::query_scalar("SELECT run_id FROM run WHERE run_no = ?1")
        .bind(run)
        .fetch_optional(connection)
        .await?;
    Ok(id.map(RunId::new))
}

/// Deletes the row of a run; rows of other tables go later.
pub(in crate::store) async fn delete(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM run WHERE run_no = ?1")
        .bind(run)
        .execute(&mut *connection)
        .await?;
    sqlx::query("INSERT INTO deleted_run (run_no) VALUES (?1)")
        .bind(run)
        .execute(connection)
        .await?;
    Ok(())
}

/// A deleted run that has rows in other tables.
pub(in crate::store) async fn deleted(connection: &mut SqliteConnection) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar("SELECT run_no FROM deleted_run LIMIT 1")
        .fetch_optional(connection)
        .await
}

/// Deletes rows of a run, at most so many of each large table; how many.
pub(in crate::store) async fn purge(connection: &mut SqliteConnection, run: i64, limit: i64) -> sqlx::Result<u64> {
    let batches: Vec<i64> = sqlx::query_scalar(
        "DELETE FROM batch WHERE arrival_no IN (SELECT arrival_no FROM batch WHERE run_no = ?1 LIMIT ?2) \
         RETURNING arrival_no",
    )
    .bind(run)
    .bind(limit)
    .fetch_all(&mut *connection)
    .await?;
    let list = serde_json::to_string(&batches).expect("numbers are JSON");
    batches::delete_bodies(connection, &list).await?;
    let chunks =
        sqlx::query("DELETE FROM chunk WHERE chunk_no IN (SELECT chunk_no FROM chunk WHERE run_no = ?1 LIMIT ?2)")
            .bind(run)
            .bind(limit)
            .execute(connection)
            .await?;
    Ok(batches.len() as u64 + chunks.rows_affected())
}

/// Deletes the last rows of a run.
pub(in crate::store) async fn purged(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<()> {
    const SMALL: [&str; 5] = [
        "DELETE FROM metric_name WHERE run_no = ?1",
        "DELETE FROM param WHERE run_no = ?1",
        "DELETE FROM tag WHERE run_no = ?1",
        "DELETE FROM summary WHERE run_no = ?1",
        "DELETE FROM deleted_run WHERE run_no = ?1",
    ];
    for statement in SMALL {
        sqlx::query(statement).bind(run).execute(&mut *connection).await?;
    }
    Ok(())
}
