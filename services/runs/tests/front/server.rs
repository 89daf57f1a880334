//! A service in a folder of its own, and a client of each transport.

use std::num::NonZeroU32;

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kindex_runs::domain::{Clock, ProjectName, system_clock};
use kindex_runs::front::Cors;
use kindex_runs::keys::{Key, KeyStore, NewKey, Secret};
use kindex_runs::service::{Options, Service};
use kindex_runs::store::{Settings, Store};
use kindex_runs::validate::Oversized;
use kindex_runs::wire::MetricColumns;
use kindex_runs::wire::v1::ingest_service_client::IngestServiceClient;
use kindex_runs::wire::v1::query_service_client::QueryServiceClient;
use kindex_runs::wire::v1::{InitRunRequest, LogMetricsRequest, ProjectId, RunId};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::description::{self, Answer};

/// What gRPC goes over.
pub(crate) type Channel = Client<HttpConnector, tonic::body::Body>;

/// A service at work.
pub(crate) struct Server {
    pub(crate) folder: TempDir,
    pub(crate) grpc: String,
    pub(crate) rest: String,
    /// For what depends on time, where nothing goes on by itself.
    pub(crate) store: Store,
    stop: CancellationToken,
    served: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::open(tempfile::tempdir().expect("a folder"), change).await
    }

    /// In a folder in which a service was before.
    pub(crate) async fn open(folder: TempDir, change: impl FnOnce(&mut Options)) -> Self {
        let clock: Clock = system_clock();
        let mut options = Options {
            secrets: None,
            folder: folder.path().join("runs"),
            store: Settings::default(),
            oversized: Oversized::Cut,
            cors: Cors::default(),
            public_url: None,
            tls: None,
            connections: 1000,
            body_bytes: 64 * 1024 * 1024,
            body_rate_min: NonZeroU32::new(1024).expect("more than 0"),
            clock,
            registry: prometheus::Registry::new(),
            join: std::sync::Arc::new(|_, _| ()),
        };
        change(&mut options);
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let listeners = vec![bind().await, bind().await];
        let at = |listener: &TcpListener| format!("http://{}", listener.local_addr().expect("an address"));
        let (grpc, rest) = (at(&listeners[0]), at(&listeners[1]));
        let service = Service::open(options, listeners).await.expect("a service");
        let store = service.store().clone();
        let stop = CancellationToken::new();
        let served = tokio::spawn(service.serve(stop.clone()));
        Self {
            folder,
            grpc,
            rest,
            store,
            stop,
            served: Some(served),
        }
    }

    /// Ends it, and gives its folder.
    pub(crate) async fn stop(mut self) -> TempDir {
        self.stop.cancel();
        if let Some(served) = self.served.take() {
            served.await.expect("it ends");
        }
        std::mem::replace(&mut self.folder, tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn channel() -> Channel {
        Client::builder(TokioExecutor::new()).http2_only(true).build_http()
    }

    pub(crate) fn ingest(&self) -> IngestServiceClient<Channel> {
        IngestServiceClient::with_origin(Self::channel(), self.grpc.parse().expect("an address"))
    }

    pub(crate) fn query(&self) -> QueryServiceClient<Channel> {
        QueryServiceClient::with_origin(Self::channel(), self.grpc.parse().expect("an address"))
    }

    /// A request over REST.
    pub(crate) async fn ask(&self, request: http::request::Builder, body: impl Into<Bytes>) -> Answer {
        let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let sent: Bytes = body.into();
        let request = request.body(Full::new(sent.clone())).expect("a request");
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = client.request(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let answer = Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.expect("a body").to_bytes(),
        };
        description::check(&method, &path, &sent, &answer);
        answer
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder().method(method).uri(format!("{}{path}", self.rest))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(self.request("GET", path), Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = self
            .request("POST", path)
            .header(header::CONTENT_TYPE, "application/json");
        self.ask(request, body).await
    }

    /// A message as its bytes over gRPC: the status that comes back, with what it carries.
    pub(crate) async fn raw(&self, path: &str, headers: &[(&str, &str)], frame: Vec<u8>) -> (i32, HeaderMap) {
        let client: Client<HttpConnector, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        let mut request = Request::builder().method("POST").uri(format!("{}{path}", self.grpc));
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")]
            .iter()
            .chain(headers)
        {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(frame))).expect("a request");
        let response = client.request(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let collected = body.collect().await.expect("a body");
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let status = head.headers.get("grpc-status").or(trailers.get("grpc-status"));
        let status = status
            .and_then(|status| status.to_str().ok())
            .and_then(|status| status.parse().ok());
        (status.expect("a status"), head.headers)
    }

    /// A run of the project demo.
    pub(crate) async fn run(&self, id: &str) -> String {
        let request = InitRunRequest {
            project_id: project("demo"),
            run_id: Some(id.to_owned()),
            ..InitRunRequest::default()
        };
        let opened = self.ingest().init_run(request).await.expect("a run").into_inner();
        opened.run_id.expect("an id").value
    }

    /// Makes a key beside the server.
    pub(crate) async fn key(&self, project: Option<&str>, scopes: &str) -> String {
        let path = self.folder.path().join("runs/keys.db");
        let store = KeyStore::open(&path).await.expect("the keys");
        let secret = Secret::new(rand::random());
        let of = NewKey {
            user: "ana".to_owned(),
            project: project.map(ProjectName::new),
            scopes: scopes.parse().expect("scopes"),
            expires_at: None,
        };
        store
            .insert(&Key::new(of, &secret, rand::random(), 0))
            .await
            .expect("stored");
        secret.reveal().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn project(name: &str) -> Option<ProjectId> {
    Some(ProjectId { value: name.to_owned() })
}

pub(crate) fn run_id(id: &str) -> Option<RunId> {
    Some(RunId { value: id.to_owned() })
}

/// A batch of points.
pub(crate) fn batch(run: &str, batch_id: &str, points: &[(&str, i64, f64)]) -> LogMetricsRequest {
    let mut columns = MetricColumns::default();
    for (name, step, value) in points {
        columns.push(name, *step, *value, None);
    }
    LogMetricsRequest {
        run_id: run_id(run),
        metrics: Some(columns),
        batch_id: batch_id.to_owned(),
        sequence: None,
    }
}

/// A message with its prefix.
pub(crate) fn frame(message: &[u8], packed: bool) -> Vec<u8> {
    let mut frame = vec![u8::from(packed)];
    frame.extend(u32::try_from(message.len()).expect("it is small").to_be_bytes());
    frame.extend(message);
    frame
}

/// As clients pack it.
pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}
