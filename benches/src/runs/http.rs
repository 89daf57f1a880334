//! A client over HTTP/1.1 with kept connections, and the senders of JSON batches.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as Legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::load::{Answer, Refused, Sender};
use super::template::{BATCH_POINTS, Template};

/// Clones share connections.
#[derive(Clone)]
pub struct Client {
    http: Legacy<HttpConnector, Full<Bytes>>,
    server: SocketAddr,
}

impl Client {
    /// Of a server, which is reached with the first call.
    pub fn new(server: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            http: Legacy::builder(TokioExecutor::new()).build(connector),
            server,
        }
    }

    /// Sends a body, or asks without one; the status and the answer.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn call(&self, path: &str, body: Option<Bytes>) -> Result<(StatusCode, Bytes), String> {
        let request = Request::builder().uri(format!("http://{}{path}", self.server));
        let request = match body {
            Some(body) => request
                .method("POST")
                .header("content-type", "application/json")
                .body(Full::new(body)),
            None => request.body(Full::default()),
        };
        let request = request.map_err(|error| error.to_string())?;
        let answer = self.http.request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }

    /// Sends JSON, or asks without any; the answer, which has to be a success.
    ///
    /// # Errors
    /// Where there is none.
    pub async fn json(&self, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let body = body.map(|body| Bytes::from(body.to_string()));
        let (status, answer) = self.call(path, body).await?;
        if !status.is_success() {
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&answer)));
        }
        serde_json::from_slice(&answer).map_err(|error| format!("{path}: {error}"))
    }
}

/// Sends batches of a run as JSON.
pub struct Json {
    client: Client,
    template: Template,
}

impl Json {
    /// For each of these runs one.
    pub fn all(server: SocketAddr, runs: &[String]) -> Vec<Self> {
        let client = Client::new(server);
        let senders = runs.iter().enumerate().map(|(place, run)| Self {
            client: client.clone(),
            template: Template::json(run, place as u64),
        });
        senders.collect()
    }

    fn send(&self, body: Bytes) -> Answer {
        let client = self.client.clone();
        Box::pin(async move {
            let answer = client.call("/api/v1/ingest/batch", Some(body)).await;
            let (status, answer) = answer.map_err(Refused::Failed)?;
            match status {
                StatusCode::TOO_MANY_REQUESTS => Err(Refused::Full),
                status if status.is_success() => Ok(()),
                status => Err(Refused::Failed(format!(
                    "{status}: {}",
                    String::from_utf8_lossy(&answer)
                ))),
            }
        })
    }
}

impl Sender for Json {
    fn next(&mut self) -> Answer {
        let body = self.template.next_batch();
        self.send(body)
    }

    fn again(&mut self) -> Answer {
        self.send(self.template.same())
    }

    fn points(&self) -> usize {
        BATCH_POINTS
    }
}
