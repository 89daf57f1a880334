//! The calls of people and dashboards: whoever may read a run or a project gets what the reader answers.

use std::collections::HashMap;

use super::Operations;
use crate::domain::MetricName;
use crate::keys::{Caller, Scope};
use crate::limits::{self, Limit};
use crate::read::{Chart, ChartRequest, Latest};
use crate::refusal::Refusal;
use crate::validate;
use crate::wire::v1::{
    self, CompareRunsRequest, CompareRunsResponse, GetArtifactDownloadUrlRequest, GetArtifactDownloadUrlResponse,
    GetMetricsRequest, GetMetricsResponse, GetProjectStatsRequest, GetProjectStatsResponse, GetRunRequest,
    GetRunResponse, ListArtifactsRequest, ListArtifactsResponse, ListRunsRequest, ListRunsResponse, SearchRunsRequest,
    SearchRunsResponse,
};

const SCOPE: Scope = Scope::Query;

impl Operations {
    /// `ListRuns`. Without a project it lists all that the caller may see.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn list_runs(&self, caller: &Caller, mut request: ListRunsRequest) -> Result<ListRunsResponse, Refusal> {
        caller.may(SCOPE)?;
        if validate::optional_project(request.project_id.as_ref())?.is_none() {
            let own = caller.project.as_ref().map(|project| project.as_str().to_owned());
            request.project_id = own.map(|value| v1::ProjectId { value });
        } else {
            self.check_project(caller, SCOPE, request.project_id.as_ref())?;
        }
        self.reader.list_runs(request).await
    }

    /// When each of these runs changed last. They were read for the caller before.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn changed_at(&self, runs: &[v1::Run]) -> Result<HashMap<String, i64>, Refusal> {
        self.reader.changed_at(runs).await
    }

    /// `GetRun`.
    ///
    /// # Errors
    /// No such run.
    pub async fn get_run(&self, caller: &Caller, request: GetRunRequest) -> Result<GetRunResponse, Refusal> {
        self.check_run(caller, SCOPE, request.run_id.as_ref()).await?;
        self.reader.get_run(request).await
    }

    /// `GetMetrics`.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn get_metrics(
        &self,
        caller: &Caller,
        request: GetMetricsRequest,
    ) -> Result<GetMetricsResponse, Refusal> {
        self.check_runs(caller, &request.run_ids, limits::METRICS_RUNS).await?;
        self.reader.get_metrics(request).await
    }

    /// Series of a run as bands, and the names of all of its metrics.
    ///
    /// # Errors
    /// No such run.
    pub async fn charts(
        &self,
        caller: &Caller,
        request: &ChartRequest,
    ) -> Result<(Vec<Chart>, Vec<MetricName>), Refusal> {
        let run = v1::RunId {
            value: request.run.as_str().to_owned(),
        };
        self.check_run(caller, SCOPE, Some(&run)).await?;
        self.reader.charts(request).await
    }

    /// The last point of each metric of a run.
    ///
    /// # Errors
    /// No such run.
    pub async fn latest(&self, caller: &Caller, run: Option<&v1::RunId>) -> Result<Vec<Latest>, Refusal> {
        let run = self.check_run(caller, SCOPE, run).await?;
        self.reader.latest(&run).await
    }

    /// `CompareRuns`.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn compare_runs(
        &self,
        caller: &Caller,
        request: CompareRunsRequest,
    ) -> Result<CompareRunsResponse, Refusal> {
        self.check_runs(caller, &request.run_ids, limits::COMPARED_RUNS).await?;
        self.reader.compare_runs(request).await
    }

    /// `ListArtifacts`.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn list_artifacts(
        &self,
        caller: &Caller,
        request: ListArtifactsRequest,
    ) -> Result<ListArtifactsResponse, Refusal> {
        self.check_run(caller, SCOPE, request.run_id.as_ref()).await?;
        self.artifacts.list(request).await
    }

    /// `GetArtifactDownloadUrl`.
    ///
    /// # Errors
    /// No such artifact.
    pub async fn get_artifact_download_url(
        &self,
        caller: &Caller,
        request: GetArtifactDownloadUrlRequest,
    ) -> Result<GetArtifactDownloadUrlResponse, Refusal> {
        self.check_run(caller, SCOPE, request.run_id.as_ref()).await?;
        self.artifacts.download_url(request).await
    }

    /// `GetProjectStats`.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn get_project_stats(
        &self,
        caller: &Caller,
        request: GetProjectStatsRequest,
    ) -> Result<GetProjectStatsResponse, Refusal> {
        self.check_project(caller, SCOPE, request.project_id.as_ref())?;
        self.reader.get_project_stats(request).await
    }

    /// `SearchRuns`.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn search_runs(
        &self,
        caller: &Caller,
        request: SearchRunsRequest,
    ) -> Result<SearchRunsResponse, Refusal> {
        self.check_project(caller, SCOPE, request.project_id.as_ref())?;
        self.reader.search_runs(request).await
    }

    async fn check_runs(&self, caller: &Caller, runs: &[v1::RunId], limit: Limit) -> Result<(), Refusal> {
        caller.may(SCOPE)?;
        validate::within("run_ids", runs.len(), limit)?;
        for run in runs {
            self.check_run(caller, SCOPE, Some(run)).await?;
        }
        Ok(())
    }
}
