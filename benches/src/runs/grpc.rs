//! A client of the runs service over gRPC that sends messages as bytes, so that it spends little on them.

use std::collections::HashMap;
use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use kindex_runs::wire::v1::{
    FinishRunRequest, GetMetricsRequest, GetMetricsResponse, InitRunRequest, InitRunResponse, LogMetricsResponse,
    ProjectId, RunId, RunStatus,
};
use prost::Message as _;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::load::{Answer, Refused, Sender};
use super::template::{BATCH_POINTS, Template};

const INGEST: &str = "/mlrun.v1.IngestService";
const QUERY: &str = "/mlrun.v1.QueryService";

/// Messages that are bytes already.
#[derive(Clone, Copy, Debug, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length)))
    }
}

/// A connection; clones share it.
#[derive(Clone)]
pub struct Client(Channel);

impl Client {
    /// To a server, which is reached with the first call.
    ///
    /// # Panics
    /// Never: an address makes an URL.
    pub fn new(server: SocketAddr) -> Self {
        let endpoint: Endpoint = format!("http://{server}").parse().expect("an address makes an URL");
        Self(endpoint.connect_lazy())
    }

    async fn call(&self, service: &str, method: &str, message: Bytes) -> Result<Bytes, Status> {
        let path: PathAndQuery = format!("{service}/{method}").parse().expect("a path");
        let mut grpc = Grpc::new(self.0.clone());
        let lost = |error| Status::unavailable(format!("no connection: {error}"));
        grpc.ready().await.map_err(lost)?;
        let answer = grpc.unary(tonic::Request::new(message), path, Raw).await?;
        Ok(answer.into_inner())
    }

    /// Opens so many runs of a project.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn open_runs(&self, project: &str, count: usize) -> Result<Vec<String>, String> {
        let mut runs = Vec::with_capacity(count);
        for _ in 0..count {
            let request = InitRunRequest {
                project_id: Some(ProjectId {
                    value: project.to_owned(),
                }),
                ..InitRunRequest::default()
            };
            let answer = self.call(INGEST, "InitRun", request.encode_to_vec().into()).await;
            let answer = InitRunResponse::decode(answer.map_err(|status| status.to_string())?);
            let opened = answer.map_err(|error| error.to_string())?;
            runs.push(opened.run_id.unwrap_or_default().value);
        }
        Ok(runs)
    }

    /// Stores a batch.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn log(&self, message: Bytes, points: usize) -> Result<(), Refused> {
        let answer = self.call(INGEST, "LogMetrics", message).await;
        let answer = answer.map_err(|status| match status.code() {
            Code::ResourceExhausted => Refused::Full,
            _ => Refused::Failed(status.to_string()),
        })?;
        let logged = LogMetricsResponse::decode(answer).map_err(|error| Refused::Failed(error.to_string()))?;
        if logged.accepted_count == points as i64 {
            return Ok(());
        }
        Err(Refused::Failed(format!("not all points were stored: {logged:?}")))
    }

    /// Ends a run.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn finish(&self, run: &str) -> Result<(), String> {
        let request = FinishRunRequest {
            run_id: Some(RunId { value: run.to_owned() }),
            status: RunStatus::Finished.into(),
            ..FinishRunRequest::default()
        };
        let answer = self.call(INGEST, "FinishRun", request.encode_to_vec().into()).await;
        answer.map(|_| ()).map_err(|status| status.to_string())
    }

    /// Series of a run: the number of points of each by name, and of all before they were thinned.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn metrics(&self, request: &GetMetricsRequest) -> Result<(HashMap<String, usize>, i64), String> {
        let answer = self.call(QUERY, "GetMetrics", request.encode_to_vec().into()).await;
        let answer = GetMetricsResponse::decode(answer.map_err(|status| status.to_string())?);
        let answer = answer.map_err(|error| error.to_string())?;
        let series = answer.run_metrics.into_iter().flat_map(|metrics| metrics.series);
        let counted = series.map(|series| (series.name, series.points.len())).collect();
        Ok((counted, answer.original_point_count))
    }
}

/// Sends batches of a run over gRPC.
pub struct Unary {
    client: Client,
    template: Template,
}

impl Unary {
    /// For each of these runs one; a few connections are shared.
    pub fn all(server: SocketAddr, runs: &[String]) -> Vec<Self> {
        const CONNECTIONS: usize = 8;
        let clients: Vec<Client> = (0..CONNECTIONS).map(|_| Client::new(server)).collect();
        let senders = runs.iter().enumerate().map(|(place, run)| Self {
            client: clients[place % CONNECTIONS].clone(),
            template: Template::protobuf(run, place as u64),
        });
        senders.collect()
    }

    fn send(&self, message: Bytes) -> Answer {
        let client = self.client.clone();
        Box::pin(async move { client.log(message, BATCH_POINTS).await })
    }
}

impl Sender for Unary {
    fn next(&mut self) -> Answer {
        let message = self.template.next_batch();
        self.send(message)
    }

    fn again(&mut self) -> Answer {
        self.send(self.template.same())
    }

    fn points(&self) -> usize {
        BATCH_POINTS
    }
}
