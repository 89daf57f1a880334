//! `mlrun.v1.QueryService`.

use tonic::{Request, Response, Status};

use super::ingest::answer;
use super::{Served, caller, status};
use crate::wire::v1::query_service_server::QueryService;
use crate::wire::v1::{
    CompareRunsRequest, CompareRunsResponse, GetArtifactDownloadUrlRequest, GetArtifactDownloadUrlResponse,
    GetMetricsRequest, GetMetricsResponse, GetProjectStatsRequest, GetProjectStatsResponse, GetRunRequest,
    GetRunResponse, ListArtifactsRequest, ListArtifactsResponse, ListRunsRequest, ListRunsResponse, SearchRunsRequest,
    SearchRunsResponse,
};

#[tonic::async_trait]
impl QueryService for Served {
    async fn list_runs(&self, request: Request<ListRunsRequest>) -> Result<Response<ListRunsResponse>, Status> {
        answer!(self, request, list_runs).map(Response::new)
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        answer!(self, request, get_run).map(Response::new)
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        answer!(self, request, get_metrics).map(Response::new)
    }

    async fn compare_runs(
        &self,
        request: Request<CompareRunsRequest>,
    ) -> Result<Response<CompareRunsResponse>, Status> {
        answer!(self, request, compare_runs).map(Response::new)
    }

    async fn list_artifacts(
        &self,
        request: Request<ListArtifactsRequest>,
    ) -> Result<Response<ListArtifactsResponse>, Status> {
        answer!(self, request, list_artifacts).map(Response::new)
    }

    async fn get_artifact_download_url(
        &self,
        request: Request<GetArtifactDownloadUrlRequest>,
    ) -> Result<Response<GetArtifactDownloadUrlResponse>, Status> {
        answer!(self, request, get_artifact_download_url).map(Response::new)
    }

    async fn get_project_stats(
        &self,
        request: Request<GetProjectStatsRequest>,
    ) -> Result<Response<GetProjectStatsResponse>, Status> {
        answer!(self, request, get_project_stats).map(Response::new)
    }

    async fn search_runs(&self, request: Request<SearchRunsRequest>) -> Result<Response<SearchRunsResponse>, Status> {
        answer!(self, request, search_runs).map(Response::new)
    }
}
