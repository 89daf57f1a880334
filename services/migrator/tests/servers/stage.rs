//! A control plane in parts, and clients of its servers.

use std::sync::OnceLock;

use kindex_harness::controlplane::ControlPlane;
use kindex_harness::controlplane::apart::{ApiServer, Etcd};
use kindex_harness::require::require;
use kindex_serve::listen::{Answer, Listener, Tls};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An etcd with one API server at first.
pub(super) struct Plane {
    /// Ends before its etcd.
    pub(super) server: ApiServer,
    pub(super) etcd: Etcd,
}

impl Plane {
    /// One of the test's own, whose server has these flags; `None` without a control plane.
    pub(super) fn start(flags: &[&str]) -> Option<Self> {
        require("controlplane", ControlPlane::installed()).then(|| {
            let etcd = Etcd::start();
            let server = ApiServer::start(&etcd, flags);
            Self { server, etcd }
        })
    }

    /// The one of the tests that leave its server alone, each with an API group of its own.
    pub(super) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Plane> = OnceLock::new();
        // Lists come from etcd page by page, so that a compaction cuts them off.
        let flags = ["--feature-gates=ListFromCacheSnapshot=false"];
        require("controlplane", ControlPlane::installed())
            .then(|| SHARED.get_or_init(|| Self::start(&flags).expect("it is installed")))
    }
}

/// A client of a server, at its own port or at that of a proxy before it.
pub(super) async fn client(server: &ApiServer, port: u16) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a configuration");
    config.cluster_url = format!("https://127.0.0.1:{port}").parse().expect("an address");
    Client::try_from(config).expect("a client")
}

/// A webhook, until it is dropped.
pub(super) struct Webhook {
    port: u16,
    authority: Vec<u8>,
    _stop: DropGuard,
}

impl Webhook {
    /// Serves with the certificate of etcd.
    pub(super) async fn start(plane: &Plane, answer: impl Answer) -> Self {
        let [certificate, key, authority] = plane.etcd.certificate();
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let listener = Listener {
            tls: Some(Tls::read(&certificate, &key, None).expect("a certificate")),
            ..Listener::new(socket)
        };
        let stop = CancellationToken::new();
        tokio::spawn(listener.serve(answer, stop.clone()));
        Self {
            port,
            authority: std::fs::read(authority).expect("there"),
            _stop: stop.drop_guard(),
        }
    }

    /// How API servers find it.
    pub(super) fn client_config(&self) -> Value {
        json!({
            "url": format!("https://127.0.0.1:{}/", self.port),
            "caBundle": k8s_openapi::ByteString(self.authority.clone()),
        })
    }
}
