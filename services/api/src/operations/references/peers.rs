//! Other services, asked about their own objects: whose references they are, and what holds them there. A service that
//! does not answer is no error here: it is a part of what is shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Limited};
use kindex_kube_api::request::escaped;
use kindex_kube_client::other_service::{Address, ForeignKind, chain};
use kindex_model::kind::Registry;
use kindex_model::reference::Service;
use kindex_model::reference_name::ReferenceName;
use kube::client::Body;
use tokio::time::Instant;

use super::silent::Silent;
use super::tree::Node;

/// How long a service may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read: one object, and what holds it.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

/// By group and kind.
type ForeignKinds = HashMap<(&'static str, &'static str), Arc<ForeignKind>>;

/// The other services, by the groups of their kinds.
#[derive(Clone, Default)]
pub struct Peers {
    addresses: BTreeMap<String, Address>,
    /// Those that were asked: how they are served is asked once.
    kinds: Arc<Mutex<ForeignKinds>>,
    silent: Arc<Mutex<Silent>>,
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
    pub(super) fn kind(&self, service: &'static Service, kind: &'static str) -> Arc<ForeignKind> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kinds.entry((service.group, kind)).or_insert_with(|| {
            let address = self.addresses.get(service.group).cloned();
            let address = address.unwrap_or_else(|| service.into());
            Arc::new(ForeignKind::new(service.group, kind, address))
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
    pub(in super::super) async fn ask(&self, reference: &ReferenceName) -> Result<Node, String> {
        let Some(address) = self.addresses.get(reference.group()) else {
            return Err(format!(
                "no address of a service with the group {} is known",
                reference.group()
            ));
        };
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, ask(address, reference)).await;
        let answer = asked.unwrap_or_else(|_| Err(format!("not within {} s", ANSWER_TIMEOUT.as_secs())));
        answer.map_err(|why| format!("the service {} at {} does not say: {why}", address.name, address.url))
    }
}

async fn ask(address: &Address, reference: &ReferenceName) -> Result<Node, String> {
    let client = address.client().await?;
    let reference = escaped(&reference.to_string());
    let request = Request::get(format!("/api/v1/references/{reference}?depth=1"));
    let request = request.body(Body::empty()).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| chain(&error))?;
    let code = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    if code == http::StatusCode::NOT_FOUND {
        return Err("it has no such object".to_owned());
    }
    if !code.is_success() {
        return Err(format!("it answers {code}"));
    }
    serde_json::from_slice(&body).map_err(|error| format!("its answer is no tree: {error}"))
}
