//! The routes that only `mlrun.v1` knows: artifacts, search and what a project holds, in the JSON of the messages.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use http::Uri;
use serde::Deserialize;
use serde_json::Value;

use super::exchange::{Answered, Refused, body, query};
use super::message::{from_json, to_json};
use crate::keys::Caller;
use crate::operations::Operations;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::{
    ArtifactType, CreateArtifactUploadRequest, FinalizeArtifactUploadRequest, GetArtifactDownloadUrlRequest,
    GetProjectStatsRequest, ListArtifactsRequest, ProjectId, RunId, SearchRunsRequest,
};

type OperationsState = State<Arc<Operations>>;

/// Takes in or hands out a file, by a signed address.
pub(super) async fn content(State(operations): OperationsState, request: Request) -> Result<Response, Refused> {
    Ok(operations.artifacts.serve(request).await?)
}

/// Opens an upload.
pub(super) async fn create(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    sent: Bytes,
) -> Answered<Value> {
    let sent: Value = body(&sent)?;
    let mut request: CreateArtifactUploadRequest = from_json("CreateArtifactUploadRequest", sent)?;
    request.run_id = Some(RunId { value: run });
    let opened = operations.create_upload(&caller, request).await?;
    Ok(Json(to_json("CreateArtifactUploadResponse", &opened)))
}

/// Checks what was uploaded.
pub(super) async fn finalize(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(upload_id): Path<String>,
    sent: Bytes,
) -> Answered<Value> {
    let sent: Value = body(&sent)?;
    let mut request: FinalizeArtifactUploadRequest = from_json("FinalizeArtifactUploadRequest", sent)?;
    request.upload_id = upload_id;
    let finalized = operations.finalize_upload(&caller, request).await?;
    Ok(Json(to_json("FinalizeArtifactUploadResponse", &finalized)))
}

#[derive(Debug, Deserialize)]
struct List {
    /// Such as `model`, with commas between them.
    types: Option<String>,
    name_pattern: Option<String>,
    #[serde(default)]
    page_size: i32,
    #[serde(default)]
    page_token: String,
}

/// Artifacts of a run.
pub(super) async fn list(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    uri: Uri,
) -> Answered<Value> {
    let asked: List = query(&uri)?;
    let words = asked
        .types
        .iter()
        .flat_map(|words| words.split(','))
        .filter(|word| !word.is_empty());
    let types = words.map(|word| {
        let name = format!("ARTIFACT_TYPE_{}", word.to_ascii_uppercase());
        ArtifactType::from_str_name(&name).map(i32::from).ok_or_else(|| {
            let message = format!("{word:?} is not a type of artifacts; types are such as model and dataset");
            Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message).at("types")
        })
    });
    let request = ListArtifactsRequest {
        run_id: Some(RunId { value: run }),
        types: types.collect::<Result<_, _>>()?,
        name_pattern: asked.name_pattern,
        page_size: asked.page_size,
        page_token: asked.page_token,
    };
    let found = operations.list_artifacts(&caller, request).await?;
    Ok(Json(to_json("ListArtifactsResponse", &found)))
}

/// Where an artifact can be read.
pub(super) async fn url(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path((run, artifact_name)): Path<(String, String)>,
) -> Answered<Value> {
    let request = GetArtifactDownloadUrlRequest {
        run_id: Some(RunId { value: run }),
        artifact_name,
    };
    let found = operations.get_artifact_download_url(&caller, request).await?;
    Ok(Json(to_json("GetArtifactDownloadUrlResponse", &found)))
}

#[derive(Debug, Deserialize)]
struct Search {
    #[serde(default)]
    project: String,
    #[serde(default, alias = "q")]
    query: String,
    #[serde(default)]
    page_size: i32,
    #[serde(default)]
    page_token: String,
}

/// Runs that match words.
pub(super) async fn search(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Answered<Value> {
    let asked: Search = query(&uri)?;
    let request = SearchRunsRequest {
        project_id: Some(ProjectId { value: asked.project }),
        query: asked.query,
        filters: None,
        page_size: asked.page_size,
        page_token: asked.page_token,
    };
    let found = operations.search_runs(&caller, request).await?;
    Ok(Json(to_json("SearchRunsResponse", &found)))
}

#[derive(Debug, Deserialize)]
struct Stats {
    /// RFC 3339.
    since: Option<String>,
}

/// What a project holds.
pub(super) async fn stats(
    State(operations): OperationsState,
    Extension(caller): Extension<Caller>,
    Path(project): Path<String>,
    uri: Uri,
) -> Answered<Value> {
    let asked: Stats = query(&uri)?;
    let since = asked.since.map(|since| {
        let json = Value::from(since);
        let time: Result<super::values::Time, _> = serde_json::from_value(json);
        time.map(|time| time.0).map_err(|error| {
            let message = format!("since cannot be read: {error}");
            Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message).at("since")
        })
    });
    let request = GetProjectStatsRequest {
        project_id: Some(ProjectId { value: project }),
        since: since.transpose()?,
    };
    let found = operations.get_project_stats(&caller, request).await?;
    Ok(Json(to_json("GetProjectStatsResponse", &found)))
}
