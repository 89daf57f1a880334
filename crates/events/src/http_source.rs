//! A client of the API server's events: server-sent events over HTTP, and the look-up of objects by uid. What came
//! before a cut is never lost: a message counts once it is there as a whole.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kindex_kube_api::status::{Outcome, Reason, ReceivedStatus};
use kindex_model::causes::chain;
use kindex_model::object::Uid;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;
use tokio::time::timeout;

use crate::held::{Existence, LookUp};
use crate::position::PositionError;
use crate::source::{Source, SourceError, Subscribe, Subscription};
use crate::sse::{MEDIA_TYPE, Reader};

/// Longest wait for the head of an answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest silence: several times as long as the server's.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The longest answer but a subscription that is read.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

type Body = hyper::body::Incoming;

/// Who asks.
#[derive(Clone, Debug)]
pub enum Token {
    /// This one.
    Text(String),
    /// What the file holds at each request: a service account's is renewed.
    File(PathBuf),
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file contains no certificate.
    #[error("the certificates cannot be read: {0}")]
    Certificates(#[from] rustls_pki_types::pem::Error),
    /// A certificate is invalid as a trust anchor.
    #[error("a certificate cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
}

/// An API server of Kindex.
#[derive(Clone)]
pub struct HttpSource {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    url: String,
    token: Option<Token>,
}

impl HttpSource {
    /// The server at this address, which begins with `http://` or `https://`. Trusts whom the machine trusts, and with
    /// certificates (PEM) those instead.
    ///
    /// # Errors
    /// Fails if the PEM text has no valid certificate.
    pub fn new(url: &str, certificates: Option<&[u8]>, token: Option<Token>) -> Result<Self, ClientError> {
        let mut roots = RootCertStore::empty();
        match certificates {
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    roots.add(certificate?)?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            url: url.trim_end_matches('/').to_owned(),
            token,
        })
    }

    async fn get(&self, path: &str, accept: &str) -> Result<Response<Body>, SourceError> {
        let mut request = Request::get(format!("{}{path}", self.url)).header(header::ACCEPT, accept);
        if let Some(token) = self.token().await? {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Empty::new());
        let request = request.map_err(|error| SourceError::Refused(format!("the address is wrong: {error}")))?;
        let answer = timeout(HEAD_TIMEOUT, self.client.request(request)).await;
        let answer = answer.map_err(|_| SourceError::interrupted("no answer"))?;
        answer.map_err(|error| SourceError::interrupted(format_args!("{}: {}", self.url, chain(&error))))
    }

