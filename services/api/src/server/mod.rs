//! Listening: connections within bounds, until told to stop.

mod clients;
mod streams;

mod lane;

mod guard;

mod admission;

mod connection;
mod front_proxy;
mod tls;

use std::io;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router, middleware};
use kindex_serve::BodyPace;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::figures::{Figures, OneMore};
use crate::rest::Peer;
use admission::{Admission, admit};

pub use front_proxy::{FrontProxy, FrontProxyError};
pub use guard::{Guard, Who};
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
    /// A new connection whose first request takes longer is closed.
    pub first: Duration,
    /// A client that takes nothing of its answer for so long is cut off.
    pub stalled: Duration,
    /// Requests at once that change nothing; others wait a while, and are told to try again. A request counts once all
    /// of it is there, and a watch until it has begun.
    pub reads: usize,
    /// Requests at once that change something.
    pub changes: usize,
    /// The same of each sort that has places of its own: health, leases.
    pub aside: usize,
    /// How long a request waits for its place.
    pub patience: Duration,
    /// How fast bodies have to come.
    pub body: BodyPace,
    /// Bytes of the bodies of all requests under way together; of leases as many beside these.
    pub body_bytes: usize,
    /// Requests that one client may make in a second: whoever has one token, or one address without any.
    pub requests_per_second: Option<NonZeroU32>,
}

/// Requests at once are those of kube-apiserver (`--max-requests-inflight`, `--max-mutating-requests-inflight`).
/// <https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>
impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            idle: Duration::from_secs(120),
            first: Duration::from_secs(10),
            stalled: Duration::from_secs(30),
            reads: 400,
            changes: 200,
            aside: 50,
            patience: Duration::from_secs(10),
            body: BodyPace::default(),
            body_bytes: 128 * 1024 * 1024,
            requests_per_second: None,
        }
    }
}

/// Serves until cancelled, then lets what is under way end. Without keys it serves plain HTTP. Who asks is found out by
/// the guard.
///
/// # Errors
/// A listener that has no address.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    guard: Arc<dyn Guard>,
    tls: Option<Tls>,
    limits: Limits,
    figures: Figures,
    stop: CancellationToken,
) -> io::Result<()> {
    let door = Arc::new(Admission::new(&limits, guard, figures.clone()));
    let router = router.layer(middleware::from_fn_with_state(door, admit));
    let places = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = places.clone().acquire_owned() => place.map_err(io::Error::other)?,
        };
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: connections that end will free some.
                    tracing::warn!(%error, "Cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let one = OneMore::of(&figures.connections);
        let host = Host {
            router: router.clone(),
            tls: tls.clone(),
            limits: limits.clone(),
            stop: stop.clone(),
        };
        connections.spawn(async move {
            host.receive(stream, peer.ip()).await;
            drop((place, one));
        });
    }
    connections.close();
    // Whoever does not end in time is cut off.
    let _late = tokio::time::timeout(GRACE, connections.wait()).await;
    Ok(())
}

/// What a connection is served with.
struct Host {
    router: Router,
    tls: Option<Tls>,
    limits: Limits,
    stop: CancellationToken,
}

impl Host {
    /// Serves one connection to its end.
    async fn receive(self, stream: TcpStream, address: IpAddr) {
        // Without this, small events wait for acknowledgements; a socket that refuses still works.
        let _slower = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.stalled));
        let stream = Box::pin(stream);
        let Some(tls) = &self.tls else {
            return self.converse(stream, address, None).await;
        };
        let (acceptor, front_proxy) = tls.acceptor();
        match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                let certificates = stream.get_ref().1.peer_certificates();
                let front_proxy = front_proxy.filter(|front_proxy| front_proxy.is_shown(certificates));
                self.converse(stream, address, front_proxy).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "A client does not agree on keys"),
            Err(_) => tracing::debug!("A client takes too long to agree on keys"),
        }
    }

    /// Serves a connection, of the front proxy for as long as its word counts.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        address: IpAddr,
        front_proxy: Option<FrontProxy>,
    ) {
        let is_front_proxy = front_proxy.is_some();
        let router = self.router.clone().layer(Extension(Peer {
            address,
            is_front_proxy,
        }));
        let stop = self.stop.child_token();
        let replaced = async {
            if let Some(front_proxy) = front_proxy {
                front_proxy.replaced.cancelled().await;
                stop.cancel();
            }
        };
        let served = connection::serve(stream, router, &self.limits, &stop);
        let mut served = std::pin::pin!(served);
        tokio::select! {
            () = &mut served => {}
            () = replaced => served.await,
        }
    }
}
