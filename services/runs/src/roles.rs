//! What the calls need of the store and of the files of runs.

use async_trait::async_trait;

use crate::domain::{
    Batch, FinishRun, Finished, HeartbeatAnswer, Logged, NewRun, Opened, ParamsChange, ParamsLogged, ProjectName,
    RunId, TagsChange, TagsLogged,
};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::wire::v1::{
    CreateArtifactUploadRequest, CreateArtifactUploadResponse, FinalizeArtifactUploadRequest,
    FinalizeArtifactUploadResponse,
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
    async fn heartbeat(&self, run: RunId) -> Result<HeartbeatAnswer, Refusal>;

    /// Ends a run.
    async fn finish(&self, run: FinishRun) -> Result<Finished, Refusal>;

    /// Deletes a run with all that belongs to it.
    async fn delete(&self, run: RunId) -> Result<(), Refusal>;

    /// Of which project a run is; none where there is no such run.
    async fn project_of(&self, run: &RunId) -> Result<Option<ProjectName>, Refusal>;

    /// Why nothing can be stored now; none while it can.
    fn not_ready(&self) -> Option<String>;
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

#[async_trait]
impl Ingest for Store {
    async fn open(&self, run: NewRun) -> Result<Opened, Refusal> {
        self.init(run).await
    }

    async fn log(&self, batch: Batch) -> Result<Logged, Refusal> {
        Self::log(self, batch).await
    }

    async fn log_params(&self, change: ParamsChange) -> Result<ParamsLogged, Refusal> {
        self.params(change).await
    }

    async fn log_tags(&self, change: TagsChange) -> Result<TagsLogged, Refusal> {
        self.tags(change).await
    }

    async fn heartbeat(&self, run: RunId) -> Result<HeartbeatAnswer, Refusal> {
        Self::heartbeat(self, run).await
    }

    async fn finish(&self, run: FinishRun) -> Result<Finished, Refusal> {
        Self::finish(self, run).await
    }

    async fn delete(&self, run: RunId) -> Result<(), Refusal> {
        Self::delete(self, run).await
    }

    async fn project_of(&self, run: &RunId) -> Result<Option<ProjectName>, Refusal> {
        Self::project_of(self, run).await
    }

    fn not_ready(&self) -> Option<String> {
        self.health().borrow().clone()
    }
}
