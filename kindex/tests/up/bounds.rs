//! What the process takes where many watch and nobody reads, and whether others are answered meanwhile.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::process::Running;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const OBJECTS: usize = 6;
const OBJECT_BYTES: usize = 1_400_000;
const WATCHES: usize = 100;
/// What the process may take beyond what it took before: half of what one copy for each watch would.
const GROWTH_MAX_KIB: u64 = (WATCHES * OBJECTS * OBJECT_BYTES / 2 / 1024) as u64;

/// Sends a request that shows the token.
fn send(run: &Running, line: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(run.cluster()).expect("the cluster is there");
    let (token, length) = (run.token(), body.len());
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .expect("sent");
    stream
}

fn code(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer");
    String::from_utf8_lossy(&head[9..]).into_owned()
}

fn create(run: &Running, name: &str) {
    let text = "x".repeat(OBJECT_BYTES);
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"text":"{text}"}}}}"#
    );
    assert_eq!(code(&mut send(run, &format!("POST {MAPS}"), &body)), "201");
}

#[test]
fn watches_that_nobody_reads_take_no_memory_for_each() {
    let run = Running::start(&[]);
    for number in 0..OBJECTS {
        create(&run, &format!("a{number}"));
    }
    let before = run.peak_kib();
    let mut held = Vec::new();
    for _ in 0..WATCHES {
        let mut stream = send(&run, &format!("GET {MAPS}?watch=true"), "");
        assert_eq!(code(&mut stream), "200");
        held.push(stream);
    }
    for path in ["/readyz", "/apis/coordination.k8s.io/v1/leases", "/api/v1/namespaces"] {
        assert_eq!(code(&mut send(&run, &format!("GET {path}"), "")), "200", "{path}");
    }
    let growth = run.peak_kib() - before;
    assert!(growth < GROWTH_MAX_KIB, "{growth} KiB of {GROWTH_MAX_KIB}");
    drop(held);
}