    async fn token(&self) -> Result<Option<String>, SourceError> {
        match &self.token {
            None => Ok(None),
            Some(Token::Text(text)) => Ok(Some(text.clone())),
            Some(Token::File(path)) => {
                let read = tokio::fs::read_to_string(path).await;
                let unread = |error| SourceError::interrupted(format_args!("{}: {error}", path.display()));
                read.map(|text| Some(text.trim().to_owned())).map_err(unread)
            }
        }
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[async_trait]
impl Source for HttpSource {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        let mut path = format!("/api/v1/events/{}?deleting={}", escaped(&to.topic), to.deleting);
        if let Some(from) = &to.from {
            path = format!("{path}&from={from}");
        }
        let answer = self.get(&path, MEDIA_TYPE).await?;
        if answer.status() != StatusCode::OK {
            return Err(refused(to, answer).await);
        }
        let content_type = answer.headers().get(header::CONTENT_TYPE);
        let is_stream = content_type.is_some_and(|value| value.as_bytes().starts_with(MEDIA_TYPE.as_bytes()));
        if !is_stream {
            return Err(SourceError::Refused(format!(
                "{} is not an API server of Kindex",
                self.url
            )));
        }
        let pieces = Pieces {
            body: answer.into_body(),
            reader: Reader::default(),
        };
        let read = stream::unfold(Some(pieces), |pieces| async {
            let mut pieces = pieces?;
            let read = pieces.next().await?;
            let pieces = read.iter().all(Result::is_ok).then_some(pieces);
            Some((stream::iter(read), pieces))
        });
        Ok(read.flatten().boxed())
    }
}

/// What comes of a subscription.
struct Pieces {
    body: Body,
    reader: Reader,
}

impl Pieces {
    /// The messages that the next piece completes; nothing at the end.
    async fn next(&mut self) -> Option<Vec<Result<crate::Message, SourceError>>> {
        let error = |message: String| Some(vec![Err(SourceError::interrupted(message))]);
        match timeout(SILENCE_MAX, self.body.frame()).await {
            Err(_) => error(format!("silent for {} s", SILENCE_MAX.as_secs())),
            Ok(None) => None,
            Ok(Some(Err(cut))) => error(chain(&cut)),
            Ok(Some(Ok(frame))) => Some(
                frame
                    .into_data()
                    .map(|data| self.reader.read(&data))
                    .unwrap_or_default(),
            ),
        }
    }
}

/// The error of an answer.
async fn refused(to: &Subscribe, answer: Response<Body>) -> SourceError {
    let code = answer.status();
    let header = answer.headers().get(header::RETRY_AFTER).cloned();
    let header = header.as_ref().and_then(|value| value.to_str().ok());
    refusal(to, code, header, &content(answer).await)
}

fn refusal(to: &Subscribe, code: StatusCode, retry_after: Option<&str>, body: &[u8]) -> SourceError {
    let status = ReceivedStatus::of_answer(code.as_u16(), retry_after, body);
    let message = match status.message.as_str() {
        "" => format!("the server answers {code}"),
        message => message.to_owned(),
    };
    match status.outcome() {
        // Of what this client sends, only a position may be none.
        Outcome::BadRequest if to.from.is_some() => PositionError::Refused(message).into(),
        Outcome::Absent | Outcome::Unserved if names(body, &to.topic) => {
            SourceError::UnknownTopic(format!("{}: {message}", to.topic))
        }
        // What stands before the server has pages of its own for that.
        Outcome::Absent | Outcome::Unserved => SourceError::interrupted(message),
        Outcome::Expired => SourceError::Gone(message),
        outcome if outcome.is_transient() => SourceError::Interrupted {
            message,
            retry_after: status.retry_after(),
        },
        _ => SourceError::Refused(message),
    }
}

/// Whether it is a Status about this topic, which an API server of Kindex names where it has no such kind.
fn names(body: &[u8], topic: &str) -> bool {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let says = status["message"]
        .as_str()
        .is_some_and(|message| message.contains(topic));
    says && status["kind"] == "Status" && status["reason"] == Reason::NotFound.as_str()
}

/// The body of an answer; empty where it is too long or breaks off.
async fn content(answer: Response<Body>) -> Bytes {
    let read = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
    match timeout(HEAD_TIMEOUT, read).await {
        Ok(Ok(read)) => read.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    }
}

/// Looks up objects of a topic at an API server.
pub struct HttpLookUp {
    source: HttpSource,
    topic: String,
}

impl HttpLookUp {
    /// Of the objects of this topic.
    pub fn new(source: HttpSource, topic: &str) -> Self {
        Self {
            source,
            topic: topic.to_owned(),
        }
    }
}

#[async_trait]
impl LookUp for HttpLookUp {
    async fn look_up(&self, uid: &Uid) -> Existence {
        let path = format!("/api/v1/events/{}/{}", escaped(&self.topic), escaped(&uid.0));
        let Ok(answer) = self.source.get(&path, "application/json").await else {
            return Existence::Unknown;
        };
        let status = answer.status();
        let answer: Value = serde_json::from_slice(&content(answer).await).unwrap_or_default();
        match status {
            StatusCode::OK if answer["resourceID"] == *uid.0 => Existence::Exists,
            // Of this object, and not of the path: an address that leads elsewhere deletes nothing.
            StatusCode::NOT_FOUND if answer["details"]["uid"] == *uid.0 => Existence::Gone,
            _ => Existence::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As if a consumer ended for ever because a proxy has a page for paths that it does not know.
    #[test]
    fn a_topic_is_unknown_only_where_the_answer_names_it() {
        let to = Subscribe::to("runs.g.example");
        let said = |body: &str| refusal(&to, StatusCode::NOT_FOUND, None, body.as_bytes());
        let status = |message: &str| {
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                "message": message})
            .to_string()
        };
        let unknown = status("there is no kind \"runs.g.example\": write its plural, or plural.group");
        assert!(matches!(said(&unknown), SourceError::UnknownTopic(_)));
        for page in [
            "",
            "404 page not found",
            "no route to /api/v1/events/runs.g.example",
            r#"{"message": "no route to /api/v1/events/runs.g.example"}"#,
            &status("the server could not find the requested resource"),
        ] {
            assert!(matches!(said(page), SourceError::Interrupted { .. }), "{page}");
        }
    }
}
