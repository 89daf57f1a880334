//! Reads by connections that only read. Each read sees the file as of one commit, so that a point is never missing or
//! doubled while compaction moves it.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kindex_series::{DecodeError, Series, batch, chunk, in_step_order, merge_all};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};

use crate::domain::{MetricName, ProjectName, Run, RunId, Status};

use super::error::StoreError;
use super::row::row;
use super::statements::{chunks, names};
use super::tail::Tail;

/// No limit of rows.
const ALL: i64 = -1;

/// Which points of a run are read.
#[derive(Clone, Debug)]
pub struct SeriesRequest {
    /// The metrics; all of them if empty.
    pub names: Vec<MetricName>,
    /// The steps.
    pub steps: RangeInclusive<i64>,
    /// The times, in nanoseconds since the epoch.
    pub times: RangeInclusive<i64>,
}

impl Default for SeriesRequest {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            steps: i64::MIN..=i64::MAX,
            times: i64::MIN..=i64::MAX,
        }
    }
}

/// The points of a metric, in the order of their steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSeries {
    /// Its name.
    pub name: MetricName,
    /// Its points, one for each step.
    pub series: Series,
}

/// What was read of a metric and is to be decoded.
struct Parts {
    name: MetricName,
    number: u32,
    chunks: Vec<Vec<u8>>,
}

/// The points of a run; none if there is no such run. Names that the run does not have are left out.
pub(super) async fn series(
    readers: &SqlitePool,
    tail: &Tail,
    run: &RunId,
    request: SeriesRequest,
) -> Result<Option<Vec<NamedSeries>>, StoreError> {
    let mut snapshot = readers.begin().await?;
    let Some(number) = number(&mut snapshot, run).await? else {
        return Ok(None);
    };
    let known = names::all(&mut snapshot, number).await?;
    let mut parts = Vec::new();
    for (name, metric) in wanted(&known, &request.names) {
        parts.push(Parts {
            name,
            number: metric,
            chunks: chunks::bodies(&mut snapshot, number, metric, &request.steps, &request.times).await?,
        });
    }
    let bodies = bodies(&mut snapshot, tail, number).await?;
    snapshot.rollback().await?;
    let decoded = tokio::task::spawn_blocking(move || decode(parts, &bodies, &request));
    Ok(Some(decoded.await.map_err(|_| StoreError::Closed)??))
}

/// The number of a run.
async fn number(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar("SELECT run_no FROM run WHERE run_id = ?1")
        .bind(run.as_str())
        .fetch_optional(connection)
        .await
}

/// In the order of the request, or of the names.
fn wanted(known: &HashMap<String, u32>, names: &[MetricName]) -> Vec<(MetricName, u32)> {
    if names.is_empty() {
        let mut all: Vec<(MetricName, u32)> = known
            .iter()
            .map(|(name, number)| (MetricName::new(name.as_str()), *number))
            .collect();
        all.sort();
        return all;
    }
    let found = names
        .iter()
        .filter_map(|name| Some((name.clone(), *known.get(name.as_str())?)));
    found.collect()
}

/// The batches that are not in chunks, in the order in which they were applied.
async fn bodies(
    snapshot: &mut Transaction<'_, Sqlite>,
    tail: &Tail,
    run: i64,
) -> Result<Vec<(i64, Arc<[u8]>)>, StoreError> {
    let mut bodies = Vec::new();
    for (arrival, _, _) in chunks::backlog(snapshot, run, ALL).await? {
        let body = match tail.get(arrival) {
            Some(body) => body,
            None => chunks::body(snapshot, arrival).await?.unwrap_or_default().into(),
        };
        bodies.push((arrival, body));
    }
    Ok(bodies)
}

fn decode(
    parts: Vec<Parts>,
    bodies: &[(i64, Arc<[u8]>)],
    request: &SeriesRequest,
) -> Result<Vec<NamedSeries>, StoreError> {
    let mut arrived = arrived(&parts, bodies)?.into_iter();
    let mut decoder = chunk::Decoder::default();
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        let mut older = Series::default();
        for body in &part.chunks {
            let decoded = decoder
                .decode(body)
                .map_err(|source| damaged(format!("a chunk of {}", part.name), source))?;
            match older.is_empty() {
                true => older = decoded,
                false => older.extend(&decoded),
            }
        }
        let newer = in_step_order(arrived.next().unwrap_or_default());
        let merged = match newer.is_empty() {
            true => older,
            false => merge_all([&older, &newer]),
        };
        let range = merged.within_steps(Some(*request.steps.start()), Some(*request.steps.end()));
        let merged = if range.len() == merged.len() {
            merged
        } else {
            merged.slice(range)
        };
        all.push(NamedSeries {
            name: part.name,
            series: merged.within_times(Some(*request.times.start()), Some(*request.times.end())),
        });
    }
    Ok(all)
}

