//! /healthz, /readyz and /metrics over HTTP: whether the process lives, whether it does
//! its work, with the reasons where it does not, and its metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kindex_commands::error::{CommandError, CommandResult};
use kindex_serve::listen::{Incoming, Listener};
use prometheus::{Registry, TEXT_FORMAT};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::exposition::Exposition;

/// What the endpoints ask of a part of the process.
pub(crate) trait Health: Send + Sync + 'static {
    /// Why it does not do its work now; empty when it does.
    fn not_ready(&self) -> Vec<String>;

    /// What is worth knowing of it when it does its work.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Binds the address, so that a port in use is an error at start.
pub(crate) async fn bind(address: SocketAddr, flag: &str) -> CommandResult<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        CommandError::usage(format_args!("cannot listen on {address}: {error}")).hint(format_args!(
            "another kindex may be running; choose a port with {flag} 127.0.0.1:0"
        ))
    })
}

/// The health of each part of a process.
pub(crate) type Parts = Vec<Arc<dyn Health>>;

/// Serves until cancelled, within the limits of every listener. The process does its work where each part does its own.
pub(crate) async fn serve(socket: TcpListener, parts: Parts, registry: Registry, stop: CancellationToken) {
    let router = router(parts, registry);
    let answer = move |request: Request<Incoming>| {
        let answered = router.clone().oneshot(request);
        async move { answered.await.unwrap_or_else(|never| match never {}) }
    };
    Listener::new(socket).serve(answer, stop).await;
}

/// What the endpoints share.
struct Served {
    parts: Parts,
    exposition: Exposition,
}

impl Served {
    fn not_ready(&self) -> Vec<String> {
        self.parts.iter().flat_map(|part| part.not_ready()).collect()
    }
}

fn router(parts: Parts, registry: Registry) -> Router {
    let exposition = Exposition::new(registry);
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(Served { parts, exposition }))
}

async fn readyz(State(served): State<Arc<Served>>) -> (StatusCode, String) {
    let reasons = served.not_ready();
    if reasons.is_empty() {
        let notes = served.parts.iter().flat_map(|part| part.notes());
        let lines = std::iter::once("ok".to_owned()).chain(notes);
        return (StatusCode::OK, lines.map(|line| line + "\n").collect());
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n")
}

async fn metrics(State(served): State<Arc<Served>>) -> Response {
    let ready = served.not_ready().is_empty();
    match served.exposition.text(ready) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Part {
        reasons: &'static [&'static str],
        note: &'static str,
    }

    impl Health for Part {
        fn not_ready(&self) -> Vec<String> {
            self.reasons.iter().map(|reason| (*reason).to_owned()).collect()
        }

        fn notes(&self) -> Vec<String> {
            vec![self.note.to_owned()]
        }
    }

    async fn readiness(parts: Vec<Part>) -> (StatusCode, String) {
        let parts = parts.into_iter().map(|part| Arc::new(part) as Arc<dyn Health>);
        let served = Served {
            parts: parts.collect(),
            exposition: Exposition::new(Registry::new()),
        };
        readyz(State(Arc::new(served))).await
    }

    #[tokio::test]
    async fn a_process_is_ready_when_each_of_its_parts_is() {
        let part = |reasons, note| Part { reasons, note };
        let ready = readiness(vec![part(&[], "one"), part(&[], "two")]).await;
        assert_eq!(ready, (StatusCode::OK, "ok\none\ntwo\n".to_owned()));
        let not_ready = readiness(vec![part(&["a"], ""), part(&[], ""), part(&["b"], "")]).await;
        assert_eq!(not_ready, (StatusCode::SERVICE_UNAVAILABLE, "a\nb\n".to_owned()));
    }
}
