//! Other services, asked about their own objects: whose references they are, and what holds them there. A service that
//! does not answer is no error here: it is a part of what is shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kindex_kube_api::request::escaped;
use kindex_kube_api::status::Outcome;
use kindex_kube_client::peer::{Address, PeerKind};
use kindex_model::causes::chain;
use kindex_model::kind::Registry;
use kindex_model::reference::Service;
use kindex_model::reference_name::ReferenceName;
use kube::client::Body;
use tokio::time::Instant;

use super::question::PeerFailure;
use super::silent::SilentServices;
use super::tree::Node;
use crate::operations::Refusal;

/// How long a service may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read: one object, and what holds it.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

/// By group and kind.
type PeerKinds = HashMap<(&'static str, &'static str), Arc<PeerKind>>;

/// The other services, by the groups of their kinds.
#[derive(Clone, Default)]
pub struct Peers {
    addresses: BTreeMap<String, Address>,
    /// Those that were asked: how they are served is asked once.
    kinds: Arc<Mutex<PeerKinds>>,
    silent: Arc<Mutex<SilentServices>>,
}

impl Peers {
    /// Those that crds.toml declares.
    pub fn of(registry: &Registry) -> Self {
        let services = registry.services.iter().copied();
        let addresses = services.map(|service| (service.group.to_owned(), service.into()));
        Self {
            addresses: addresses.collect(),
            ..Self::default()
        }
    }

    /// The same with the service of a group at this address, with the files that are known for it. Without TLS, the
    /// token is sent to nobody.
    #[must_use]
    pub fn at(mut self, group: &str, url: &str) -> Self {
        let address = self.addresses.entry(group.to_owned()).or_insert_with(|| Address {
            name: group.to_owned(),
            url: String::new(),
            ca_file: None,
            token_file: None,
        });
        address.move_to(url);
        self.kinds = Arc::default();
        self.silent = Arc::default();
        self
    }

    /// What the service of a group is called; the group where it is not known.
    pub(in super::super) fn name_of(&self, group: &str) -> String {
        self.addresses
            .get(group)
            .map_or_else(|| group.to_owned(), |address| address.name.clone())
    }

    /// A kind of another service, where that is.
    pub(super) fn kind(&self, service: &'static Service, kind: &'static str) -> Arc<PeerKind> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kinds.entry((service.group, kind)).or_insert_with(|| {
            let address = self.addresses.get(service.group).cloned();
            let address = address.unwrap_or_else(|| service.into());
            Arc::new(PeerKind::new(service.group, kind, address))
        });
        known.clone()
    }

    /// Whether the service of a group is asked now by whoever cannot wait for it: not if it was silent a moment ago.
    pub(super) fn may_be_asked(&self, group: &'static str) -> bool {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.may_be_asked(group, Instant::now())
    }

    /// The service of a group has answered, or it was silent.
    pub(super) fn note(&self, group: &'static str, has_answered: bool) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.note(group, has_answered, Instant::now());
    }

    /// The holder of a reference as its service shows it, with those that hold it. The reason where that is not known.
    pub(super) async fn ask(&self, reference: &ReferenceName) -> Result<Node, PeerFailure> {
        let group = reference.group();
        let Some(address) = self.addresses.get(group) else {
            let why = format!("no address of a service with the group {group} is known");
            return Err(PeerFailure::answered(why));
        };
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, ask(address, reference)).await;
        let late = |_| {
            Err(PeerFailure::silent(format!(
                "not within {} s",
                ANSWER_TIMEOUT.as_secs()
            )))
        };
        let Address { name, url, .. } = address;
        asked
            .unwrap_or_else(late)
            .map_err(|PeerFailure { why, is_silent }| PeerFailure {
                why: format!("the service {name} at {url} does not say: {why}"),
                is_silent,
            })
    }
}

async fn ask(address: &Address, reference: &ReferenceName) -> Result<Node, PeerFailure> {
    let client = address.client().await.map_err(PeerFailure::silent)?;
    let escaped = escaped(&reference.to_string());
    let request = Request::get(format!("/api/v1/references/{escaped}?depth=1"));
    let request = request.body(Body::empty());
    let request = request.map_err(|error| PeerFailure::answered(error.to_string()))?;
    let response = client.send(request).await;
    let response = response.map_err(|error| PeerFailure::silent(chain(&error)))?;
    let code = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => PeerFailure::answered(error.to_string()),
        false => PeerFailure::silent(chain(&*error)),
    })?;
    let body = body.to_bytes();
    if !code.is_success() {
        return Err(refused(code, &body, reference));
    }
    serde_json::from_slice(&body).map_err(|error| PeerFailure::answered(format!("its answer is not a tree: {error}")))
}

/// One that is overloaded or broken says nothing of other objects either. That it has no such object is said of this
/// one, and not of the path: an address that leads elsewhere says nothing.
fn refused(code: StatusCode, body: &[u8], reference: &ReferenceName) -> PeerFailure {
    let said = Refusal::from_status(code.as_u16(), body);
    let is_about_it = said
        .details
        .as_ref()
        .is_some_and(|details| details.uid == reference.uid());
    match Outcome::of_code(code.as_u16()) {
        Outcome::Absent | Outcome::Unserved if is_about_it => PeerFailure::answered("it has no such object"),
        outcome if outcome.is_transient() => PeerFailure::silent(format!("it answers {code}")),
        _ => PeerFailure::answered(format!("it answers {code}")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const GROUP: &str = "compute.example.com";
    const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    /// How asking fails where the connection ends after this answer.
    async fn failure(answer: String) -> PeerFailure {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let answers = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let (mut request, mut some) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"\r\n\r\n") {
                let length = stream.read(&mut some).await.expect("a request");
                assert_ne!(length, 0, "the request breaks off");
                request.extend_from_slice(&some[..length]);
            }
            stream.write_all(answer.as_bytes()).await.expect("somebody waits");
            stream.shutdown().await.expect("it is open");
        };
        let reference = ReferenceName::new("Cluster", GROUP, UID);
        let reference = reference.expect("a name");
        let peers = Peers::default().at(GROUP, &url);
        let (asked, ()) = tokio::join!(peers.ask(&reference), answers);
        asked.expect_err("nothing is said")
    }

    /// As if the page of a proxy said that a service has no such object.
    #[tokio::test]
    async fn only_an_answer_that_names_the_object_says_that_there_is_none() {
        for (uid, expected) in [(UID, "it has no such object"), ("", "it answers 404 Not Found")] {
            let body = format!(r#"{{"code":404,"reason":"NotFound","details":{{"uid":"{uid}"}}}}"#);
            let head = format!("HTTP/1.1 404 \r\ncontent-length: {}\r\n\r\n", body.len());
            let failure = failure(head + &body).await;
            let said = failure.why.ends_with(&format!(" does not say: {expected}"));
            assert!(said, "{}", failure.why);
            assert!(!failure.is_silent, "{expected}");
        }
    }

    /// Otherwise a service that is overloaded is asked about thousands of objects by one question.
    #[tokio::test]
    async fn an_overloaded_service_and_a_body_that_breaks_off_are_a_silence() {
        for (code, is_silent) in [
            (400, false),
            (403, false),
            (404, false),
            (408, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            let failure = failure(format!("HTTP/1.1 {code} \r\ncontent-length: 0\r\n\r\n")).await;
            assert_eq!(failure.is_silent, is_silent, "{code}: {}", failure.why);
        }
        let broken = failure("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned()).await;
        assert!(broken.is_silent, "{}", broken.why);
        let other = failure("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned()).await;
        assert!(!other.is_silent, "{}", other.why);
    }
}
