//! A conversion webhook of others: the address and the authority of a definition, and the exchange with it. Knows no
//! objects; what an answer is worth is for `review` to say.

use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kindex_kube_api::{conversion, media};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::review;

/// How long an answer may take, as kube-apiserver has it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// One object, with room for what stands around it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls of one webhook at a time; others wait for their turn within their time. Every watch converts what it shows,
/// and a webhook is one process that may be as small as this one.
const CALLS_MAX: usize = 16;

/// Where and how a webhook is asked.
pub(super) struct Webhook {
    url: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    calls: Semaphore,
}

impl Webhook {
    /// The webhook of a definition's `spec.conversion.webhook`.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub(super) fn of(webhook: &Value) -> Result<Self, String> {
        let versions = webhook["conversionReviewVersions"].as_array();
        if !versions.is_some_and(|versions| versions.iter().any(|version| version == conversion::VERSION)) {
            return Err("no supported conversion review versions".to_owned());
        }
        let config = &webhook["clientConfig"];
        if let Some(name) = config["service"]["name"].as_str() {
            let url = address_of(&config["service"]);
            return Err(format!(
                "Post \"{url}\": service {name:?} not found: the embedded cluster runs no services; use clientConfig.url"
            ));
        }
        let url = config["url"].as_str().unwrap_or_default().to_owned();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(config["caBundle"].as_str())?)
            .https_only()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            url,
            client,
            calls: Semaphore::new(CALLS_MAX),
        })
    }

    /// The object in `api_version`.
    ///
    /// # Errors
    /// As kube-apiserver says it.
    pub(super) async fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let uid = uuid::Uuid::new_v4().to_string();
        let question = conversion::question(&uid, object, api_version);
        let answer = self.ask(question.to_string()).await;
        let answer = answer.map_err(|why| failed(object, &why))?;
        review::converted(&uid, answer, object, api_version)
    }

    async fn ask(&self, question: String) -> Result<Value, String> {
        let post = |error: &dyn std::fmt::Display| format!("Post \"{}?timeout=30s\": {error}", self.url);
        let address: Uri = format!("{}?timeout=30s", self.url)
            .parse()
            .map_err(|error| post(&error))?;
        let request = Request::post(address)
            .header(header::CONTENT_TYPE, media::JSON)
            .header(header::ACCEPT, "application/json, */*")
            .body(Full::new(Bytes::from(question)))
            .map_err(|error| post(&error))?;
        let exchange = async {
            let _call = self.calls.acquire().await.map_err(io::Error::other)?;
            let response = self.client.request(request).await.map_err(io::Error::other)?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            Ok::<_, io::Error>((head, body.map_err(io::Error::other)?.to_bytes()))
        };
        let exchanged = tokio::time::timeout(TIMEOUT, exchange).await;
        let (head, body) = exchanged
            .map_err(|_| post(&"context deadline exceeded"))?
            .map_err(|error| post(&chain(&error)))?;
        if !head.status.is_success() {
            let kind = head.headers.get(header::CONTENT_TYPE);
            let is_text = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
            let said = String::from_utf8_lossy(&body);
            return Err(refused(head.status, if is_text { said.trim() } else { "unknown" }));
        }
        serde_json::from_slice(&body).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
    }
}

/// What is said of an object whose webhook did not answer.
pub(super) fn failed(object: &Value, why: &str) -> String {
    format!("conversion webhook for {} failed: {why}", review::asked(object))
}

/// As the client of kube-apiserver calls an answer that is none, with what it says where that is text.
fn refused(status: StatusCode, said: &str) -> String {
    match status {
        StatusCode::NOT_FOUND => "the server could not find the requested resource".to_owned(),
        status if status.is_server_error() => {
            format!("an error on the server ({said:?}) has prevented the request from succeeding")
        }
        status => format!(
            "the server responded with the status code {} but did not return more information",
            status.as_u16()
        ),
    }
}

/// Where kube-apiserver would ask a service.
fn address_of(service: &Value) -> String {
    let text = |field: &str| service[field].as_str().unwrap_or_default();
    let port = service["port"].as_u64().unwrap_or(443);
    let path = text("path").trim_start_matches('/');
    format!(
        "https://{}.{}.svc:{port}/{path}?timeout=30s",
        text("name"),
        text("namespace")
    )
}

/// Whom the machine trusts, read once: a definition is compiled with every change and in every version.
static MACHINE: LazyLock<Vec<CertificateDer<'static>>> =
    LazyLock::new(|| rustls_native_certs::load_native_certs().certs);

/// Trusts the authority of the definition, or whom the machine trusts where it names none.
fn tls(authority: Option<&str>) -> Result<ClientConfig, String> {
    let unusable = |error: &dyn std::fmt::Display| format!("unable to load root certificates: {error}");
    let mut roots = RootCertStore::empty();
    match authority.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => {
            let pem = STANDARD.decode(text).map_err(|error| unusable(&error))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| unusable(&error))?;
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(MACHINE.iter().cloned());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
