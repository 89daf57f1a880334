//! What the calls need of the store, of artifacts and of reading.

use async_trait::async_trait;

use crate::domain::{
    Batch, Beat, FinishRun, Finished, Logged, NewRun, Opened, ParamsChange, ParamsLogged, ProjectName, RunId,
    TagsChange, TagsLogged,
};
use crate::refusal::Refusal;
use crate::wire::v1::{
    CompareRunsRequest, CompareRunsResponse, CreateArtifactUploadRequest, CreateArtifactUploadResponse,
    FinalizeArtifactUploadRequest, FinalizeArtifactUploadResponse, GetArtifactDownloadUrlRequest,
    GetArtifactDownloadUrlResponse, GetMetricsRequest, GetMetricsResponse, GetProjectStatsRequest,
    GetProjectStatsResponse, GetRunRequest, GetRunResponse, ListArtifactsRequest, ListArtifactsResponse,
    ListRunsRequest, ListRunsResponse, SearchRunsRequest, SearchRunsResponse,
};

/// Takes in runs. An answer means that it is durable; a refusal, that nothing was changed.
#[async_trait]
pub trait Ingest: Send + Sync + 'static {
    /// Opens a run.
    async fn open(&self, run: NewRun) -> Result<Opened, Refusal>;

    /// Stores a batch, once for each id.
    async fn log(&self, batch: Batch) -> Result<Logged, Refusal>;

    /// Stores parameters.
    async fn log_params(&self, change: ParamsChange) -> Result<ParamsLogged, Refusal>;

    /// Sets and removes tags.
    async fn log_tags(&self, change: TagsChange) -> Result<TagsLogged, Refusal>;

    /// Keeps a run alive.
    async fn heartbeat(&self, run: RunId) -> Result<Beat, Refusal>;

    /// Ends a run.
    async fn finish(&self, run: FinishRun) -> Result<Finished, Refusal>;

    /// Of which project a run is; none where there is no such run.
    async fn project_of(&self, run: &RunId) -> Result<Option<ProjectName>, Refusal>;
}

/// Keeps the files of runs.
#[async_trait]
pub trait Uploads: Send + Sync + 'static {
    /// Opens an upload.
    async fn create(&self, request: CreateArtifactUploadRequest) -> Result<CreateArtifactUploadResponse, Refusal>;

    /// Checks what was uploaded.
    async fn finalize(&self, request: FinalizeArtifactUploadRequest)
    -> Result<FinalizeArtifactUploadResponse, Refusal>;

    /// Of which run an upload is; none where there is no such upload.
    async fn run_of(&self, upload_id: &str) -> Result<Option<RunId>, Refusal>;
}

/// Reads runs.
#[async_trait]
pub trait Query: Send + Sync + 'static {
    /// Runs of a project.
    async fn list_runs(&self, request: ListRunsRequest) -> Result<ListRunsResponse, Refusal>;

    /// One run.
    async fn get_run(&self, request: GetRunRequest) -> Result<GetRunResponse, Refusal>;

    /// Series of runs.
    async fn get_metrics(&self, request: GetMetricsRequest) -> Result<GetMetricsResponse, Refusal>;

    /// Series of runs on one axis.
    async fn compare_runs(&self, request: CompareRunsRequest) -> Result<CompareRunsResponse, Refusal>;

    /// Artifacts of a run.
    async fn list_artifacts(&self, request: ListArtifactsRequest) -> Result<ListArtifactsResponse, Refusal>;

    /// Where an artifact can be read.
    async fn get_artifact_download_url(
        &self,
        request: GetArtifactDownloadUrlRequest,
    ) -> Result<GetArtifactDownloadUrlResponse, Refusal>;

    /// What a project holds.
    async fn get_project_stats(&self, request: GetProjectStatsRequest) -> Result<GetProjectStatsResponse, Refusal>;

    /// Runs that match words.
    async fn search_runs(&self, request: SearchRunsRequest) -> Result<SearchRunsResponse, Refusal>;
}
