//! Rows of the ledger.

use sqlx::SqliteConnection;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};
use uuid::Uuid;

use crate::domain::BatchId;
use crate::store::row::row;

/// Where a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum State {
    Held = 1,
    Applied = 2,
    Compacted = 3,
}

/// A batch to write.
#[derive(Debug)]
pub(in crate::store) struct NewBatch<'b> {
    pub(in crate::store) arrival: i64,
    pub(in crate::store) ordinal: Option<i64>,
    pub(in crate::store) run: i64,
    pub(in crate::store) batch_id: &'b BatchId,
    pub(in crate::store) payload_hash: &'b [u8; 32],
    pub(in crate::store) sequence: Option<i64>,
    pub(in crate::store) state: State,
    pub(in crate::store) received_at: i64,
    pub(in crate::store) accepted: u64,
    pub(in crate::store) dropped: u64,
    pub(in crate::store) body: Option<&'b [u8]>,
}

row! {
    /// A held batch.
    #[derive(Debug)]
    pub(in crate::store) struct HeldBatch {
        pub(in crate::store) sequence: i64,
        pub(in crate::store) arrival_no: i64,
        pub(in crate::store) received_at: i64,
    }
}

/// A UUID as it is mostly written takes 16 bytes; any other id is text, which no bytes equal.
fn bind_id<'q>(query: Query<'q, Sqlite, SqliteArguments>, id: &'q BatchId) -> Query<'q, Sqlite, SqliteArguments> {
    let uuid = Uuid::try_parse(id.as_str()).ok();
    match uuid.filter(|uuid| uuid.hyphenated().to_string() == id.as_str()) {
        Some(uuid) => query.bind(uuid.as_bytes().to_vec()),
        None => query.bind(id.as_str()),
    }
}

/// The hash that is stored under an id.
pub(in crate::store) async fn hash(
    connection: &mut SqliteConnection,
    run: i64,
    id: &BatchId,
) -> sqlx::Result<Option<Vec<u8>>> {
    let query = sqlx::query("SELECT payload_hash FROM batch WHERE run_no = ?1 AND batch_id = ?2").bind(run);
    let row = bind_id(query, id).fetch_optional(connection).await?;
    row.map(|row| sqlx::Row::try_get(&row, 0)).transpose()
}

/// Writes a batch.
pub(in crate::store) async fn insert(connection: &mut SqliteConnection, new: &NewBatch<'_>) -> sqlx::Result<()> {
    let query = sqlx::query(
        "INSERT INTO batch (arrival_no, apply_ordinal, run_no, batch_id, payload_hash, sequence, state, received_at, \
         accepted, dropped) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    );
    bind_id(query.bind(new.arrival).bind(new.ordinal).bind(new.run), new.batch_id)
        .bind(&new.payload_hash[..])
        .bind(new.sequence)
        .bind(new.state as i64)
        .bind(new.received_at)
        .bind(new.accepted as i64)
        .bind(new.dropped as i64)
        .execute(&mut *connection)
        .await?;
    if let Some(body) = new.body {
        sqlx::query("INSERT INTO batch_body (arrival_no, body) VALUES (?1, ?2)")
            .bind(new.arrival)
            .bind(body)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// Deletes the bodies of batches, whose numbers are a list in JSON.
pub(super) async fn delete_bodies(connection: &mut SqliteConnection, arrivals: &str) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM batch_body WHERE arrival_no IN (SELECT value FROM json_each(?1))")
        .bind(arrivals)
        .execute(connection)
        .await?;
    Ok(())
}

/// The highest number that was given, also to rows that are gone.
pub(in crate::store) async fn last_arrival(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    let last = sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'batch'");
    Ok(last.fetch_optional(connection).await?.unwrap_or(0))
}

/// How many bytes are held.
pub(in crate::store) async fn held_bytes(connection: &mut SqliteConnection) -> sqlx::Result<u64> {
    let bytes: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(length(body)), 0) FROM batch JOIN batch_body USING (arrival_no) JOIN run USING (run_no) \
         WHERE state = 1",
    )
    .fetch_one(connection)
    .await?;
    Ok(bytes as u64)
}

/// The held batches of a run.
pub(in crate::store) async fn held(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<Vec<HeldBatch>> {
    sqlx::query_as("SELECT sequence, arrival_no, received_at FROM batch WHERE run_no = ?1 AND state = 1")
        .bind(run)
        .fetch_all(connection)
        .await
}

/// When the oldest held batch of each run arrived.
pub(in crate::store) async fn oldest_held(connection: &mut SqliteConnection) -> sqlx::Result<Vec<(i64, i64)>> {
    sqlx::query_as("SELECT run_no, min(received_at) FROM batch JOIN run USING (run_no) WHERE state = 1 GROUP BY run_no")
        .fetch_all(connection)
        .await
}

/// Applies a held batch; how many points it has, and how many bytes.
pub(in crate::store) async fn release(
    connection: &mut SqliteConnection,
    arrival: i64,
    ordinal: i64,
) -> sqlx::Result<(u64, u64)> {
    // A batch whose points were all dropped has nothing to compact.
    let accepted: i64 = sqlx::query_scalar(
        "UPDATE batch SET apply_ordinal = ?2, state = CASE accepted WHEN 0 THEN 3 ELSE 2 END WHERE arrival_no = ?1 \
         RETURNING accepted",
    )
    .bind(arrival)
    .bind(ordinal)
    .fetch_one(&mut *connection)
    .await?;
    let bytes: i64 = sqlx::query_scalar("SELECT length(body) FROM batch_body WHERE arrival_no = ?1")
        .bind(arrival)
        .fetch_one(&mut *connection)
        .await?;
    if accepted == 0 {
        sqlx::query("DELETE FROM batch_body WHERE arrival_no = ?1")
            .bind(arrival)
            .execute(connection)
            .await?;
    }
    Ok((accepted as u64, bytes as u64))
}

/// How many bytes of a run are held.
pub(in crate::store) async fn held_bytes_of(connection: &mut SqliteConnection, run: i64) -> sqlx::Result<u64> {
    let bytes: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(length(body)), 0) FROM batch JOIN batch_body USING (arrival_no) \
         WHERE run_no = ?1 AND state = 1",
    )
    .bind(run)
    .fetch_one(connection)
    .await?;
    Ok(bytes as u64)
}

row! {
    /// A batch whose id may be forgotten.
    #[derive(Debug)]
    pub(in crate::store) struct Old {
        arrival_no: i64,
        run_no: i64,
        accepted: i64,
    }
}

/// Compacted batches that were received before a time, of runs that have ended or were last heard of before another.
pub(in crate::store) async fn old(
    connection: &mut SqliteConnection,
    received: i64,
    seen: i64,
    limit: i64,
) -> sqlx::Result<Vec<Old>> {
    sqlx::query_as(
        "SELECT arrival_no, run_no, accepted FROM batch JOIN run USING (run_no) \
         WHERE batch.state = 3 AND received_at < ?1 AND (status IN (2, 3, 5) OR last_seen_at < ?2) LIMIT ?3",
    )
    .bind(received)
    .bind(seen)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Forgets a batch; its points stay.
pub(in crate::store) async fn forget(connection: &mut SqliteConnection, old: &Old) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM batch WHERE arrival_no = ?1")
        .bind(old.arrival_no)
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE run SET points_forgotten = points_forgotten + ?2 WHERE run_no = ?1")
        .bind(old.run_no)
        .bind(old.accepted)
        .execute(connection)
        .await?;
    Ok(())
}
