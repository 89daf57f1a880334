//! More clients than anybody needs, and slow ones: memory stays bounded, and all others are served.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use kindex_harness::wait::{WAIT_MAX, wait_until};
use serde_json::json;

use super::server::{Server, send};
use crate::times;

const MIB: u64 = 1024 * 1024;
/// What the service may take with all that is done to it here.
const MEMORY_MAX: u64 = 256 * MIB;
/// Of an idle connection, in a build without optimizations: 32 KiB are measured.
const CONNECTION_MAX: u64 = 40 * 1024;
/// What another client may have to wait where clients have asked and are idle now. Whoever had to wait for these would
/// wait until they are closed, after two minutes.
const BESIDE_IDLE: Duration = Duration::from_secs(60);
/// The same where clients send nothing. Whoever had to wait for these would wait until they are closed, after ten
/// seconds.
const BESIDE_SILENT: Duration = Duration::from_secs(8);
/// The same while large answers are made, which takes processors. Whoever had to wait for clients that do not read
/// would wait until they are closed, after thirty seconds.
const BESIDE_ANSWERS: Duration = Duration::from_secs(25);
/// How often a machine may be too slow for that because it does other things.
const ATTEMPTS: usize = 4;
/// Less than what a connection may be idle.
const CLOSED_MAX: Duration = Duration::from_secs(110);

fn connect(address: SocketAddr, sends: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX).expect("a connection");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    stream.write_all(sends).expect("taken");
    stream
}

/// Another client is served; how long it waits.
fn served(server: &Server, batch: usize) -> Duration {
    let began = Instant::now();
    let metrics = json!([{ "name": "loss", "step": batch, "value": 1.0 }]);
    let body = json!({ "run_id": "r", "batch_id": format!("b{batch}"), "metrics": metrics });
    send(server.rest, "/api/v1/ingest/batch", &body);
    began.elapsed()
}

/// Opens connections beside which others wait for less than `soon`; `wait` says how long they do, and gets the number
/// of the attempt. A machine may be too slow once; whoever had to wait for these connections would do so each time.
fn open_beside_others(
    soon: Duration,
    open: impl Fn() -> Vec<TcpStream>,
    wait: impl Fn(usize) -> Duration,
) -> Vec<TcpStream> {
    let mut waits = Vec::new();
    for attempt in 0..ATTEMPTS {
        let opened = open();
        let waited = wait(attempt);
        if waited < soon {
            return opened;
        }
        waits.push(waited);
    }
    panic!("others wait: {waits:?}");
}

fn started() -> Server {
    let server = Server::new(&[]);
    server.start();
    send(
        server.rest,
        "/api/v1/runs",
        &json!({ "project": "vision", "run_id": "r" }),
    );
    server
}

/// Ten thousand with `KINDEX_FAULTS=full`, as far as the machine lets a process have files.
#[test]
fn idle_connections_take_little_memory_and_others_are_served() {
    let server = started();
    let before = server.memory();
    let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", server.rest);
    let idle = times(10_000, 2_000);
    let mut connections = Vec::new();
    for number in 0..idle {
        let mut stream = connect(server.rest, request.as_bytes());
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).expect("an answer");
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
        connections.push(stream);
        if number % 500 == 0 {
            let waited = served(&server, number);
            assert!(waited < BESIDE_IDLE, "{waited:?}");
        }
    }
    let waited = served(&server, idle);
    assert!(waited < BESIDE_IDLE, "{waited:?}");
    let more = server.memory().saturating_sub(before);
    println!(
        "faults: runs: {idle} idle connections take {} KiB each",
        more / 1024 / idle as u64
    );
    assert!(more < idle as u64 * CONNECTION_MAX, "{} MiB more", more / MIB);
}

/// Until the server has closed a connection.
fn is_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // Closed or reset.
    let _ended = stream.read_to_end(&mut rest);
}

#[test]
fn clients_that_send_slowly_keep_nobody_waiting_and_are_closed() {
    const SLOW: usize = 100;
    let server = started();
    let began = Instant::now();
    let mut slow: Vec<TcpStream> = Vec::new();
    let head = format!("POST /api/v1/ingest/batch HTTP/1.1\r\nHost: {}\r\n", server.rest);
    let begun = format!("{head}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{{");
    // Nothing, half of a head, of a body, of the preface of HTTP/2, and a whole preface with nothing behind it.
    let beginnings: [&[u8]; 5] = [
        b"",
        head.as_bytes(),
        begun.as_bytes(),
        b"PRI * HTTP/2.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    for (number, address) in [server.rest, server.grpc].into_iter().enumerate() {
        let open = || {
            let sent = (0..SLOW).flat_map(|_| beginnings);
            sent.map(|begin| connect(address, begin)).collect::<Vec<_>>()
        };
        let wait = |attempt: usize| served(&server, number * ATTEMPTS + attempt);
        slow.extend(open_beside_others(BESIDE_SILENT, open, wait));
    }
    for stream in &mut slow {
        is_closed(stream);
    }
    let took = began.elapsed();
    assert!(took < CLOSED_MAX, "they are closed after {took:?}");
    assert!(server.memory() < MEMORY_MAX, "{} MiB", server.memory() / MIB);
    served(&server, 2 * ATTEMPTS);
}

#[test]
fn a_client_that_does_not_read_a_large_answer_takes_no_memory_that_others_need() {
    const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    const UNREAD: usize = 40;
    const ROUNDS: usize = 20;
    let server = started();
    for batch in 0..20_u64 {
        let points = (0..10_000_u64)
            .map(|k| json!({ "name": NAMES[k as usize % 10], "step": batch * 1000 + k / 10, "value": k }));
        let body = json!({ "run_id": "r", "batch_id": format!("p{batch}"), "metrics": points.collect::<Vec<_>>() });
        send(server.rest, "/api/v1/ingest/batch", &body);
    }
    let request = format!(
        "GET /api/v1/runs/r/metrics?max_points=10000 HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.rest
    );
    let mut first = connect(server.rest, request.as_bytes());
    let mut begin = [0; 15];
    first.read_exact(&mut begin).expect("an answer");
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    let one = server.memory();
    let open = || {
        (0..UNREAD)
            .map(|_| connect(server.rest, request.as_bytes()))
            .collect::<Vec<_>>()
    };
    let wait = |attempt: usize| {
        let waits = (0..ROUNDS).map(|round| {
            let waited = served(&server, attempt * ROUNDS + round);
            assert!(server.memory() < one + MEMORY_MAX, "{} MiB", server.memory() / MIB);
            waited
        });
        waits.max().expect("there are rounds")
    };
    let mut unread = open_beside_others(BESIDE_ANSWERS, open, wait);
    // Those that come too late for a place are refused.
    let answers = unread.iter_mut().map(|stream| {
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).map(|()| begin)
    });
    let refused = answers.filter(|begin| matches!(begin, Ok(begin) if begin == b"HTTP/1.1 429"));
    assert!(
        refused.count() >= UNREAD / 2,
        "too many of them have an answer in memory"
    );
    drop((first, unread));
    let again = wait_until("a place", || {
        match super::server::ask(server.rest, "GET", "/api/v1/runs/r/metrics", &[], b"") {
            Ok((200, text)) => Ok(text),
            other => Err(format!("{other:?}")),
        }
    });
    assert!(again.contains("series"));
}
