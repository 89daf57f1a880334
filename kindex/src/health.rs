//! /healthz, /readyz and /metrics over HTTP: whether the process lives, whether it does
//! its work, with the reasons where it does not, and its figures.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Registry, TEXT_FORMAT};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, CommandResult};
use crate::exposition::Exposition;

/// What the endpoints ask.
pub(crate) trait Health: Send + Sync + 'static {
    /// Why the process does not do its work now; empty when it does.
    fn not_ready(&self) -> Vec<String>;

    /// What is worth knowing of a process that does its work.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it counts; the same registry at every call.
    fn figures(&self) -> Registry;
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
pub(crate) async fn serve(listener: TcpListener, health: Arc<dyn Health>, stop: CancellationToken) {
    let served = axum::serve(listener, router(health))
        .with_graceful_shutdown(stop.cancelled_owned())
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "The health endpoint has stopped");
    }
}

/// What the endpoints share.
struct Served {
    health: Arc<dyn Health>,
    exposition: Exposition,
}

fn router(health: Arc<dyn Health>) -> Router {
    let exposition = Exposition::new(health.figures());
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(Served { health, exposition }))
}

async fn readyz(State(served): State<Arc<Served>>) -> (StatusCode, String) {
    let reasons = served.health.not_ready();
    if reasons.is_empty() {
        let lines = std::iter::once("ok".to_owned()).chain(served.health.notes());
        return (StatusCode::OK, lines.map(|line| line + "\n").collect());
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n")
}

async fn metrics(State(served): State<Arc<Served>>) -> Response {
    let ready = served.health.not_ready().is_empty();
    match served.exposition.text(ready) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
