//! The tests' own proxy: every mode does to a connection what its name says.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use kindex_harness::ports::Closed;
use kindex_harness::proxy::{Mode, Proxy};
use kindex_harness::wait::WAIT_MAX;

/// How long to listen for something that must not come.
const SILENCE: Duration = Duration::from_millis(100);

/// A server that sends back what it gets, and says at a connection's end how it ended.
struct Echo {
    port: u16,
    ends: std::sync::mpsc::Receiver<std::io::Result<usize>>,
}

impl Echo {
    /// How the next connection to end did so.
    fn end(&self) -> std::io::Result<usize> {
        self.ends.recv_timeout(WAIT_MAX).expect("an end")
    }
}

fn echo() -> Echo {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
    let port = listener.local_addr().expect("bound").port();
    let (ended, ends) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, ended) = (stream.expect("a client"), ended.clone());
            thread::spawn(move || {
                let mut bytes = [0; 1024];
                loop {
                    match stream.read(&mut bytes) {
                        Ok(count) if count > 0 => {
                            // An end as well: a thread that panics would tell none, and be waited for.
                            if let Err(error) = stream.write_all(&bytes[..count]) {
                                return ended.send(Err(error)).ok();
                            }
                        }
                        end => return ended.send(end).ok(),
                    }
                }
            });
        }
    });
    Echo { port, ends }
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port)).expect("the proxy listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
    stream
}

fn answer(stream: &mut TcpStream, word: &[u8]) -> std::io::Result<()> {
    stream.write_all(word)?;
    let mut answer = vec![0; word.len()];
    stream.read_exact(&mut answer)?;
    assert_eq!(answer, word);
    Ok(())
}

/// Nothing comes, neither an answer nor an end.
fn expect_silence(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SILENCE)).expect("set");
    let error = stream.read(&mut [0; 1]).expect_err("nothing may come");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
}

fn expect_reset(stream: &mut TcpStream) {
    let error = stream.read(&mut [0; 1]).expect_err("the connection is broken");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// A new connection is reset. That may be as soon as it is there, and before its client knows that it was.
fn expect_a_new_one_reset(proxy: &Proxy) {
    match TcpStream::connect(("127.0.0.1", proxy.port)) {
        Ok(mut stream) => {
            stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
            expect_reset(&mut stream);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn bytes_and_the_end_of_a_connection_are_passed_on() {
    let server = echo();
    let proxy = Proxy::start(server.port);
    let mut stream = connect(&proxy);
    answer(&mut stream, b"one").expect("answered");
    answer(&mut stream, &[7; 300_000]).expect("answered");
    drop(stream);
    assert_eq!(server.end().expect("a clean one"), 0);
}

#[test]
fn a_delay_is_added_to_each_round_trip_and_not_to_each_piece() {
    const DELAY: Duration = Duration::from_millis(20);
    let server = echo();
    let proxy = Proxy::start(server.port);
    let mut stream = connect(&proxy);
    proxy.set(Mode::Delay(DELAY));
    let begun = Instant::now();
    answer(&mut stream, b"one").expect("answered");
    answer(&mut stream, b"two").expect("answered");
    assert!(begun.elapsed() >= DELAY * 2);
    proxy.set(Mode::Pass);
    answer(&mut stream, b"three").expect("answered");
}

#[test]
fn a_stalled_connection_goes_on_where_it_was() {
    let server = echo();
    let proxy = Proxy::start(server.port);
    let mut open = connect(&proxy);
    answer(&mut open, b"one").expect("answered");
    proxy.set(Mode::Stall);
    let mut new = connect(&proxy);
    for stream in [&mut open, &mut new] {
        stream.write_all(b"x").expect("taken");
        expect_silence(stream);
    }
    proxy.set(Mode::Pass);
    for stream in [&mut open, &mut new] {
        let mut late = [0; 1];
        stream.read_exact(&mut late).expect("it arrives");
        answer(stream, b"two").expect("answered");
    }
}

#[test]
fn a_refused_client_may_come_back_to_the_same_port() {
    let server = echo();
    let proxy = Proxy::start(server.port);
    let mut open = connect(&proxy);
    answer(&mut open, b"one").expect("answered");
    proxy.set(Mode::Refuse);
    expect_reset(&mut open);
    let refused = TcpStream::connect(("127.0.0.1", proxy.port)).expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    for _ in 0..2 {
        proxy.set(Mode::Refuse);
        proxy.set(Mode::Pass);
        answer(&mut connect(&proxy), b"two").expect("answered");
    }
}

#[test]
fn a_reset_ends_open_and_new_connections_at_once() {
    let server = echo();
    let proxy = Proxy::start(server.port);
    let mut open = connect(&proxy);
    answer(&mut open, b"one").expect("answered");
    proxy.set(Mode::Reset);
    expect_reset(&mut open);
    let end = server.end().expect_err("no clean one");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    expect_a_new_one_reset(&proxy);
    proxy.set(Mode::Pass);
    answer(&mut connect(&proxy), b"two").expect("answered");
}

#[test]
fn half_open_is_closed_for_the_server_and_silent_for_the_client() {
    let server = echo();
    let proxy = Proxy::start(server.port);
    let mut open = connect(&proxy);
    answer(&mut open, b"one").expect("answered");
    proxy.set(Mode::HalfOpen);
    assert_eq!(server.end().expect("a clean one"), 0);
    open.write_all(b"lost").expect("taken");
    expect_silence(&mut open);
    proxy.set(Mode::Pass);
    expect_reset(&mut open);
    answer(&mut connect(&proxy), b"two").expect("answered");
}

#[test]
fn a_server_that_is_not_there_is_a_reset() {
    let nobody = Closed::take();
    expect_a_new_one_reset(&Proxy::start(nobody.address.port()));
}

#[test]
fn new_connections_go_where_they_are_led_and_open_ones_stay() {
    let [first, second] = [echo(), echo()];
    let proxy = Proxy::start(first.port);
    let mut open = connect(&proxy);
    answer(&mut open, b"one").expect("answered");
    proxy.lead_to(second.port);
    let mut new = connect(&proxy);
    answer(&mut new, b"two").expect("answered");
    drop(new);
    assert_eq!(second.end().expect("a clean one"), 0);
    answer(&mut open, b"three").expect("answered");
    drop(open);
    assert_eq!(first.end().expect("a clean one"), 0);
}
