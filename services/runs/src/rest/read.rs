//! The routes that read runs and their series.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exchange::{Answered, Refused, body, query};
use super::runs;
use super::values::{Double, rfc3339};
use crate::domain::Status;
use crate::keys::Caller;
use crate::operations::Operations;
use crate::read::{Chart, ChartRequest, Range};
use crate::refusal::{Code, Refusal};
use crate::wire::v1::{
    CompareRunsRequest, GetRunRequest, ListRunsRequest, MetricSeries, ProjectId, RunFilters, RunId, Tag,
};

/// Runs that are passed over to reach an offset.
const OFFSET_MAX: usize = 10_000;
/// Of the pages in which they are.
const PAGE: usize = 1000;

type OperationsState = State<Arc<Operations>>;

/// `GET /api/v1/runs`.
#[derive(Debug, Deserialize)]
struct List {
    #[serde(default)]
    project: String,
    status: Option<String>,
    /// A part of the name.
    q: Option<String>,
    /// `key:value`, with commas between them.
    tags: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    page_token: String,
}

impl List {
    fn filters(&self) -> Result<RunFilters, Refusal> {
        let words = self
            .status
            .iter()
            .flat_map(|words| words.split(','))
            .filter(|word| !word.is_empty());
        let statuses = words.map(|word| {
            let status = Status::of_word(word).map(|status| i32::from(status.to_wire()));
            status.ok_or_else(|| {
                let message =
                    format!("{word:?} is not a status; a run is running, finished, failed, crashed or killed");
                Refusal::new(Code::InvalidArgument, "INVALID_STATUS", message).at("status")
            })
        });
        let pairs = self
            .tags
            .iter()
            .flat_map(|tags| tags.split(','))
            .filter(|pair| !pair.is_empty());
        let tags = pairs.map(|pair| {
            let split = pair.split_once([':', '=']).map(|(key, value)| Tag {
                key: key.to_owned(),
                value: value.to_owned(),
            });
            split.ok_or_else(|| {
                let message = format!("{pair:?} is not a tag; write key:value, with commas between them");
                Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message).at("tags")
            })
        });
        Ok(RunFilters {
            statuses: statuses.collect::<Result<_, _>>()?,
            tags: tags.collect::<Result<_, _>>()?,
            name_pattern: self.q.as_ref().filter(|q| !q.is_empty()).map(|q| format!("*{q}*")),
            ..RunFilters::default()
        })
    }
}

/// Runs of a project, or of all that the caller may see, the newest first.
pub(super) async fn list(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Answered<Value> {
    const LIMIT_DEFAULT: usize = 100;
    let list: List = query(&uri)?;
    let limit = list.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, PAGE);
    if list.offset > OFFSET_MAX {
        let message = format!("an offset is {OFFSET_MAX} at most; go on with next_page_token");
        return Err(Refusal::new(Code::InvalidArgument, "OUT_OF_RANGE", message)
            .at("offset")
            .into());
    }
    let page = |page_size: usize, page_token: String| {
        let request = ListRunsRequest {
            project_id: Some(ProjectId {
                value: list.project.clone(),
            }),
            filters: Some(list.filters()?),
            page_size: i32::try_from(page_size).unwrap_or(i32::MAX),
            page_token,
            ..ListRunsRequest::default()
        };
        Ok::<_, Refused>(request)
    };
    let (mut token, mut left) = (list.page_token.clone(), list.offset);
    while left > 0 {
        let passed = operations.list_runs(&caller, page(left.min(PAGE), token)?).await?;
        left -= passed.runs.len().min(left);
        token = passed.next_page_token;
        if token.is_empty() {
            let total = passed.total_count;
            return Ok(Json(
                json!({"runs": [], "total": total, "limit": limit, "offset": list.offset, "next_page_token": ""}),
            ));
        }
    }
    let found = operations.list_runs(&caller, page(limit, token)?).await?;
    let changed_at = operations.changed_at(&found.runs).await?;
    let shown = found.runs.iter().map(|run| {
        let id = run.run_id.as_ref().map_or("", |run| run.value.as_str());
        runs::run(run, changed_at.get(id).copied())
    });
    Ok(Json(json!({
        "runs": shown.collect::<Vec<_>>(),
        "total": found.total_count,
        "limit": limit,
        "offset": list.offset,
        "next_page_token": found.next_page_token,
    })))
}

