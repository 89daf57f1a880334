//! One call of gRPC with the bytes of a message as they are, good or bad. Knows no service.

use std::io;
use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::wait::WAIT_MAX;

/// Calls a method by its path; gives back `grpc-status`.
///
/// # Errors
/// Where nobody answers in time, or not in gRPC.
pub fn call(address: SocketAddr, path: &str, message: &[u8]) -> io::Result<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answered = async { tokio::time::timeout(WAIT_MAX, exchange(address, path, message)).await };
    runtime.block_on(answered).map_err(io::Error::other)?
}

async fn exchange(address: SocketAddr, path: &str, message: &[u8]) -> io::Result<i32> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let begun = http2::handshake(TokioExecutor::new(), stream).await;
    let (mut sender, connection) = begun.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(u32::try_from(message.len()).map_err(io::Error::other)?);
    body.put_slice(message);
    let request = http::Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::<Bytes>::new(body.freeze()))
        .map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?;
    let status = head
        .headers
        .get("grpc-status")
        .or(body.trailers().and_then(|trailers| trailers.get("grpc-status")));
    let code = status.and_then(|status| status.to_str().ok()?.parse().ok());
    code.ok_or_else(|| io::Error::other(format!("no gRPC answer: {}", head.status)))
}
