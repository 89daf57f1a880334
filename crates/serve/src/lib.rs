//! What a server over HTTP owes its callers, whatever it serves: connections within limits and over TLS, a look at
//! whether a page of a browser asks, bodies that come fast enough and fit a budget, permits that callers share, and a
//! bound on what is held for watchers that do not read. Knows no Kubernetes, no router and no objects. Decisions are
//! pure and get the time as a parameter; what waits and counts is beside them.
//!
//! # Example
//! The smallest service: it listens, answers for its health in a lane of its own, lets callers share the permits of all
//! other requests, and refuses in its own words.
//! ```
//! use std::net::IpAddr;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use http::request::Parts;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use kindex_serve::BodyPace;
//! use kindex_serve::admission::{Admission, AdmissionPolicy, Candidate, Denied, Lane};
//! use kindex_serve::body::{self, BodyError};
//! use kindex_serve::budget::Budget;
//! use kindex_serve::listen::{Incoming, Listener, Peer};
//! use tokio::net::TcpListener;
//! use tokio_util::sync::CancellationToken;
//!
//! const WAIT_MAX: Duration = Duration::from_secs(10);
//! const BODY_BYTES_MAX: usize = 1024;
//!
//! struct EchoAdmissionPolicy {
//!     health: Lane<Option<IpAddr>>,
//!     others: Lane<Option<IpAddr>>,
//! }
//!
//! impl AdmissionPolicy for EchoAdmissionPolicy {
//!     type Caller = Option<IpAddr>;
//!     type Refusal = Response<Full<Bytes>>;
//!
//!     async fn candidate(&self, head: &Parts) -> Result<Candidate<'_, Self::Caller>, Self::Refusal> {
//!         Ok(Candidate {
//!             caller: head.extensions.get::<Peer>().map(|peer| peer.address),
//!             lane: match head.uri.path() {
//!                 "/healthz" => &self.health,
//!                 _ => &self.others,
//!             },
//!             body_bytes_max: body::is_expected(&head.method).then_some(BODY_BYTES_MAX),
//!         })
//!     }
//!
//!     fn refuse(&self, _head: &Parts, why: Denied) -> Self::Refusal {
//!         let code = match why {
//!             Denied::Body(BodyError::TooLarge(_)) => StatusCode::PAYLOAD_TOO_LARGE,
//!             Denied::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
//!             Denied::Body(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
//!             Denied::Body(BodyError::NoRoom(_)) => StatusCode::TOO_MANY_REQUESTS,
//!             Denied::Full(_) | Denied::RateExceeded(_) => StatusCode::TOO_MANY_REQUESTS,
//!         };
//!         let mut response = Response::new(Full::from(why.to_string()));
//!         *response.status_mut() = code;
//!         response
//!     }
//! }
//!
//! async fn echo(admission: Arc<Admission<EchoAdmissionPolicy>>, request: Request<Incoming>) -> Response<Full<Bytes>> {
//!     let (head, body) = request.into_parts();
//!     match admission.admit(&head, body).await {
//!         Ok(_) if head.uri.path() == "/healthz" => Response::new("ok".into()),
//!         Ok(admitted) => Response::new(admitted.body.into()),
//!         Err(refusal) => refusal,
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//! let bodies = Budget::new(1024 * 1024);
//! let policy = EchoAdmissionPolicy {
//!     health: Lane::unlimited(&bodies),
//!     others: Lane::new(400, WAIT_MAX, &bodies),
//! };
//! let admission = Arc::new(Admission::new(policy, BodyPace::default(), WAIT_MAX));
//! let socket = TcpListener::bind("127.0.0.1:0").await?;
//! # let address = socket.local_addr()?;
//! let stop = CancellationToken::new();
//! let answer = move |request| echo(admission.clone(), request);
//! let served = tokio::spawn(Listener::new(socket).serve(answer, stop.clone()));
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # let (small, large) = ("x".repeat(BODY_BYTES_MAX), "x".repeat(BODY_BYTES_MAX + 1));
//! # for (line, body, code, said) in [
//! #     ("GET /healthz", "", "200", "ok"),
//! #     ("POST /", &small, "200", &*small),
//! #     ("POST /", &large, "413", "the body is larger than 1024 bytes"),
//! # ] {
//! #     let mut stream = tokio::net::TcpStream::connect(address).await?;
//! #     let head = format!("Host: x\r\nConnection: close\r\nContent-Length: {}", body.len());
//! #     stream.write_all(format!("{line} HTTP/1.1\r\n{head}\r\n\r\n{body}").as_bytes()).await?;
//! #     let mut answer = String::new();
//! #     stream.read_to_string(&mut answer).await?;
//! #     assert!(answer.starts_with(&format!("HTTP/1.1 {code}")) && answer.ends_with(said), "{answer}");
//! # }
//! stop.cancel();
//! served.await?;
//! # Ok(())
//! # }
//! ```

pub mod browser;

mod pace;

pub mod budget;

pub mod body;

pub mod linger;

mod shares;

pub mod gate;

pub mod work;

pub mod abort;

pub mod pieces;

pub mod deadline;

pub mod trace;

pub mod pages;

mod unread;

mod texts;

pub mod watches;

pub mod rate;

pub mod admission;

pub mod listen;

pub use pace::BodyPace;
