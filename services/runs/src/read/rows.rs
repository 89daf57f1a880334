//! Runs as rows, and as messages.

use std::collections::HashMap;

use prost::Message;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::include::Include;
use super::pages::SortKey;
use super::select::{Statement, Value};
use crate::domain::{Status, to_wire};
use crate::refusal::{Code, Refusal};
use crate::wire::v1;

/// Duration is in seconds.
const SECOND_NS: f64 = 1e9;

/// Statements that concern these runs get their numbers as one JSON text.
const COLUMNS: &str = "SELECT run_no, run_id, project, name, description, status, user, parent_run_id, system_info, \
                       git_info, created_at, last_seen_at, finished_at, points_accepted, artifacts FROM run";

/// What the client is told where the file does not answer.
pub(crate) fn failed(error: sqlx::Error) -> Refusal {
    tracing::warn!(%error, "The store of runs was not read");
    let message = "The store does not answer. Send this again.";
    let wait = std::time::Duration::from_secs(1);
    Refusal::new(Code::Unavailable, "STORE_UNAVAILABLE", message).again_after(wait)
}

/// Rows of a statement.
pub(crate) async fn fetch(statement: Statement, on: &mut SqliteConnection) -> Result<Vec<SqliteRow>, Refusal> {
    let mut query = sqlx::query::<_>(AssertSqlSafe(statement.text));
    for value in statement.values {
        query = bind(query, value);
    }
    query.fetch_all(on).await.map_err(failed)
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, SqliteArguments>;

fn bind(query: Query<'_>, value: Value) -> Query<'_> {
    match value {
        Value::Number(number) => query.bind(number),
        Value::Real(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
    }
}

/// What a list is sorted by, of a row.
pub(super) fn sort_key(row: &SqliteRow) -> Result<SortKey, Refusal> {
    match row.try_get::<i64, _>("sort_key") {
        Ok(number) => Ok(SortKey::Number(number)),
        Err(_) => row.try_get("sort_key").map(SortKey::Text).map_err(failed),
    }
}

/// The number of a run; none if there is no such run.
pub(crate) async fn number_of(run: &str, on: &mut SqliteConnection) -> Result<Option<i64>, Refusal> {
    let query = sqlx::query_scalar("SELECT run_no FROM run WHERE run_id = ?").bind(run);
    query.fetch_optional(on).await.map_err(failed)
}

/// Where the chunks of each metric of a run end. A later chunk has later steps.
pub(super) async fn last_steps(run_number: i64, on: &mut SqliteConnection) -> Result<HashMap<String, i64>, Refusal> {
    let query = sqlx::query_as(
        "SELECT metric_name.name, max(chunk.step_min) FROM chunk JOIN metric_name USING (run_no, metric_no) \
         WHERE chunk.run_no = ?1 GROUP BY metric_no",
    );
    let rows: Vec<(String, i64)> = query.bind(run_number).fetch_all(on).await.map_err(failed)?;
    Ok(rows.into_iter().collect())
}

/// When each of these runs ended, or else was heard of last.
pub(super) async fn changed_at(runs: &[&str], on: &mut SqliteConnection) -> Result<HashMap<String, i64>, Refusal> {
    let list = serde_json::to_string(runs).expect("texts are JSON");
    let query = sqlx::query_as(
        "SELECT run_id, coalesce(finished_at, last_seen_at) FROM run WHERE run_id IN (SELECT value FROM json_each(?))",
    );
    let rows: Vec<(String, i64)> = query.bind(list).fetch_all(on).await.map_err(failed)?;
    Ok(rows.into_iter().collect())
}

/// Runs in the order of their numbers in the list. One that is gone meanwhile is left out.
pub(super) async fn runs(
    numbers: &[i64],
    include: Include,
    on: &mut SqliteConnection,
) -> Result<Vec<v1::Run>, Refusal> {
    let list = serde_json::to_string(numbers).expect("numbers are JSON");
    let text = format!("{COLUMNS} WHERE run_no IN (SELECT value FROM json_each(?))");
    let rows = fetch(listed(text, &list), on).await?;
    let mut runs = HashMap::with_capacity(rows.len());
    for row in &rows {
        let (number, run) = run(row, include).map_err(failed)?;
        runs.insert(number, run);
    }
    if include.tags {
        for (number, key, value) in pairs("tag", "key", &list, on).await? {
            if let Some(run) = runs.get_mut(&number) {
                run.tags.push(v1::Tag { key, value });
            }
        }
    }
    if include.params {
        for (number, name, value) in pairs("param", "name", &list, on).await? {
            if let Some(run) = runs.get_mut(&number) {
                run.params.push(v1::Parameter { name, value });
            }
        }
    }
    if include.summary {
        for (number, name, value) in pairs("summary", "name", &list, on).await? {
            if let Some(run) = runs.get_mut(&number) {
                run.summary.push(v1::Parameter { name, value });
            }
        }
    }
    Ok(numbers.iter().filter_map(|number| runs.remove(number)).collect())
}

/// Keys and values of one of the tables that have them, of each of the runs.
pub(super) async fn pairs(
    table: &'static str,
    key: &'static str,
    list: &str,
    on: &mut SqliteConnection,
) -> Result<Vec<(i64, String, String)>, Refusal> {
    let text = format!(
        "SELECT run_no, {key}, value FROM {table} WHERE run_no IN (SELECT value FROM json_each(?)) \
         ORDER BY run_no, {key}"
    );
    let rows = fetch(listed(text, list), on).await?;
    let pair = |row: &SqliteRow| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
    rows.iter().map(pair).collect::<Result<_, _>>().map_err(failed)
}

fn listed(text: String, list: &str) -> Statement {
    Statement {
        text,
        values: vec![Value::Text(list.to_owned())],
    }
}

fn run(row: &SqliteRow, include: Include) -> Result<(i64, v1::Run), sqlx::Error> {
    let created_at: i64 = row.try_get("created_at")?;
    let finished_at: Option<i64> = row.try_get("finished_at")?;
    let status = Status::of_number(row.try_get("status")?);
    // A crashed run lasted until it was heard of last; nobody knows how long a running one will last.
    let last_seen_at = match status {
        Some(Status::Crashed) => Some(row.try_get("last_seen_at")?),
        _ => None,
    };
    let duration = finished_at
        .or(last_seen_at)
        .map(|end| end.saturating_sub(created_at).max(0));
    let run = v1::Run {
        run_id: Some(v1::RunId {
            value: row.try_get("run_id")?,
        }),
        project_id: Some(v1::ProjectId {
            value: row.try_get("project")?,
        }),
        name: row.try_get("name")?,
        description: row.try_get("description")?,
        status: status.map_or(0, |status| status.to_wire().into()),
        tags: Vec::new(),
        params: Vec::new(),
        summary: Vec::new(),
        system_info: match include.system_info {
            true => message(row.try_get("system_info")?),
            false => None,
        },
        git_info: message(row.try_get("git_info")?),
        parent_run_id: row.try_get("parent_run_id")?,
        user_id: row.try_get("user")?,
        created_at: Some(to_wire(created_at)),
        started_at: Some(to_wire(created_at)),
        finished_at: finished_at.map(to_wire),
        duration_seconds: duration.map(|nanos| nanos as f64 / SECOND_NS),
        metric_count: row.try_get("points_accepted")?,
        artifact_count: row.try_get("artifacts")?,
    };
    Ok((row.try_get("run_no")?, run))
}

/// A message of a column; none if it was not sent.
fn message<M: Message + Default>(bytes: Option<Vec<u8>>) -> Option<M> {
    bytes.and_then(|bytes| M::decode(bytes.as_slice()).ok())
}