/// The points of each part in batches, in the order in which they were applied. Others are not copied.
fn arrived(parts: &[Parts], bodies: &[(i64, Arc<[u8]>)]) -> Result<Vec<Series>, StoreError> {
    let places: HashMap<u32, usize> = parts
        .iter()
        .zip(0..)
        .map(|(part, place)| (part.number, place))
        .collect();
    let mut arrived = vec![Series::default(); parts.len()];
    for (arrival, body) in bodies {
        let of_batch = |source| damaged(format!("the batch {arrival}"), source);
        let numbers = batch::decode_head(body).map_err(of_batch)?;
        let places: Vec<Option<usize>> = numbers.iter().map(|number| places.get(number).copied()).collect();
        if places.iter().all(Option::is_none) {
            continue;
        }
        let columns = batch::decode(body).map_err(of_batch)?.columns;
        for (index, &name) in columns.names.iter().enumerate() {
            if let Some(place) = places[name as usize] {
                arrived[place].push(columns.steps[index], columns.times[index], columns.bits[index]);
            }
        }
    }
    Ok(arrived)
}

fn damaged(what: String, source: DecodeError) -> StoreError {
    StoreError::Damaged { what, source }
}

row! {
    struct RunRow {
        run_no: i64,
        run_id: String,
        project: String,
        name: String,
        description: String,
        status: i64,
        user: String,
        parent_run_id: Option<String>,
        system_info: Option<Vec<u8>>,
        git_info: Option<Vec<u8>>,
        created_at: i64,
        last_seen_at: i64,
        finished_at: Option<i64>,
        exit_code: Option<i32>,
        error_message: Option<String>,
        points_accepted: i64,
        artifacts: i64,
    }
}

/// What is known of a run.
pub(super) async fn run(readers: &SqlitePool, run: &RunId) -> Result<Option<Run>, StoreError> {
    let mut snapshot = readers.begin().await?;
    let row: Option<RunRow> = sqlx::query_as("SELECT * FROM run WHERE run_id = ?1")
        .bind(run.as_str())
        .fetch_optional(&mut *snapshot)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    const TAGS: &str = "SELECT key, value FROM tag WHERE run_no = ?1 ORDER BY key";
    const PARAMS: &str = "SELECT name, value FROM param WHERE run_no = ?1 ORDER BY name";
    const SUMMARY: &str = "SELECT name, value FROM summary WHERE run_no = ?1 ORDER BY name";
    let tags = pairs(&mut snapshot, TAGS, row.run_no).await?;
    let params = pairs(&mut snapshot, PARAMS, row.run_no).await?;
    let summary = pairs(&mut snapshot, SUMMARY, row.run_no).await?;
    let message = |error: prost::DecodeError| StoreError::Database(sqlx::Error::Decode(error.into()));
    Ok(Some(Run {
        number: row.run_no,
        run: RunId::new(row.run_id),
        project: ProjectName::new(row.project),
        name: row.name,
        description: row.description,
        status: Status::of_number(row.status)
            .ok_or_else(|| sqlx::Error::Decode(format!("status {}", row.status).into()))?,
        tags,
        params,
        summary,
        system_info: row
            .system_info
            .map(|info| prost::Message::decode(&info[..]))
            .transpose()
            .map_err(message)?,
        git_info: row
            .git_info
            .map(|info| prost::Message::decode(&info[..]))
            .transpose()
            .map_err(message)?,
        parent: row.parent_run_id.map(RunId::new),
        user: row.user,
        created_at: row.created_at,
        last_seen_at: row.last_seen_at,
        finished_at: row.finished_at,
        exit_code: row.exit_code,
        error_message: row.error_message,
        points: row.points_accepted as u64,
        artifacts: row.artifacts as u64,
    }))
}

async fn pairs(
    connection: &mut SqliteConnection,
    statement: &'static str,
    run: i64,
) -> sqlx::Result<Vec<(String, String)>> {
    sqlx::query_as(statement).bind(run).fetch_all(connection).await
}

/// The project of a run.
pub(super) async fn project(readers: &SqlitePool, run: &RunId) -> Result<Option<ProjectName>, StoreError> {
    let project: Option<String> = sqlx::query_scalar("SELECT project FROM run WHERE run_id = ?1")
        .bind(run.as_str())
        .fetch_optional(readers)
        .await?;
    Ok(project.map(ProjectName::new))
}

/// The metrics of a run, in the order of their names; none if there is no such run.
pub(super) async fn metric_names(readers: &SqlitePool, run: &RunId) -> Result<Option<Vec<MetricName>>, StoreError> {
    let mut snapshot = readers.begin().await?;
    let Some(number) = number(&mut snapshot, run).await? else {
        return Ok(None);
    };
    let known = names::all(&mut snapshot, number).await?;
    Ok(Some(wanted(&known, &[]).into_iter().map(|(name, _)| name).collect()))
}
