//! Answers that come before the request is there: also a client that sends all before it reads anything gets them.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use kindex_cluster::ClusterOptions;
use kindex_serve::linger::LINGER_BYTES_MAX;
use kindex_tests::embedded::Embedded;

use super::slow::JANE;
use super::stage::{MODELS, Stage};

const MIB: usize = 1024 * 1024;
/// More than fits into the buffers of a connection, so that the writing lasts longer than the server would read.
const LARGE_BYTES: usize = 16 * MIB;
const CHUNK_BYTES: usize = 64 * 1024;

/// Sends a body of so many bytes, and reads only then: the head of what came.
fn send(address: SocketAddr, authorization: &str, is_chunked: bool, bytes: usize) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let length = match is_chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {bytes}"),
    };
    write!(
        stream,
        "POST {MODELS} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Type: application/json\r\n{length}\r\n\r\n"
    )?;
    let piece = " ".repeat(CHUNK_BYTES);
    for _ in 0..bytes / CHUNK_BYTES {
        match is_chunked {
            true => write!(stream, "{CHUNK_BYTES:x}\r\n{piece}\r\n")?,
            false => stream.write_all(piece.as_bytes())?,
        }
    }
    if is_chunked {
        stream.write_all(b"0\r\n\r\n")?;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let head = answer.split("\r\n\r\n").next();
    Ok(head.unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_too_much_and_reads_only_then_is_told_why_nobody_wants_it() {
    let stage = Stage::with_rights().await;
    let (cluster, _) = Embedded::serve(ClusterOptions::default(), stage.ground.stop().clone().cancelled_owned()).await;
    let token = cluster.authorization();
    for (address, authorization, expected) in [
        (stage.address, JANE, "413 Payload Too Large"),
        (stage.address, "", "401 Unauthorized"),
        (cluster.address, token.as_str(), "413 Payload Too Large"),
        (cluster.address, "", "401 Unauthorized"),
    ] {
        for is_chunked in [false, true] {
            let authorization = authorization.to_owned();
            let sent = move || send(address, &authorization, is_chunked, LARGE_BYTES);
            let answer = tokio::task::spawn_blocking(sent).await.unwrap();
            let head = answer.unwrap();
            let status = format!("HTTP/1.1 {expected}\r\n");
            assert!(head.starts_with(&status), "chunked: {is_chunked}: {head}");
            assert!(head.contains("\r\nconnection: close"), "chunked: {is_chunked}: {head}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_stops_sending_is_not_listened_to_for_ever() {
    let stage = Stage::with_rights().await;
    let address = stage.address;
    let sent = move || send(address, JANE, true, 4 * LINGER_BYTES_MAX);
    let ended = tokio::task::spawn_blocking(sent).await.unwrap();
    assert!(ended.is_err(), "{ended:?}");
    stage.end().await;
}
