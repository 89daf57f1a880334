//! Rows of chunks, and of the batches that go into them.

use std::ops::RangeInclusive;

use kindex_series::Stats;
use sqlx::SqliteConnection;

use crate::store::row::row;

use super::batches;

/// A chunk to write.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) struct NewChunk {
    pub(in crate::store) metric: u32,
    pub(in crate::store) stats: Stats,
    pub(in crate::store) ordinal_max: i64,
    pub(in crate::store) body: Vec<u8>,
}

row! {
    /// A chunk without its points.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::store) struct Bounds {
        pub(in crate::store) chunk_no: i64,
        pub(in crate::store) step_min: i64,
        pub(in crate::store) step_max: i64,
        pub(in crate::store) n: i64,
    }
}

/// The numbers, places and points of the batches of a run that are not in chunks, in the order in which they were
/// applied, to a number; -1 is all of them.
pub(in crate::store) async fn backlog(
    connection: &mut SqliteConnection,
    run: i64,
    limit: i64,
) -> sqlx::Result<Vec<(i64, i64, i64)>> {
    sqlx::query_as(
        "SELECT arrival_no, apply_ordinal, accepted FROM batch WHERE run_no = ?1 AND state = 2 \
         ORDER BY apply_ordinal LIMIT ?2",
    )
    .bind(run)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// How many points of a run are not in chunks.
pub(in crate::store) async fn backlog_points(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT coalesce(sum(accepted), 0) FROM batch WHERE run_no = ?1 AND state = 2")
        .bind(run)
        .fetch_one(connection)
        .await
}

/// The body of a batch; none if it is in chunks by now.
pub(in crate::store) async fn body(connection: &mut SqliteConnection, arrival: i64) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar("SELECT body FROM batch_body WHERE arrival_no = ?1")
        .bind(arrival)
        .fetch_optional(connection)
        .await
}

/// The chunks of a metric that steps between two belong to: from the last one that begins at or before `min`.
pub(in crate::store) async fn owners(
    connection: &mut SqliteConnection,
    run: i64,
    metric: u32,
    (min, max): (i64, i64),
) -> sqlx::Result<Vec<Bounds>> {
    sqlx::query_as(
        "SELECT chunk_no, step_min, step_max, n FROM chunk WHERE run_no = ?1 AND metric_no = ?2 AND step_min <= ?4 \
         AND step_min >= coalesce((SELECT max(step_min) FROM chunk WHERE run_no = ?1 AND metric_no = ?2 \
         AND step_min <= ?3), ?3) ORDER BY step_min",
    )
    .bind(run)
    .bind(metric)
    .bind(min)
    .bind(max)
    .fetch_all(connection)
    .await
}

row! {
    /// A chunk with its points.
    #[derive(Debug)]
    pub(in crate::store) struct Stored {
        pub(in crate::store) chunk_no: i64,
        pub(in crate::store) metric_no: u32,
        pub(in crate::store) step_min: i64,
        pub(in crate::store) n: i64,
        pub(in crate::store) apply_ordinal_max: i64,
        pub(in crate::store) body: Vec<u8>,
    }
}

