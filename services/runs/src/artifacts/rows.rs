//! Rows of uploads and artifacts.

use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _, SqliteConnection};

use super::upload::{Checksum, NewUpload, hex};
use super::verdict::{Content, State};
use crate::domain::{RunId, to_wire};
use crate::wire::v1::ArtifactMetadata;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) number: i64,
    pub(super) id: String,
    pub(super) run_number: i64,
    pub(super) name: String,
    pub(super) sort: i32,
    pub(super) mime_type: String,
    pub(super) step: Option<i64>,
    pub(super) state: State,
    pub(super) finalized_at: Option<i64>,
    pub(super) bytes: u64,
    pub(super) checksum: Option<Checksum>,
}

/// The columns of a row, for statements that go on.
pub(super) const COLUMNS: &str = "SELECT upload_no, upload_id, run_no, name, type, mime_type, step, state, \
                                  finalized_at, size_bytes, md5 FROM upload";

impl FromRow<'_, SqliteRow> for Upload {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        let state: i64 = row.try_get("state")?;
        let checksum: Option<Vec<u8>> = row.try_get("md5")?;
        let damaged = |what: String| sqlx::Error::Decode(what.into());
        Ok(Self {
            number: row.try_get("upload_no")?,
            id: row.try_get("upload_id")?,
            run_number: row.try_get("run_no")?,
            name: row.try_get("name")?,
            sort: row.try_get("type")?,
            mime_type: row.try_get("mime_type")?,
            step: row.try_get("step")?,
            state: State::of_number(state).ok_or_else(|| damaged(format!("state {state}")))?,
            finalized_at: row.try_get("finalized_at")?,
            bytes: row.try_get::<i64, _>("size_bytes")?.cast_unsigned(),
            checksum: checksum
                .map(|bytes| Checksum::try_from(bytes).map_err(|_| damaged("md5".to_owned())))
                .transpose()?,
        })
    }
}

impl Upload {
    /// As a message says it.
    pub(super) fn metadata(&self) -> ArtifactMetadata {
        ArtifactMetadata {
            name: self.name.clone(),
            r#type: self.sort,
            mime_type: self.mime_type.clone(),
            size_bytes: self.bytes.cast_signed(),
            md5_checksum: self.checksum.as_ref().map(hex).unwrap_or_default(),
            step: self.step,
            created_at: self.finalized_at.map(to_wire),
        }
    }
}

/// An upload by its id.
pub(super) async fn find(upload_id: &str, on: &mut SqliteConnection) -> sqlx::Result<Option<Upload>> {
    let statement = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE upload_id = ?1"));
    sqlx::query_as(statement).bind(upload_id).fetch_optional(on).await
}

/// The newest artifact of a name.
pub(super) async fn newest(run: &RunId, name: &str, on: &mut SqliteConnection) -> sqlx::Result<Option<Upload>> {
    let statement = sqlx::AssertSqlSafe(format!(
        "{COLUMNS} WHERE run_no = (SELECT run_no FROM run WHERE run_id = ?1) AND name = ?2 AND state = 2 \
         ORDER BY upload_no DESC LIMIT 1"
    ));
    sqlx::query_as(statement)
        .bind(run.as_str())
        .bind(name)
        .fetch_optional(on)
        .await
}

/// Uploads that were not finalized in time, those that were dropped, and what is left of runs that are gone.
pub(super) async fn to_sweep(before: i64, limit: i64, on: &mut SqliteConnection) -> sqlx::Result<Vec<Upload>> {
    let statement = sqlx::AssertSqlSafe(format!(
        "{COLUMNS} WHERE (state <> 2 AND (state = 3 OR created_at <= ?1)) OR run_no NOT IN (SELECT run_no FROM run) \
         LIMIT ?2"
    ));
    sqlx::query_as(statement).bind(before).bind(limit).fetch_all(on).await
}

/// Of the run of an upload its number, state and id.
pub(super) async fn run_of(upload_id: &str, on: &mut SqliteConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar(
        "SELECT run.run_id FROM upload JOIN run ON run.run_no = upload.run_no WHERE upload.upload_id = ?1",
    )
    .bind(upload_id)
    .fetch_optional(on)
    .await
}

/// How many uploads of a run are open, and how many are finalized.
pub(super) async fn counts(run_number: i64, on: &mut SqliteConnection) -> sqlx::Result<(i64, i64)> {
    sqlx::query_as(
        "SELECT (SELECT count(*) FROM upload WHERE run_no = ?1 AND state = 1), \
         (SELECT count(*) FROM upload WHERE run_no = ?1 AND state = 2)",
    )
    .bind(run_number)
    .fetch_one(on)
    .await
}

pub(super) async fn insert(
    id: &str,
    run_number: i64,
    new: &NewUpload,
    now: i64,
    on: &mut SqliteConnection,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO upload (upload_id, run_no, name, type, mime_type, step, state, created_at, size_bytes, md5) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9)",
    )
    .bind(id)
    .bind(run_number)
    .bind(&new.name)
    .bind(new.sort)
    .bind(&new.mime_type)
    .bind(new.step)
    .bind(now)
    .bind(new.bytes.cast_signed())
    .bind(new.checksum.map(|checksum| checksum.to_vec()))
    .execute(on)
    .await?;
    Ok(())
}

pub(super) async fn set_finalized(
    number: i64,
    content: Content,
    now: i64,
    on: &mut SqliteConnection,
) -> sqlx::Result<()> {
    sqlx::query("UPDATE upload SET state = 2, finalized_at = ?2, size_bytes = ?3, md5 = ?4 WHERE upload_no = ?1")
        .bind(number)
        .bind(now)
        .bind(content.bytes.cast_signed())
        .bind(content.checksum.to_vec())
        .execute(on)
        .await?;
    Ok(())
}

/// Counts an artifact of a run, which was heard of.
pub(super) async fn count_artifact(run_number: i64, now: i64, on: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE run SET artifacts = artifacts + 1, \
         last_seen_at = CASE status WHEN 1 THEN max(last_seen_at, ?2) ELSE last_seen_at END WHERE run_no = ?1",
    )
    .bind(run_number)
    .bind(now)
    .execute(on)
    .await?;
    Ok(())
}

pub(super) async fn set_dropped(number: i64, on: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("UPDATE upload SET state = 3 WHERE upload_no = ?1")
        .bind(number)
        .execute(on)
        .await?;
    Ok(())
}

pub(super) async fn delete(number: i64, on: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM upload WHERE upload_no = ?1")
        .bind(number)
        .execute(on)
        .await?;
    Ok(())
}
