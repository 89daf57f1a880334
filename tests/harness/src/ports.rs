//! Ports for servers that come back on the port that they had. They lie below those that the kernel hands out, so
//! that no connection takes one while its server is down, and each is held by one test process alone.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Mutex;

use tokio::net::TcpSocket;

/// Above the ports of services, below the kernel's own (`net.ipv4.ip_local_port_range` begins at 32768).
const PORTS: RangeInclusive<u16> = 12_000..=32_000;

/// The locks of this process, and where its search goes on.
struct PortLocks {
    next: u16,
    locks: Vec<File>,
}

static HELD: Mutex<Option<PortLocks>> = Mutex::new(None);

/// A loopback port that stays this process' own until it ends.
///
/// # Panics
/// When all are taken, or the machine's temporary folder is not writable.
pub fn reserve() -> u16 {
    // Each user's own: nobody can lock what another one has made.
    let user = std::fs::metadata("/proc/self").expect("Linux").uid();
    let directory = std::env::temp_dir().join(format!("kindex-ports-{user}"));
    std::fs::create_dir_all(&directory).expect("the temporary folder is writable");
    let mut held = HELD.lock().expect("nobody panics while holding ports");
    let held = held.get_or_insert_with(|| PortLocks {
        // Processes begin at different places, so that they seldom meet.
        next: PORTS.start() + u16::try_from(std::process::id() * 97 % u32::from(span())).expect("less than the span"),
        locks: Vec::new(),
    });
    for _ in 0..span() {
        let port = held.next;
        held.next = if port == *PORTS.end() { *PORTS.start() } else { port + 1 };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join(port.to_string()));
        let Ok(lock) = lock else { continue };
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            held.locks.push(lock);
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

/// A loopback port at which nobody listens, as long as this lives: whoever connects is refused.
pub struct Closed {
    _socket: TcpSocket,
    /// Where nobody listens.
    pub address: SocketAddr,
}

impl Closed {
    /// Takes a free port and leaves it closed. Others cannot get it meanwhile, as they could a port that was only
    /// free a moment ago.
    ///
    /// # Panics
    /// When the machine has no free port.
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind((Ipv4Addr::LOCALHOST, 0).into())
            .expect("loopback has free ports");
        let address = socket.local_addr().expect("bound");
        Self {
            _socket: socket,
            address,
        }
    }
}

fn span() -> u16 {
    PORTS.end() - PORTS.start()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn who_connects_to_a_closed_port_is_refused() {
        let closed = Closed::take();
        let refused = TcpStream::connect(closed.address)
            .map(drop)
            .map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
    }
}
