//! The routes of a training job.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::{Batch, BatchAnswer};
use super::exchange::{Answered, Refused, Warnings, body};
use super::message;
use super::pairs::Pairs;
use super::values::{Time, Whole, rfc3339};
use crate::domain::Status;
use crate::keys::Caller;
use crate::operations::Operations;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::{
    FinishRunRequest, HeartbeatRequest, InitRunRequest, LogParamsRequest, LogTagsRequest, Parameter, ProjectId, RunId,
    Tag,
};

/// `POST /api/v1/runs`.
#[derive(Debug, Deserialize)]
struct Open {
    project: String,
    run_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    parent_run_id: Option<String>,
    resume_token: Option<String>,
    #[serde(default)]
    tags: Pairs,
    /// Kept as parameters.
    #[serde(default)]
    config: Pairs,
    system_info: Option<Value>,
    git_info: Option<Value>,
}

#[derive(Serialize)]
pub(super) struct Opened {
    run_id: String,
    offline: bool,
    resume_token: String,
    resumed: bool,
    server_time: Option<String>,
    #[serde(skip_serializing_if = "Warnings::is_empty")]
    warnings: Warnings,
}

type OperationsState = State<Arc<Operations>>;

/// Opens a run, and stores its configuration as parameters.
pub(super) async fn open(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    sent: Bytes,
) -> Answered<Opened> {
    let open: Open = body(&sent)?;
    let optional = |name, value: Option<Value>| value.filter(|value| !value.is_null()).map(|value| (name, value));
    let system_info = optional("SystemInfo", open.system_info);
    let git_info = optional("GitInfo", open.git_info);
    let request = InitRunRequest {
        project_id: Some(ProjectId { value: open.project }),
        run_id: open.run_id,
        name: open.name,
        description: open.description,
        tags: tags_of(open.tags),
        system_info: system_info
            .map(|(name, value)| message::from_json(name, value))
            .transpose()?,
        git_info: git_info
            .map(|(name, value)| message::from_json(name, value))
            .transpose()?,
        parent_run_id: open.parent_run_id,
        resume_token: open.resume_token,
    };
    let opened = operations.open_run(&caller, request, params_of(open.config)).await?;
    Ok(Json(Opened {
        run_id: opened.run_id.map(|run| run.value).unwrap_or_default(),
        offline: false,
        resume_token: opened.resume_token,
        resumed: opened.resumed,
        server_time: rfc3339(opened.server_time.as_ref()),
        warnings: Warnings::of(&opened.warnings),
    }))
}

/// Stores a batch.
pub(super) async fn batch(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    sent: Bytes,
) -> Answered<BatchAnswer> {
    let batch: Batch = body(&sent)?;
    let logged = operations.log_batch(&caller, batch.sent()?).await?;
    Ok(Json(logged.into()))
}

/// `POST /api/v1/runs/{id}/finish`.
#[derive(Debug, Deserialize)]
struct Finish {
    status: String,
    exit_code: Option<Whole>,
    error_message: Option<String>,
    #[serde(default)]
    summary: Pairs,
}

/// Ends a run.
pub(super) async fn finish(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    sent: Bytes,
) -> Answered<Value> {
    let finish: Finish = body(&sent)?;
    let Some(status) = Status::of_word(&finish.status) else {
        let message = format!(
            "{:?} is not a status; a run ends as finished, failed or killed",
            finish.status
        );
        return Err(Refusal::new(Code::InvalidArgument, "INVALID_STATUS", message)
            .at("status")
            .into());
    };
    let exit_code = finish.exit_code.map(|Whole(code)| i32::try_from(code)).transpose();
    let exit_code = exit_code.map_err(|_| {
        let message = "exit_code is not a number of 32 bits";
        Refusal::new(Code::InvalidArgument, "OUT_OF_RANGE", message).at("exit_code")
    })?;
    let request = FinishRunRequest {
        run_id: Some(RunId { value: run }),
        status: status.to_wire().into(),
        exit_code,
        error_message: finish.error_message,
        summary: params_of(finish.summary),
    };
    let finished = operations.finish_run(&caller, request).await?;
    Ok(Json(json!({
        "status": "ok",
        "duration_seconds": finished.duration_seconds,
        "total_metrics": finished.total_metrics,
        "total_artifacts": finished.total_artifacts,
        "finished_at": rfc3339(finished.finished_at.as_ref()),
        "warnings": Warnings::of(&finished.warnings),
    })))
}

#[derive(Debug, Deserialize)]
struct Heartbeat {
    client_time: Option<Time>,
}

/// Keeps a run alive.
pub(super) async fn heartbeat(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    sent: Bytes,
) -> Answered<Value> {
    let heartbeat: Heartbeat = body(&sent)?;
    let client_time: Option<Timestamp> = heartbeat.client_time.map(|Time(time)| time);
    let request = HeartbeatRequest {
        run_id: Some(RunId { value: run }),
        client_time,
    };
    let beat = operations.heartbeat(&caller, request).await?;
    Ok(Json(json!({
        "server_time": rfc3339(beat.server_time.as_ref()),
        "request_resync": beat.request_resync,
    })))
}

#[derive(Debug, Deserialize)]
struct Params {
    params: Pairs,
}

/// Stores parameters.
pub(super) async fn params(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    sent: Bytes,
) -> Answered<Value> {
    let params: Params = body(&sent)?;
    let request = LogParamsRequest {
        run_id: Some(RunId { value: run }),
        params: params_of(params.params),
    };
    let logged = operations.log_params(&caller, request).await?;
    Ok(Json(json!({
        "accepted_count": logged.accepted,
        "existing_count": logged.existing,
        "warnings": Warnings::of(&logged.warnings),
    })))
}

#[derive(Debug, Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Pairs,
    #[serde(default)]
    remove_keys: Vec<String>,
}

/// Sets and removes tags.
pub(super) async fn tags(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    sent: Bytes,
) -> Answered<Value> {
    let tags: Tags = body(&sent)?;
    let request = LogTagsRequest {
        run_id: Some(RunId { value: run }),
        tags: tags_of(tags.tags),
        remove_keys: tags.remove_keys,
    };
    let logged = operations.log_tags(&caller, request).await?;
    Ok(Json(json!({
        "updated_count": logged.updated,
        "removed_count": logged.removed,
        "warnings": Warnings::of(&logged.warnings),
    })))
}

/// Deletes a run with all that belongs to it.
pub(super) async fn delete(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Refused> {
    operations.delete_run(&caller, &RunId { value: run }).await?;
    Ok(Json(json!({"status": "ok"})))
}

fn params_of(pairs: Pairs) -> Vec<Parameter> {
    pairs
        .0
        .into_iter()
        .map(|(name, value)| Parameter { name, value })
        .collect()
}

fn tags_of(pairs: Pairs) -> Vec<Tag> {
    pairs.0.into_iter().map(|(key, value)| Tag { key, value }).collect()
}