/// One run, with the last value of each metric.
pub(super) async fn run(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Answered<Value> {
    let run_id = Some(RunId { value: run });
    let request = GetRunRequest {
        run_id: run_id.clone(),
        include_fields: Vec::new(),
    };
    let found = operations.get_run(&caller, request).await?.run.unwrap_or_default();
    let changed_at = operations.changed_at(std::slice::from_ref(&found)).await?;
    let latest = operations.latest(&caller, run_id.as_ref()).await?;
    let summary = latest.into_iter().map(|latest| {
        json!({
            "name": latest.name.as_str(),
            "last_value": Double(latest.value),
            "last_step": latest.step,
        })
    });
    let mut shown = runs::run(&found, changed_at.into_values().next());
    shown["metrics_summary"] = summary.collect();
    Ok(Json(shown))
}

/// The parameters of a run.
pub(super) async fn params(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Answered<Value> {
    let request = GetRunRequest {
        run_id: Some(RunId { value: run }),
        include_fields: vec!["params".to_owned()],
    };
    let found = operations.get_run(&caller, request).await?.run.unwrap_or_default();
    Ok(Json(json!({"params": runs::params(&found.params)})))
}

/// `GET /api/v1/runs/{id}/metrics`.
#[derive(Debug, Deserialize)]
struct Metrics {
    names: Option<String>,
    #[serde(default)]
    max_points: i32,
    start_step: Option<i64>,
    end_step: Option<i64>,
}

/// A bucket of a curve.
#[derive(Serialize)]
struct Band {
    step: i64,
    mean: Double,
    min: Double,
    max: Double,
    count: u64,
}

/// A curve of bands.
#[derive(Serialize)]
struct Curve {
    name: String,
    points: Vec<Band>,
    total_points: u64,
    downsampled: bool,
}

impl From<Chart> for Curve {
    fn from(chart: Chart) -> Self {
        let bands = chart.buckets.into_iter().map(|bucket| Band {
            step: bucket.step,
            mean: Double(bucket.mean),
            min: Double(bucket.min),
            max: Double(bucket.max),
            count: bucket.count,
        });
        let points: Vec<Band> = bands.collect();
        Self {
            name: chart.name.into_string(),
            downsampled: (points.len() as u64) < chart.points,
            points,
            total_points: chart.points,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Curves {
    run_id: String,
    series: Vec<Curve>,
    available_metrics: Vec<String>,
}

/// Series of a run as bands.
pub(super) async fn metrics(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    uri: Uri,
) -> Answered<Curves> {
    let asked: Metrics = query(&uri)?;
    let names = asked
        .names
        .iter()
        .flat_map(|names| names.split(','))
        .filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let range = Range {
        step_min: asked.start_step,
        step_max: asked.end_step,
        ..Range::default()
    };
    let request = ChartRequest::of(&run, &names, range, asked.max_points)?;
    let (charts, all) = operations.charts(&caller, &request).await?;
    Ok(Json(Curves {
        run_id: run,
        series: charts.into_iter().map(Curve::from).collect(),
        available_metrics: all.into_iter().map(|name| name.into_string()).collect(),
    }))
}

/// `POST /api/v1/runs/compare`.
#[derive(Debug, Deserialize)]
struct Compare {
    run_ids: Vec<String>,
    #[serde(default)]
    metric_names: Vec<String>,
    #[serde(default)]
    max_points: i32,
    #[serde(default)]
    alignment: String,
}

/// Series of several runs on one axis.
pub(super) async fn compare(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    sent: Bytes,
) -> Answered<Value> {
    let asked: Compare = body(&sent)?;
    let words = ["", "step", "relative_time", "absolute_time", "progress"];
    let Some(alignment) = words.iter().position(|word| *word == asked.alignment) else {
        let message = "alignment is step, relative_time, absolute_time or progress";
        return Err(Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message)
            .at("alignment")
            .into());
    };
    let request = CompareRunsRequest {
        run_ids: asked.run_ids.into_iter().map(|value| RunId { value }).collect(),
        metric_names: asked.metric_names,
        alignment: i32::try_from(alignment).unwrap_or_default(),
        max_points: asked.max_points,
    };
    let compared = operations.compare_runs(&caller, request).await?;
    let info = compared.alignment_info.unwrap_or_default();
    let mut shown = Vec::new();
    let mut common: Option<Vec<String>> = None;
    for metrics in compared.run_metrics {
        let request = GetRunRequest {
            run_id: metrics.run_id.clone(),
            include_fields: vec!["summary".to_owned()],
        };
        let run = operations.get_run(&caller, request).await?.run.unwrap_or_default();
        let has_points = |series: &&MetricSeries| series.points.iter().any(|point| point.timestamp.is_some());
        let names: Vec<String> = metrics
            .series
            .iter()
            .filter(has_points)
            .map(|series| series.name.clone())
            .collect();
        common = Some(match common {
            None => names,
            Some(common) => common.into_iter().filter(|name| names.contains(name)).collect(),
        });
        let described = runs::run(&run, None);
        shown.push(json!({
            "run_id": described["run_id"],
            "run_name": described["name"],
            "status": described["status"],
            "series": metrics.series.iter().map(aligned).collect::<Vec<_>>(),
        }));
    }
    Ok(Json(json!({
        "runs": shown,
        "common_metrics": common.unwrap_or_default(),
        "alignment": words[usize::try_from(info.mode).unwrap_or_default().min(words.len() - 1)],
        "x_values": info.x_values.into_iter().map(Double).collect::<Vec<_>>(),
        "x_label": info.x_label,
    })))
}

/// A gap is `null`, and a value that is no number is a text.
fn aligned(series: &MetricSeries) -> Value {
    let points = series.points.iter().map(|point| {
        let is_gap = point.timestamp.is_none() && point.value.is_nan();
        json!({
            "step": point.step,
            "value": (!is_gap).then_some(Double(point.value)),
            "timestamp": rfc3339(point.timestamp.as_ref()),
        })
    });
    json!({"name": series.name, "points": points.collect::<Vec<_>>()})
}
