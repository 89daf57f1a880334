//! The runs service in this process, at an address that stays, and in a folder that outlives it.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kindex_runs::domain::{MetricName, Run, RunId, Status, system_clock};
use kindex_runs::front::Cors;
use kindex_runs::lifecycle::SilenceRules;
use kindex_runs::service::{Options, Service};
use kindex_runs::store::{SeriesRequest, Settings, Store};
use kindex_runs::validate::Oversized;
use kindex_serve::listen::Tls;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket takes it");
    socket.bind(address).expect("a free port");
    socket
}

struct AtWork {
    store: Store,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

pub(crate) struct Server {
    runtime: Runtime,
    folder: TempDir,
    port: SocketAddr,
    /// Bound, so that the port stays its own, and never listening.
    _place: TcpSocket,
    silence: SilenceRules,
    tls: Option<Tls>,
    at_work: Option<AtWork>,
}

impl Server {
    /// A place for a service, which is away.
    pub(crate) fn new() -> Self {
        Self::with(SilenceRules::default())
    }

    pub(crate) fn with(silence: SilenceRules) -> Self {
        let place = bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        Self {
            runtime: Runtime::new().expect("a runtime"),
            folder: tempfile::tempdir().expect("a folder"),
            port: place.local_addr().expect("an address"),
            _place: place,
            silence,
            tls: None,
            at_work: None,
        }
    }

    /// With this certificate of `127.0.0.1`, which is its own authority.
    pub(crate) fn secured(name: &str) -> Self {
        let (certificate, key) = (pem(&format!("{name}.crt")), pem(&format!("{name}.key")));
        let mut server = Self::new();
        server.tls = Some(Tls::read(&certificate, &key, None).expect("a certificate and its key"));
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.port)
    }

    pub(crate) fn start(&mut self) {
        let options = Options {
            folder: self.folder.path().join("runs"),
            secrets: None,
            store: Settings {
                silence: self.silence,
                ..Settings::default()
            },
            oversized: Oversized::Cut,
            cors: Cors::default(),
            public_url: None,
            tls: self.tls.clone(),
            connections: 100,
            body_bytes: 32 * 1024 * 1024,
            body_rate_min: NonZeroU32::new(1024).expect("more than 0"),
            clock: system_clock(),
            registry: prometheus::Registry::new(),
            join: Arc::new(|_, _| ()),
        };
        let port = self.port;
        self.at_work = Some(self.runtime.block_on(async {
            let listener = bind(port).listen(128).expect("its port");
            let service = Service::open(options, vec![listener]).await.expect("a service");
            let (store, stop) = (service.store().clone(), CancellationToken::new());
            let served = tokio::spawn(service.serve(stop.clone()));
            AtWork { store, stop, served }
        }));
    }

    /// Ends it with what is in flight.
    pub(crate) fn stop(&mut self) {
        if let Some(at_work) = self.at_work.take() {
            at_work.stop.cancel();
            self.runtime.block_on(at_work.served).expect("it ends");
        }
    }

    fn store(&self) -> &Store {
        &self.at_work.as_ref().expect("it is at work").store
    }

    pub(crate) fn run(&self, id: &str) -> Run {
        let run = self.runtime.block_on(self.store().run(&RunId::new(id)));
        run.expect("readable").expect("there is such a run")
    }

    pub(crate) fn knows(&self, id: &str) -> bool {
        let run = self.runtime.block_on(self.store().run(&RunId::new(id)));
        run.expect("readable").is_some()
    }

    /// Waits until a run has this state.
    pub(crate) fn wait_for(&self, id: &str, status: Status) {
        let (store, run) = (self.store(), RunId::new(id));
        let reached = async {
            let mut looks = tokio::time::interval(Duration::from_millis(20));
            while store
                .run(&run)
                .await
                .expect("readable")
                .is_none_or(|run| run.status != status)
            {
                looks.tick().await;
            }
        };
        let waited = async { tokio::time::timeout(Duration::from_secs(60), reached).await };
        self.runtime.block_on(waited).expect("the state comes");
    }

    /// How many points the ledger has of a run: what is stored twice counts twice.
    pub(crate) fn accepted(&self, id: &str) -> u64 {
        self.run(id).points
    }

    pub(crate) fn series(&self, id: &str, name: &str) -> Vec<(i64, f64)> {
        let request = SeriesRequest {
            names: vec![MetricName::new(name)],
            ..SeriesRequest::default()
        };
        let series = self.runtime.block_on(self.store().series(&RunId::new(id), request));
        let series = series.expect("readable").expect("there is such a run");
        let points = series.into_iter().flat_map(|named| {
            let values = named.series.bits.into_iter().map(f64::from_bits);
            named.series.steps.into_iter().zip(values)
        });
        points.collect()
    }
}

/// A certificate of the tests, or its key.
pub(crate) fn pem(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/tests/api/tls")
        .join(file)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
