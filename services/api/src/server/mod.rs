//! Listening: which requests of whom are let in to the router, within limits.

mod request_class;

mod authentication;

mod admission;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use kindex_serve::listen::{ConnectionLimits, Incoming, Listener, Tls};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::metrics::Metrics;
use admission::{ApiAdmission, admit};

pub use authentication::{Authenticator, CallerIdentity};

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections, and how fast what comes on them has to come.
    pub connections: ConnectionLimits,
    /// Requests at once that change nothing; others wait a while, and are told to try again. A request counts once all
    /// of it is there, and a watch until it has begun.
    pub reads: usize,
    /// Requests at once that change something.
    pub changes: usize,
    /// The same of each class that has places of its own: health, leases.
    pub aside: usize,
    /// How long a request waits for its place.
    pub grace: Duration,
    /// Bytes of the bodies of all requests in flight together; of leases as many beside these.
    pub body_bytes: usize,
    /// Requests that one client may make in a second: whoever has one token, or one address without any.
    pub requests_per_second: Option<NonZeroU32>,
}

/// Requests at once are those of kube-apiserver (`--max-requests-inflight`, `--max-mutating-requests-inflight`).
/// <https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>
impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            reads: 400,
            changes: 200,
            aside: 50,
            grace: Duration::from_secs(10),
            body_bytes: 128 * 1024 * 1024,
            requests_per_second: None,
        }
    }
}

/// Serves until cancelled, then lets what is in flight end. Without keys it serves plain HTTP. Who asks is found out by
/// the authenticator.
pub async fn serve(
    socket: TcpListener,
    router: Router,
    authenticator: Arc<dyn Authenticator>,
    tls: Option<Tls>,
    limits: Limits,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let admission = Arc::new(ApiAdmission::new(&limits, authenticator.clone(), metrics.clone()));
    let router = router.layer(middleware::from_fn_with_state(admission, admit));
    let listener = Listener {
        tls,
        limits: limits.connections,
        meter: Arc::new(metrics),
        ..Listener::new(socket)
    };
    let answer = move |request: http::Request<Incoming>| {
        let answer = router.clone().oneshot(request);
        async move { answer.await.unwrap_or_else(|never| match never {}) }
    };
    let ending = async {
        stop.cancelled().await;
        authenticator.stop();
    };
    tokio::join!(listener.serve(answer, stop.clone()), ending);
}
