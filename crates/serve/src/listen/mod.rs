//! Listening: connections in HTTP/1.1 and HTTP/2, within limits, in plain text or over TLS, until told to stop. What
//! answers is a function from requests to responses; knows nothing of routers.

mod streams;

mod connection;

mod front_proxy;

mod tls;

#[cfg(test)]
mod tests;

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use crate::linger::TrackedBody;
use crate::pace::BodyPace;

pub use front_proxy::{FrontProxy, FrontProxyError};
pub use tls::{Tls, TlsError};

/// Longest wait for a client to agree on keys.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Until the next attempt to accept a connection where one failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Connections at once; who comes later waits until one ends.
    pub most: usize,
    /// A new connection whose first request takes longer is closed.
    pub first: Duration,
    /// A connection without a new request for so long is closed, once what is in flight on it has ended; also one
    /// whose request does not come to an end.
    pub idle: Duration,
    /// A client that takes nothing of its answer for so long is cut off.
    pub stalled: Duration,
    /// How fast bodies have to come, also those that are thrown away.
    pub body: BodyPace,
    /// How long connections may take to end when the server stops.
    pub grace: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: 16_384,
            first: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            stalled: Duration::from_secs(30),
            body: BodyPace::default(),
            grace: Duration::from_secs(5),
        }
    }
}

/// Who is at the other end of the connection on which a request came: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether it has shown the certificate of the front proxy.
    pub is_front_proxy: bool,
}

/// Counts connections.
pub trait Meter: Send + Sync + 'static {
    /// One begins.
    fn opened(&self);
    /// One has ended.
    fn closed(&self);
}

/// Counts nothing.
impl Meter for () {
    fn opened(&self) {}

    fn closed(&self) {}
}

/// What answers the requests of a listener: a function.
pub trait Answer: Clone + Send + Sync + 'static {
    /// The body of a response.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static;

    /// Answers one request, which has its [`Peer`] as an extension. A response with
    /// [`AbortToken`](crate::abort::AbortToken) as an extension is broken off when that is cancelled.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The body of a request, of which nothing is read yet.
pub type Incoming = TrackedBody<hyper::body::Incoming>;

impl<A, F, B> Answer for A
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    type Body = B;

    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<B>> + Send {
        self(request)
    }
}

/// An address on which connections are accepted, and how they are served.
pub struct Listener {
    /// The address.
    pub socket: TcpListener,
    /// The keys; plain HTTP without.
    pub tls: Option<Tls>,
    /// Limits of its connections.
    pub limits: ConnectionLimits,
    /// What counts them.
    pub meter: Arc<dyn Meter>,
}

impl Listener {
    /// Plain HTTP within the usual limits, counted by nobody.
    pub fn new(socket: TcpListener) -> Self {
        Self {
            socket,
            tls: None,
            limits: ConnectionLimits::default(),
            meter: Arc::new(()),
        }
    }

    /// Serves until cancelled. Then it accepts no more, and what is in flight has a few seconds to end.
    pub async fn serve(self, answer: impl Answer, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(self.limits.most));
        let mut connections = JoinSet::new();
        loop {
            let (place, stream, peer) = tokio::select! {
                () = stop.cancelled() => break,
                // What has ended is forgotten as it ends.
                Some(_) = connections.join_next() => continue,
                accepted = accept(&self.socket, &places) => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of file descriptors, most likely: connections that end will free some.
                        tracing::warn!(%error, "Cannot accept a connection");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                        continue;
                    }
                },
            };
            let host = Host {
                answer: answer.clone(),
                tls: self.tls.clone(),
                limits: self.limits,
                stop: stop.clone(),
            };
            let open = OpenConnection::of(&self.meter);
            connections.spawn(async move {
                host.receive(stream, peer.ip()).await;
                drop((place, open));
            });
        }
        // Whoever does not end in time is cut off.
        let ended = async { while connections.join_next().await.is_some() {} };
        let _late = tokio::time::timeout(self.limits.grace, ended).await;
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    socket: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((place, stream, peer))
}

/// An open connection, counted until it is dropped.
struct OpenConnection(Arc<dyn Meter>);

impl OpenConnection {
    fn of(meter: &Arc<dyn Meter>) -> Self {
        meter.opened();
        Self(meter.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// What a connection is served with.
struct Host<A> {
    answer: A,
    tls: Option<Tls>,
    limits: ConnectionLimits,
    stop: CancellationToken,
}

impl<A: Answer> Host<A> {
    /// Serves one connection to its end.
    async fn receive(self, stream: TcpStream, address: IpAddr) {
        // Without this, small events wait for acknowledgements; a socket that refuses still works.
        let _slower = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.stalled));
        let stream = Box::pin(stream);
        let Some(tls) = self.tls.clone() else {
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
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        address: IpAddr,
        front_proxy: Option<FrontProxy>,
    ) {
        let peer = Peer {
            address,
            is_front_proxy: front_proxy.is_some(),
        };
        let stop = self.stop.child_token();
        let replaced = async {
            if let Some(front_proxy) = front_proxy {
                front_proxy.replaced.cancelled().await;
                stop.cancel();
            }
        };
        let served = connection::serve(stream, self.answer, peer, self.limits, &stop);
        let mut served = std::pin::pin!(served);
        tokio::select! {
            () = &mut served => {}
            () = replaced => served.await,
        }
    }
}
