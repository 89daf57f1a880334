//! The service as a whole: its folder, its store, and the addresses at which it answers.

mod folder;

mod gauges;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kindex_serve::BodyPace;
use kindex_serve::listen::{ConnectionLimits, Incoming, Listener, Tls};
use kindex_serve::trace::Join;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifacts::{Addresses, Artifacts, Files};
use crate::domain::Clock;
use crate::front::{Cors, Exposure, Front, Parts};
use crate::grpc::{self, GrpcError, Streams};
use crate::keys::{KeyRing, KeyStore, KeyStoreError};
use crate::metrics::Metrics;
use crate::operations::Operations;
use crate::read::Reader;
use crate::rest;
use crate::secrets::SecretsError;
use crate::store::{Settings, Store, StoreError};
use crate::validate::Oversized;

pub use folder::Folder;

use gauges::StoreGauges;

/// How often the files of certificate and key are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Its folder.
    #[error("{path}: {source}")]
    Folder {
        /// Where.
        path: PathBuf,
        /// As the system says it.
        #[source]
        source: std::io::Error,
    },
    /// The secrets of resume tokens and of addresses.
    #[error("{path} {source}")]
    Secrets {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SecretsError,
    },
    /// The API keys.
    #[error(transparent)]
    Keys(#[from] KeyStoreError),
    /// The runs.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was compiled in.
    #[error(transparent)]
    Grpc(#[from] GrpcError),
    /// Other machines would reach a service that asks for no key.
    #[error("{0}: other machines could reach the service, and no API key was made yet")]
    Open(SocketAddr),
}

/// How the service is run.
pub struct Options {
    /// Where all of it is kept.
    pub folder: PathBuf,
    /// The file of the secrets, where somebody keeps it; else it is in the folder, with a secret that is made.
    pub secrets: Option<PathBuf>,
    /// How the store is run.
    pub store: Settings,
    /// What becomes of a batch that is over its limits.
    pub oversized: Oversized,
    /// The pages that may ask.
    pub cors: Cors,
    /// Where clients reach REST, for the addresses of artifacts; the address that it listens at if absent.
    pub public_url: Option<String>,
    /// The keys of both listeners; plain text without.
    pub tls: Option<Tls>,
    /// Connections of each listener.
    pub connections: usize,
    /// Bytes of the bodies of all requests in flight.
    pub body_bytes: usize,
    /// How fast bodies have to come, in bytes a second.
    pub body_rate_min: NonZeroU32,
    /// The time.
    pub clock: Clock,
    /// Where it is counted.
    pub registry: prometheus::Registry,
    /// Makes spans of requests parts of their callers' traces.
    pub join: Join,
}

/// A service that has opened its files and has its addresses.
pub struct Service {
    store: Store,
    keys: Arc<KeyRing>,
    artifacts: Arc<Artifacts>,
    front: Arc<Front>,
    health: grpc::Health,
    metrics: Metrics,
    listeners: Vec<TcpListener>,
    tls: Option<Tls>,
    limits: ConnectionLimits,
}

impl Service {
    /// Opens everything. Each of the listeners takes both gRPC and REST; the last one is shown in addresses.
    ///
    /// # Errors
    /// Files that cannot be used, and an address that other machines reach where no key was made.
    pub async fn open(options: Options, listeners: Vec<TcpListener>) -> Result<Self, ServiceError> {
        let folder = Folder::open(&options.folder)?;
        let keys = Arc::new(KeyRing::new(KeyStore::open(&folder.keys()).await?).await?);
        refuse_open_network(&keys, &listeners)?;
        let secrets = folder.secrets(options.secrets)?;
        let store = Store::open(folder.path(), options.store, options.clock.clone()).await?;
        let failed = |path: &Path, source| ServiceError::Folder {
            path: path.to_owned(),
            source,
        };
        let files = Files::open(&folder.artifacts()).map_err(|source| failed(&folder.artifacts(), source))?;
        let base = match (options.public_url, listeners.last().map(TcpListener::local_addr)) {
            (Some(url), _) => url,
            (None, Some(Ok(address))) if options.tls.is_some() => format!("https://{address}"),
            (None, Some(Ok(address))) => format!("http://{address}"),
            (None, _) => String::new(),
        };
        let artifacts = Arc::new(Artifacts::new(
            store.clone(),
            files,
            Addresses::new(&base, secrets.clone()),
        ));
        let metrics = Metrics::new(&options.registry);
        let gauges = options.registry.register(Box::new(StoreGauges::new(store.clone())));
        gauges.expect("one runs service a registry");
        let operations = Arc::new(Operations {
            store: Arc::new(store.clone()),
            artifacts: artifacts.clone(),
            reader: Arc::new(Reader::new(store.clone())),
            secrets,
            clock: options.clock.clone(),
            oversized: options.oversized,
            metrics: metrics.clone(),
        });
        let pace = BodyPace {
            bytes_per_second: options.body_rate_min,
            ..BodyPace::default()
        };
        let streams = Streams::new(keys.clone(), options.clock.clone());
        let (grpc, health) = grpc::router(operations.clone(), streams).await?;
        let front = Front::new(Parts {
            keys: keys.clone(),
            clock: options.clock,
            cors: options.cors,
            body_bytes: options.body_bytes,
            pace,
            grpc,
            rest: rest::router(operations),
            metrics: metrics.clone(),
            join: options.join,
        });
        Ok(Self {
            store,
            keys,
            artifacts,
            front: Arc::new(front),
            health,
            metrics,
            listeners,
            tls: options.tls,
            limits: ConnectionLimits {
                most: options.connections,
                body: pace,
                ..ConnectionLimits::default()
            },
        })
    }

    /// The store, for its health and its statistics.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Serves until stopped. Then what is in flight ends, and the store is closed.
    pub async fn serve(self, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        tasks.spawn(self.keys.clone().follow(stop.clone()));
        tasks.spawn(self.health.follow(self.store.health(), stop.clone()));
        let artifacts = self.artifacts.clone();
        let swept = stop.clone();
        tasks.spawn(async move { artifacts.as_ref().clone().keep_swept(swept).await });
        if let Some(tls) = &self.tls {
            tasks.spawn(tls.clone().follow(LOOK_EVERY, stop.clone()));
        }
        for socket in self.listeners {
            let exposure = exposure(&socket);
            let front = self.front.clone();
            let listener = Listener {
                tls: self.tls.clone(),
                limits: self.limits,
                meter: Arc::new(self.metrics.clone()),
                ..Listener::new(socket)
            };
            let answer = move |request: http::Request<Incoming>| {
                let front = front.clone();
                async move { front.answer(exposure, request).await }
            };
            tasks.spawn(listener.serve(answer, stop.clone()));
        }
        tasks.close();
        tasks.wait().await;
        self.store.close().await;
    }
}

/// Whoever cannot say where it listens, listens to all.
fn exposure(socket: &TcpListener) -> Exposure {
    match socket.local_addr() {
        Ok(address) if address.ip().is_loopback() => Exposure::Loopback,
        _ => Exposure::Network,
    }
}

fn refuse_open_network(keys: &KeyRing, listeners: &[TcpListener]) -> Result<(), ServiceError> {
    if !keys.is_open() {
        return Ok(());
    }
    let open = listeners.iter().find(|socket| exposure(socket) == Exposure::Network);
    match open.map(TcpListener::local_addr) {
        Some(Ok(address)) => Err(ServiceError::Open(address)),
        Some(Err(_)) | None => Ok(()),
    }
}
