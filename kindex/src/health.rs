//! /healthz and /readyz over HTTP: whether the process lives, and whether it does
//! its work, with the reasons where it does not.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, CommandResult};

/// What the endpoints ask.
pub(crate) trait Readiness: Send + Sync + 'static {
    /// Why the process does not do its work now; empty when it does.
    fn reasons(&self) -> Vec<String>;
}

/// Binds the address, so that a port in use is an error at start.
pub(crate) async fn bind(address: SocketAddr, flag: &str) -> CommandResult<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        CommandError::usage(format_args!("cannot listen on {address}: {error}")).hint(format_args!(
            "another kindex may be running; choose a port with {flag} 127.0.0.1:0"
        ))
    })
}

/// Serves until cancelled.
pub(crate) async fn serve(listener: TcpListener, readiness: Arc<dyn Readiness>, stop: CancellationToken) {
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .with_state(readiness);
    let served = axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "The health endpoint has stopped");
    }
}

async fn readyz(State(readiness): State<Arc<dyn Readiness>>) -> (StatusCode, String) {
    let reasons = readiness.reasons();
    if reasons.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n")
}
