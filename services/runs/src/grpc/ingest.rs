//! `mlrun.v1.IngestService`.

use futures::stream::BoxStream;
use kindex_serve::deadline::Deadline;
use tonic::{Request, Response, Status, Streaming};

use super::in_flight::InFlight;
use super::{Served, caller, status};
use crate::wire::v1::ingest_service_server::IngestService;
use crate::wire::v1::{
    CreateArtifactUploadRequest, CreateArtifactUploadResponse, FinalizeArtifactUploadRequest,
    FinalizeArtifactUploadResponse, FinishRunRequest, FinishRunResponse, HeartbeatRequest, HeartbeatResponse,
    InitRunRequest, InitRunResponse, LogMetricsRequest, LogMetricsResponse, LogMetricsStreamRequest,
    LogMetricsStreamResponse, LogParamsRequest, LogParamsResponse, LogTagsRequest, LogTagsResponse,
};

/// Answers a call by the operation of this name.
macro_rules! answer {
    ($served:expr, $request:expr, $operation:ident) => {{
        let caller = caller(&$request)?;
        let answered = $served.operations.$operation(&caller, $request.into_inner()).await;
        answered.map_err(|refusal| status::of(&refusal))
    }};
}

pub(super) use answer;

#[tonic::async_trait]
impl IngestService for Served {
    type LogMetricsStreamStream = BoxStream<'static, Result<LogMetricsStreamResponse, Status>>;

    async fn init_run(&self, request: Request<InitRunRequest>) -> Result<Response<InitRunResponse>, Status> {
        answer!(self, request, init_run).map(Response::new)
    }

    async fn log_metrics(&self, request: Request<LogMetricsRequest>) -> Result<Response<LogMetricsResponse>, Status> {
        answer!(self, request, log_metrics).map(Response::new)
    }

    async fn log_metrics_stream(
        &self,
        request: Request<Streaming<LogMetricsStreamRequest>>,
    ) -> Result<Response<Self::LogMetricsStreamStream>, Status> {
        let caller = caller(&request)?;
        let extensions = request.extensions();
        let in_flight = extensions.get::<InFlight>().cloned().unwrap_or_default();
        let deadline = extensions.get().copied().unwrap_or(Deadline::NONE);
        let requests = request.into_inner();
        let answers = self
            .streams
            .answer(self.operations.clone(), caller, in_flight, requests, deadline)?;
        Ok(Response::new(answers))
    }

    async fn log_params(&self, request: Request<LogParamsRequest>) -> Result<Response<LogParamsResponse>, Status> {
        let logged = answer!(self, request, log_params)?;
        Ok(Response::new(LogParamsResponse {
            accepted_count: logged.accepted.cast_signed(),
            existing_count: logged.existing.cast_signed(),
            warnings: logged.warnings,
        }))
    }

    async fn log_tags(&self, request: Request<LogTagsRequest>) -> Result<Response<LogTagsResponse>, Status> {
        let logged = answer!(self, request, log_tags)?;
        Ok(Response::new(LogTagsResponse {
            updated_count: logged.updated.cast_signed(),
            removed_count: logged.removed.cast_signed(),
            warnings: logged.warnings,
        }))
    }

    async fn create_artifact_upload(
        &self,
        request: Request<CreateArtifactUploadRequest>,
    ) -> Result<Response<CreateArtifactUploadResponse>, Status> {
        answer!(self, request, create_upload).map(Response::new)
    }

    async fn finalize_artifact_upload(
        &self,
        request: Request<FinalizeArtifactUploadRequest>,
    ) -> Result<Response<FinalizeArtifactUploadResponse>, Status> {
        answer!(self, request, finalize_upload).map(Response::new)
    }

    async fn heartbeat(&self, request: Request<HeartbeatRequest>) -> Result<Response<HeartbeatResponse>, Status> {
        answer!(self, request, heartbeat).map(Response::new)
    }

    async fn finish_run(&self, request: Request<FinishRunRequest>) -> Result<Response<FinishRunResponse>, Status> {
        answer!(self, request, finish_run).map(Response::new)
    }
}
