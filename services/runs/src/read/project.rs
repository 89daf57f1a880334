//! `GetProjectStats`: what a project holds.

use std::collections::HashMap;

use sqlx::{Row as _, SqliteConnection};

use super::rows::{failed, fetch};
use super::select::{Statement, Value};
use crate::domain::{ProjectName, Status, to_wire};
use crate::refusal::Refusal;
use crate::wire::v1::GetProjectStatsResponse;

const RUNS: &str = "SELECT status, count(*), sum(points_accepted), sum(artifacts), min(created_at) FROM run \
                    WHERE project = ?1 AND created_at >= ?2 GROUP BY status";

const USERS: &str = "SELECT count(DISTINCT user) FROM run WHERE project = ?1 AND created_at >= ?2 AND user <> ''";

/// Chunks, batches that are not compacted, and artifacts. Of a blob only the length is read.
const BYTES: &str = "SELECT coalesce((SELECT sum(length(c.body)) FROM chunk c WHERE c.run_no = run.run_no), 0) \
                     + coalesce((SELECT sum(length(d.body)) FROM batch b JOIN batch_body d USING (arrival_no) \
                     WHERE b.run_no = run.run_no AND b.state IN (1, 2)), 0) \
                     + coalesce((SELECT sum(a.size_bytes) FROM upload a \
                     WHERE a.run_no = run.run_no AND a.state = 2), 0) FROM run \
                     WHERE project = ?1 AND created_at >= ?2";

/// Of the runs that were created since a time; of all without one.
pub(super) async fn stats(
    project: &ProjectName,
    since: Option<i64>,
    now: i64,
    on: &mut SqliteConnection,
) -> Result<GetProjectStatsResponse, Refusal> {
    let of = |text: &str| Statement {
        text: text.to_owned(),
        values: vec![
            Value::Text(project.as_str().to_owned()),
            Value::Number(since.unwrap_or(i64::MIN)),
        ],
    };
    let mut stats = GetProjectStatsResponse::default();
    let mut by_status: HashMap<String, i64> = HashMap::new();
    let mut first = None;
    for row in fetch(of(RUNS), on).await? {
        let numbers = || -> Result<[i64; 5], sqlx::Error> {
            Ok([
                row.try_get(0)?,
                row.try_get(1)?,
                row.try_get(2)?,
                row.try_get(3)?,
                row.try_get(4)?,
            ])
        };
        let [status, runs, points, artifacts, created_at] = numbers().map_err(failed)?;
        if let Some(status) = Status::of_number(status) {
            by_status.insert(status.word().to_owned(), runs);
        }
        stats.total_runs += runs;
        stats.total_metrics += points;
        stats.total_artifacts += artifacts;
        first = first.map_or(Some(created_at), |first: i64| Some(first.min(created_at)));
    }
    for row in fetch(of(BYTES), on).await? {
        let bytes: i64 = row.try_get(0).map_err(failed)?;
        stats.storage_bytes += bytes;
    }
    for row in fetch(of(USERS), on).await? {
        stats.active_users = row.try_get(0).map_err(failed)?;
    }
    stats.runs_by_status = by_status;
    stats.stats_since = since.or(first).map(to_wire);
    stats.stats_until = Some(to_wire(now));
    Ok(stats)
}
