//! The calls of a training job.

use super::Operations;
use crate::domain::warning::capped;
use crate::domain::{Logged, ParamsLogged, TagsLogged, to_wire};
use crate::keys::{Caller, Scope};
use crate::refusal::Refusal;
use crate::roles::Uploads;
use crate::validate::{self, Sent};
use crate::wire::v1::{
    CreateArtifactUploadRequest, CreateArtifactUploadResponse, FinalizeArtifactUploadRequest,
    FinalizeArtifactUploadResponse, FinishRunRequest, FinishRunResponse, HeartbeatRequest, HeartbeatResponse,
    InitRunRequest, InitRunResponse, LogMetricsRequest, LogMetricsResponse, LogParamsRequest, LogTagsRequest,
    Parameter, RunId,
};
use crate::{limits, token};

const SECOND_NS: i64 = 1_000_000_000;

impl Operations {
    /// `InitRun`.
    ///
    /// # Errors
    /// What the request has wrong, and what the state of the run, its project or the token forbids.
    pub async fn init_run(&self, caller: &Caller, request: InitRunRequest) -> Result<InitRunResponse, Refusal> {
        self.open_run(caller, request, Vec::new()).await
    }

    /// Opens a run and stores parameters of it, both or neither.
    ///
    /// # Errors
    /// As [`init_run`](Self::init_run).
    pub async fn open_run(
        &self,
        caller: &Caller,
        request: InitRunRequest,
        params: Vec<Parameter>,
    ) -> Result<InitRunResponse, Refusal> {
        self.check_project(caller, Scope::Ingest, request.project_id.as_ref())?;
        let now_s = self.now().div_euclid(SECOND_NS);
        let token = token::presented(&self.secrets, request.resume_token.as_deref(), now_s);
        let run = validate::init_run(request, params, &caller.user, token)?;
        let opened = self.store.open(run).await?;
        Ok(InitRunResponse {
            resume_token: token::issue(&self.secrets, &opened, now_s),
            run_id: Some(RunId {
                value: opened.run.into_string(),
            }),
            server_time: Some(to_wire(opened.server_time)),
            resumed: opened.resumed,
            warnings: capped(opened.warnings, limits::WARNINGS.max),
        })
    }

    /// `LogMetrics`.
    ///
    /// # Errors
    /// What the request has wrong, what the state of the run forbids, an id that is known with other content, and a
    /// store that is full or away.
    pub async fn log_metrics(
        &self,
        caller: &Caller,
        request: LogMetricsRequest,
    ) -> Result<LogMetricsResponse, Refusal> {
        self.check_run(caller, Scope::Ingest, request.run_id.as_ref()).await?;
        let batch = validate::log_metrics(request, self.now(), self.oversized)?;
        let logged = self.counted(self.store.log(batch).await?);
        Ok(LogMetricsResponse {
            accepted_count: logged.accepted.cast_signed(),
            deduplicated_count: logged.deduplicated.cast_signed(),
            warnings: logged.warnings,
            server_time: Some(to_wire(logged.server_time)),
        })
    }

    /// A batch with parameters and tags.
    ///
    /// # Errors
    /// As [`log_metrics`](Self::log_metrics).
    pub async fn log_batch(&self, caller: &Caller, sent: Sent) -> Result<Logged, Refusal> {
        let run = RunId {
            value: sent.run_id.clone(),
        };
        self.check_run(caller, Scope::Ingest, Some(&run)).await?;
        let batch = validate::batch(sent, self.now(), self.oversized)?;
        Ok(self.counted(self.store.log(batch).await?))
    }

    fn counted(&self, logged: Logged) -> Logged {
        self.metrics.logged(&logged);
        Logged {
            warnings: capped(logged.warnings, limits::WARNINGS.max),
            ..logged
        }
    }

    /// `LogParams`.
    ///
    /// # Errors
    /// What the request has wrong, and what the state of the run forbids.
    pub async fn log_params(&self, caller: &Caller, request: LogParamsRequest) -> Result<ParamsLogged, Refusal> {
        self.check_run(caller, Scope::Ingest, request.run_id.as_ref()).await?;
        let logged = self.store.log_params(validate::log_params(request)?).await?;
        Ok(ParamsLogged {
            warnings: capped(logged.warnings, limits::WARNINGS.max),
            ..logged
        })
    }

    /// `LogTags`.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn log_tags(&self, caller: &Caller, request: LogTagsRequest) -> Result<TagsLogged, Refusal> {
        self.check_run(caller, Scope::Ingest, request.run_id.as_ref()).await?;
        let logged = self.store.log_tags(validate::log_tags(request)?).await?;
        Ok(TagsLogged {
            warnings: capped(logged.warnings, limits::WARNINGS.max),
            ..logged
        })
    }

    /// `CreateArtifactUpload`.
    ///
    /// # Errors
    /// What the request has wrong, and what the state of the run forbids.
    pub async fn create_upload(
        &self,
        caller: &Caller,
        request: CreateArtifactUploadRequest,
    ) -> Result<CreateArtifactUploadResponse, Refusal> {
        self.check_run(caller, Scope::Ingest, request.run_id.as_ref()).await?;
        self.artifacts.create(request).await
    }

    /// `FinalizeArtifactUpload`.
    ///
    /// # Errors
    /// What was uploaded is not what was said; then it is deleted.
    pub async fn finalize_upload(
        &self,
        caller: &Caller,
        request: FinalizeArtifactUploadRequest,
    ) -> Result<FinalizeArtifactUploadResponse, Refusal> {
        self.check_upload(caller, &request.upload_id).await?;
        self.artifacts.finalize(request).await
    }

    /// `Heartbeat`.
    ///
    /// # Errors
    /// No such run, and one that has ended.
    pub async fn heartbeat(&self, caller: &Caller, request: HeartbeatRequest) -> Result<HeartbeatResponse, Refusal> {
        let run = self.check_run(caller, Scope::Ingest, request.run_id.as_ref()).await?;
        let beat = self.store.heartbeat(run).await?;
        Ok(HeartbeatResponse {
            server_time: Some(to_wire(beat.server_time)),
            request_resync: beat.request_resync,
        })
    }

    /// `FinishRun`.
    ///
    /// # Errors
    /// What the request has wrong, and what the state of the run forbids.
    pub async fn finish_run(&self, caller: &Caller, request: FinishRunRequest) -> Result<FinishRunResponse, Refusal> {
        self.check_run(caller, Scope::Ingest, request.run_id.as_ref()).await?;
        let finished = self.store.finish(validate::finish_run(request)?).await?;
        Ok(FinishRunResponse {
            duration_seconds: finished.duration as f64 / SECOND_NS as f64,
            total_metrics: finished.points.cast_signed(),
            total_artifacts: finished.artifacts.cast_signed(),
            finished_at: Some(to_wire(finished.finished_at)),
            warnings: capped(finished.warnings, limits::WARNINGS.max),
        })
    }

    /// Deletes a run with all that belongs to it. `mlrun.v1` has no such call.
    ///
    /// # Errors
    /// No such run.
    pub async fn delete_run(&self, caller: &Caller, run: &RunId) -> Result<(), Refusal> {
        let run = self.check_run(caller, Scope::Admin, Some(run)).await?;
        self.store.delete(run).await
    }
}
