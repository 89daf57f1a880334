//! A proxy between a client and a server on this machine that makes the network between them
//! slow, mute or broken, switchable at any time. Knows no protocol.
//!
//! It runs on a thread of its own, so that blocking tests, asynchronous ones and other processes
//! can use it alike. Dropping it ends all its connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};

use crate::ports;

/// The largest piece that is passed on at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces on their way in one direction; a sender waits for more.
const PIECES_MAX: usize = 256;

/// What happens to connections, those that are open and those to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything is passed on at once.
    Pass,
    /// What the client sends arrives so much later, which adds as much to each round trip
    /// and takes nothing from the bandwidth.
    Delay(Duration),
    /// As if no server ran: open connections are reset, new ones refused.
    Refuse,
    /// Nothing is passed on in either direction, and nothing is lost: it arrives in a later mode, unless that one cuts
    /// the connection.
    Stall,
    /// Open connections are reset, new ones as soon as they are there.
    Reset,
    /// The server sees its connections closed, the clients see nothing: what they send is never
    /// answered. They are reset when this mode ends.
    HalfOpen,
}

/// A running proxy, in [`Mode::Pass`] at first.
pub struct Proxy {
    /// The loopback port to connect to; 0 where the proxy listens on a local socket.
    pub port: u16,
    server_port: Arc<AtomicU16>,
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<thread::JoinHandle<()>>,
}

type Order = (Mode, blocking::Sender<()>);

impl Proxy {
    /// Listens on a free loopback port, for a server on another one.
    ///
    /// # Panics
    /// When the machine gives it no port.
    pub fn start(server_port: u16) -> Self {
        // While it refuses nobody listens there: nobody else may be given the port.
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, ports::reserve())).expect("it is free");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        Self::run(address.port(), server_port, move || {
            Ok(Listener::Tcp(TcpListener::from_std(listener)?, address))
        })
    }

    /// Listens on a local socket instead, whose clients cannot be told by their use of TCP.
    ///
    /// # Panics
    /// When the socket cannot be made.
    pub fn start_local(socket: &Path, server_port: u16) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(socket).expect("the socket's directory is writable");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        Self::run(0, server_port, move || {
            Ok(Listener::Local(Some(UnixListener::from_std(listener)?)))
        })
    }

    fn run(port: u16, server_port: u16, listen: impl FnOnce() -> io::Result<Listener> + Send + 'static) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        let server_port = Arc::new(AtomicU16::new(server_port));
        let led_to = Arc::clone(&server_port);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a thread can have a runtime");
            runtime.block_on(async {
                let listener = listen().expect("the runtime takes the listener");
                accept(listener, led_to, received).await;
            });
            // A precise sleeper may be under way; nobody waits for it.
            runtime.shutdown_background();
        });
        Self {
            port,
            server_port,
            orders: Some(orders),
            thread: Some(thread),
        }
    }

    /// Leads connections that begin after this call to another server.
    pub fn lead_to(&self, server_port: u16) {
        self.server_port.store(server_port, Ordering::Relaxed);
    }

    /// Changes the mode. Connections that begin after this call are under the new mode.
    ///
    /// # Panics
    /// When the proxy could not take its own port back.
    pub fn set(&self, mode: Mode) {
        let (done, waiting) = blocking::channel();
        let orders = self.orders.as_ref().expect("there until it is dropped");
        orders.send((mode, done)).expect("the proxy runs");
        waiting.recv().expect("the proxy runs");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.orders.take();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Where clients arrive.
enum Listener {
    Tcp(TcpListener, SocketAddr),
    /// Holds the port, so that nobody else gets it.
    Shut(TcpSocket, SocketAddr),
    /// `None`: shut.
    Local(Option<UnixListener>),
}

enum Client {
    Tcp(TcpStream),
    Local(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Client> {
        match self {
            Self::Tcp(listener, _) => Ok(Client::Tcp(listener.accept().await?.0)),
            Self::Local(Some(listener)) => Ok(Client::Local(listener.accept().await?.0)),
            Self::Shut(..) | Self::Local(None) => std::future::pending().await,
        }
    }

    fn switch(self, mode: Mode) -> io::Result<Self> {
        match (self, mode == Mode::Refuse) {
            (Self::Tcp(listener, address), true) => {
                drop(listener);
                let socket = TcpSocket::new_v4()?;
                socket.set_reuseaddr(true)?;
                socket.bind(address)?;
                Ok(Self::Shut(socket, address))
            }
            (Self::Shut(socket, address), false) => Ok(Self::Tcp(socket.listen(1_024)?, address)),
            (Self::Local(Some(listener)), true) => {
                drop(listener);
                Ok(Self::Local(None))
            }
            // A local socket whose listener is gone refuses for good.
            (same, _) => Ok(same),
        }
    }
}

async fn accept(mut listener: Listener, server_port: Arc<AtomicU16>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let (modes, _) = watch::channel(Mode::Pass);
    loop {
        tokio::select! {
            // A client that came after an order is under it.
            biased;
            order = orders.recv() => {
                let Some((mode, done)) = order else { return };
                listener = listener.switch(mode).expect("the port is the proxy's own");
                modes.send_replace(mode);
                done.send(()).ok();
            }
            client = listener.accept() => {
                let modes = modes.subscribe();
                let server_port = server_port.load(Ordering::Relaxed);
                match client {
                    Ok(Client::Tcp(client)) => drop(tokio::spawn(serve(client, server_port, modes))),
                    Ok(Client::Local(client)) => drop(tokio::spawn(serve(client, server_port, modes))),
                    // The client is gone again.
                    Err(_) => {}
                }
            }
        }
    }
}

/// One side of a connection.
trait Side: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ends the connection without the usual goodbye, where the transport has such a thing.
    fn reset(self);

    fn send_at_once(&self);
}

impl Side for TcpStream {
    fn reset(self) {
        self.set_zero_linger().ok();
    }

    fn send_at_once(&self) {
        self.set_nodelay(true).ok();
    }
}

impl Side for UnixStream {
    fn reset(self) {}

    fn send_at_once(&self) {}
}

/// How a connection ended.
enum End {
    Closed,
    Cut(Mode),
}

async fn serve(mut client: impl Side, server_port: u16, mut modes: watch::Receiver<Mode>) {
    flowing(&mut modes).await;
    let mode = *modes.borrow();
    let end = if is_cut(mode) {
        End::Cut(mode)
    } else {
        let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)).await else {
            return client.reset();
        };
        client.send_at_once();
        server.send_at_once();
        let end = connect(&mut client, &mut server, &mut modes).await;
        if let End::Cut(Mode::Reset | Mode::Refuse) = end {
            server.reset();
        }
        end
    };
    match end {
        End::Closed => {}
        End::Cut(Mode::HalfOpen) => {
            modes.wait_for(|mode| *mode != Mode::HalfOpen).await.ok();
            client.reset();
        }
        End::Cut(_) => client.reset(),
    }
}

