//! Listening: connections within bounds, until told to stop.

mod connection;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use tls::{Tls, TlsError};

/// How long connections may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// Longest wait for a client to agree on keys.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What a server bears.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; who comes later waits until one ends.
    pub connections: usize,
    /// A connection without a new request for so long is closed, once what is under way on it has ended; also one
    /// whose request does not come to an end.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            idle: Duration::from_secs(120),
        }
    }
}

/// Serves until cancelled, then lets what is under way end. Without keys it serves plain HTTP.
///
/// # Errors
/// A listener that has no address.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    limits: Limits,
    stop: CancellationToken,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = places.clone().acquire_owned() => place.map_err(io::Error::other)?,
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: connections that end will free some.
                    tracing::warn!(%error, "Cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        // Without this, small events wait for acknowledgements; a socket that refuses still works.
        let _slower = stream.set_nodelay(true);
        let (router, idle, stop) = (router.clone(), limits.idle, stop.clone());
        let acceptor = tls.as_ref().map(Tls::acceptor);
        connections.spawn(async move {
            match acceptor {
                None => connection::serve(stream, router, idle, stop).await,
                Some(acceptor) => match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => connection::serve(stream, router, idle, stop).await,
                    Ok(Err(error)) => tracing::debug!(%error, "A client does not agree on keys"),
                    Err(_) => tracing::debug!("A client takes too long to agree on keys"),
                },
            }
            drop(place);
        });
    }
    connections.close();
    // Whoever does not end in time is cut off.
    let _late = tokio::time::timeout(GRACE, connections.wait()).await;
    Ok(())
}