/// The chunks of a run behind a metric and a first step, in the order of both, some at a time.
pub(in crate::store) async fn after(
    connection: &mut SqliteConnection,
    run: i64,
    (metric, step): (u32, i64),
    limit: i64,
) -> sqlx::Result<Vec<Stored>> {
    sqlx::query_as(
        "SELECT chunk_no, metric_no, step_min, n, apply_ordinal_max, body FROM chunk \
         WHERE run_no = ?1 AND (metric_no, step_min) > (?2, ?3) ORDER BY metric_no, step_min LIMIT ?4",
    )
    .bind(run)
    .bind(metric)
    .bind(step)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// The points of a chunk.
pub(in crate::store) async fn chunk(connection: &mut SqliteConnection, chunk: i64) -> sqlx::Result<Vec<u8>> {
    sqlx::query_scalar("SELECT body FROM chunk WHERE chunk_no = ?1")
        .bind(chunk)
        .fetch_one(connection)
        .await
}

/// The points of a metric in chunks that can have some of these steps and times, in the order of their steps. The rest
/// need not be read, let alone decoded.
pub(in crate::store) async fn bodies(
    connection: &mut SqliteConnection,
    run: i64,
    metric: u32,
    steps: &RangeInclusive<i64>,
    times: &RangeInclusive<i64>,
) -> sqlx::Result<Vec<Vec<u8>>> {
    sqlx::query_scalar(
        "SELECT body FROM chunk WHERE run_no = ?1 AND metric_no = ?2 AND step_min <= ?4 AND step_max >= ?3 \
         AND time_min <= ?6 AND time_max >= ?5 ORDER BY step_min",
    )
    .bind(run)
    .bind(metric)
    .bind(steps.start())
    .bind(steps.end())
    .bind(times.start())
    .bind(times.end())
    .fetch_all(connection)
    .await
}

/// Writes a chunk.
pub(in crate::store) async fn insert(connection: &mut SqliteConnection, run: i64, new: &NewChunk) -> sqlx::Result<()> {
    let bits = |value: f64| value.to_bits() as i64;
    let stats = &new.stats;
    sqlx::query(
        "INSERT INTO chunk (run_no, metric_no, step_min, step_max, time_min, time_max, n, n_finite, min_bits, \
         max_bits, sum_bits, first_bits, last_bits, apply_ordinal_max, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )
    .bind(run)
    .bind(new.metric)
    .bind(stats.step_min)
    .bind(stats.step_max)
    .bind(stats.time_min)
    .bind(stats.time_max)
    .bind(stats.count as i64)
    .bind(stats.finite as i64)
    .bind(bits(stats.min))
    .bind(bits(stats.max))
    .bind(bits(stats.sum))
    .bind(stats.first_bits as i64)
    .bind(stats.last_bits as i64)
    .bind(new.ordinal_max)
    .bind(&new.body[..])
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes chunks by number.
pub(in crate::store) async fn delete(connection: &mut SqliteConnection, chunks: &[i64]) -> sqlx::Result<()> {
    let list = serde_json::to_string(chunks).expect("numbers are JSON");
    sqlx::query("DELETE FROM chunk WHERE chunk_no IN (SELECT value FROM json_each(?1))")
        .bind(list)
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes note that batches are in chunks; how many were not before.
pub(in crate::store) async fn set_compacted(connection: &mut SqliteConnection, arrivals: &[i64]) -> sqlx::Result<u64> {
    let list = serde_json::to_string(arrivals).expect("numbers are JSON");
    let done =
        sqlx::query("UPDATE batch SET state = 3 WHERE arrival_no IN (SELECT value FROM json_each(?1)) AND state = 2")
            .bind(&list)
            .execute(&mut *connection)
            .await?;
    batches::delete_bodies(connection, &list).await?;
    Ok(done.rows_affected())
}

/// Counts points that went into chunks, and those of them that were written over.
pub(in crate::store) async fn count(
    connection: &mut SqliteConnection,
    run: i64,
    compacted: i64,
    replaced: i64,
) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "UPDATE run SET points_compacted = points_compacted + ?2, points_replaced = points_replaced + ?3 \
         WHERE run_no = ?1",
    )
    .bind(run)
    .bind(compacted)
    .bind(replaced)
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// Takes note that the chunks of a run have their last encoding, unless it goes on by now.
pub(in crate::store) async fn set_sealed(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<()> {
    sqlx::query("UPDATE run SET is_sealed = 1 WHERE run_no = ?1 AND status <> 1")
        .bind(run)
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes note that a run may get chunks of another encoding.
pub(in crate::store) async fn set_unsealed(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<()> {
    sqlx::query("UPDATE run SET is_sealed = 0 WHERE run_no = ?1 AND is_sealed = 1")
        .bind(run)
        .execute(connection)
        .await?;
    Ok(())
}

/// Crashed runs that were last heard of before a time and whose chunks do not have their last encoding.
pub(in crate::store) async fn unsealed_crashed(
    connection: &mut SqliteConnection,
    seen_before: i64,
    limit: i64,
) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar("SELECT run_no FROM run WHERE is_sealed = 0 AND status = 4 AND last_seen_at < ?1 LIMIT ?2")
        .bind(seen_before)
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// How many points of each run are not in chunks.
pub(in crate::store) async fn backlogs(connection: &mut SqliteConnection) -> sqlx::Result<Vec<(i64, i64)>> {
    sqlx::query_as("SELECT run_no, sum(accepted) FROM batch WHERE state = 2 GROUP BY run_no")
        .fetch_all(connection)
        .await
}

/// Runs that have ended and whose chunks do not have their last encoding.
pub(in crate::store) async fn unsealed(connection: &mut SqliteConnection) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar("SELECT run_no FROM run WHERE is_sealed = 0 AND status IN (2, 3, 5)")
        .fetch_all(connection)
        .await
}

/// The newest batches that are not in chunks, to a number.
pub(in crate::store) async fn newest(connection: &mut SqliteConnection, limit: i64) -> sqlx::Result<Vec<i64>> {
    // The ledger is much longer than what is not in chunks.
    sqlx::query_scalar(
        "SELECT arrival_no FROM batch INDEXED BY batch_applied WHERE state = 2 ORDER BY arrival_no DESC LIMIT ?1",
    )
    .bind(limit)
    .fetch_all(connection)
    .await
}
