//! How traces reach the collector: one HTTP request at a time, on a small runtime of its
//! own, so that sending neither needs nor disturbs the runtime that does the work.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use tokio::runtime::Runtime;

use crate::fetch::{Connector, connector};

/// Longest exchange with the collector; the protocol's default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A collector's answer says how many spans it took.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Sender {
    runtime: Runtime,
    client: Client<Connector, Full<Bytes>>,
}

impl Sender {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            // Between two requests nobody would notice that the collector has hung up.
            client: Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build(connector()),
        })
    }
}

#[async_trait]
impl HttpClient for Sender {
    /// Called by the exporter's own thread, which has nothing else to do.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let response = self.client.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        self.runtime
            .block_on(async { tokio::time::timeout(TIMEOUT, exchange).await? })
    }
}
