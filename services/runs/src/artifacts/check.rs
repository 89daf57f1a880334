//! Whether rows of artifacts, counters and files agree.

use futures::TryStreamExt as _;
use sqlx::SqlitePool;

use super::files::Files;
use super::rows::{COLUMNS, Upload};

/// What does not agree, one sentence each.
///
/// # Errors
/// A file of the store that cannot be read.
pub async fn check(readers: &SqlitePool, files: &Files) -> sqlx::Result<Vec<String>> {
    let mut findings = Vec::new();
    let counted: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT run_id, artifacts, (SELECT count(*) FROM upload WHERE upload.run_no = run.run_no AND state = 2) \
         AS finalized FROM run WHERE artifacts <> finalized",
    )
    .fetch_all(readers)
    .await?;
    for (run, counter, finalized) in counted {
        findings.push(format!(
            "run {run} counts {counter} artifacts, and {finalized} are finalized"
        ));
    }
    let statement = sqlx::AssertSqlSafe(format!(
        "{COLUMNS} WHERE state = 2 AND run_no IN (SELECT run_no FROM run)"
    ));
    let mut artifacts = sqlx::query_as::<_, Upload>(statement).fetch(readers);
    while let Some(artifact) = artifacts.try_next().await? {
        let Some(checksum) = artifact.checksum else {
            findings.push(format!("artifact {} has no MD5", artifact.id));
            continue;
        };
        let file = files.read(&artifact.id, &checksum).await;
        let length = match file {
            Ok(file) => file.metadata().await.map(|file| file.len()),
            Err(error) => Err(error),
        };
        match length {
            Ok(bytes) if bytes == artifact.bytes => {}
            Ok(bytes) => findings.push(format!(
                "the file of artifact {} has {bytes} bytes and should have {}",
                artifact.id, artifact.bytes
            )),
            Err(error) => findings.push(format!("the file of artifact {} cannot be read: {error}", artifact.id)),
        }
    }
    Ok(findings)
}