async fn connect(client: &mut impl Side, server: &mut TcpStream, modes: &mut watch::Receiver<Mode>) -> End {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = server.split();
    let passing = async {
        let up = forward(from_client, to_server, modes.clone(), true);
        let down = forward(from_server, to_client, modes.clone(), false);
        tokio::try_join!(up, down)
    };
    let mut watched = modes.clone();
    tokio::select! {
        // What a stall has held up is lost by a cut.
        biased;
        Ok(mode) = watched.wait_for(|mode| is_cut(*mode)) => End::Cut(*mode),
        _ = passing => End::Closed,
    }
}

fn is_cut(mode: Mode) -> bool {
    match mode {
        Mode::Refuse | Mode::Reset | Mode::HalfOpen => true,
        Mode::Pass | Mode::Delay(_) | Mode::Stall => false,
    }
}

/// Passes on what comes until its end, a piece after the other, each not before its time.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut modes: watch::Receiver<Mode>,
    delayed: bool,
) -> io::Result<()> {
    let (enter, mut leave) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    let mut taking_modes = modes.clone();
    let take = async move {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            flowing(&mut taking_modes).await;
            let bytes = from.read(&mut piece).await?;
            let delay = match *taking_modes.borrow() {
                Mode::Delay(delay) if delayed => delay,
                Mode::Delay(_) | Mode::Pass | Mode::Refuse | Mode::Stall | Mode::Reset | Mode::HalfOpen => {
                    Duration::ZERO
                }
            };
            let sent = enter.send((Instant::now() + delay, piece[..bytes].to_vec())).await;
            if bytes == 0 || sent.is_err() {
                return Ok(());
            }
        }
    };
    let give = async {
        while let Some((due, piece)) = leave.recv().await {
            until(due).await;
            flowing(&mut modes).await;
            if piece.is_empty() {
                to.shutdown().await?;
            } else {
                to.write_all(&piece).await?;
            }
        }
        Ok(())
    };
    tokio::try_join!(take, give).map(drop)
}

/// Waits for the end of a stall. The proxy's own end ends it as well.
async fn flowing(modes: &mut watch::Receiver<Mode>) {
    modes.wait_for(|mode| *mode != Mode::Stall).await.ok();
}

/// Waits more precisely than the runtime's timer, which counts in milliseconds.
async fn until(deadline: Instant) {
    const TIMER_STEP: Duration = Duration::from_millis(2);
    let rest = deadline.saturating_duration_since(Instant::now());
    if rest > TIMER_STEP {
        tokio::time::sleep(rest - TIMER_STEP).await;
    }
    let rest = deadline.saturating_duration_since(Instant::now());
    if !rest.is_zero() {
        tokio::task::spawn_blocking(move || thread::sleep(rest)).await.ok();
    }
}
