//! A network between client and service that loses answers: the request arrives, and the connection breaks when the
//! first frame of the answer comes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The type of the frame that an answer begins with, in HTTP/2.
const HEADERS: u8 = 1;
/// The length of what stands before a frame.
const PREFIX: usize = 9;

pub(crate) struct Proxy {
    address: SocketAddr,
    to_lose: Arc<AtomicUsize>,
}

impl Proxy {
    /// Loses nothing at first.
    pub(crate) fn before(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let to_lose = Arc::new(AtomicUsize::new(0));
        let losing = Arc::clone(&to_lose);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(service) else {
                    continue;
                };
                let (requests, answers) = (
                    client.try_clone().expect("a handle"),
                    server.try_clone().expect("a handle"),
                );
                thread::spawn(move || pass_requests(requests, server));
                let losing = Arc::clone(&losing);
                thread::spawn(move || {
                    // Either end may hang up.
                    let _ended = pass_answers(&answers, &client, &losing);
                    let _closed = (client.shutdown(Shutdown::Both), answers.shutdown(Shutdown::Both));
                });
            }
        });
        Self { address, to_lose }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next answers never arrive.
    pub(crate) fn lose_answers(&self, answers: usize) {
        self.to_lose.store(answers, Ordering::SeqCst);
    }
}

fn pass_requests(mut from: TcpStream, mut to: TcpStream) {
    let _ended = io::copy(&mut from, &mut to);
    let _closed = to.shutdown(Shutdown::Write);
}

/// Frame by frame, until one begins an answer that is to be lost.
fn pass_answers(mut from: &TcpStream, mut to: &TcpStream, to_lose: &AtomicUsize) -> io::Result<()> {
    loop {
        let mut frame = vec![0; PREFIX];
        from.read_exact(&mut frame)?;
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]) as usize;
        let one_less = |left: usize| left.checked_sub(1);
        if frame[3] == HEADERS
            && to_lose
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok()
        {
            return Ok(());
        }
        frame.resize(PREFIX + length, 0);
        from.read_exact(&mut frame[PREFIX..])?;
        to.write_all(&frame)?;
    }
}
