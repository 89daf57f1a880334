//! Other services whose objects ours refer to. Their API and their events are all that is used of them: an object is
//! looked up with the references on it, ours are placed and released there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use kindex_events::Source;
use kindex_events::http_source::{HttpLookUp, HttpSource, Token};
use kindex_events::list_watch::ListWatch;
use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, Status};
use kube::{Client, ResourceExt as _, discovery};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::object::{Key, KindName, Object};
use address::{Address, chain};
use answer::{Unanswered, object, path, topic};
use holder::HolderService;

pub mod address;

mod answer;

pub mod holder;

pub mod follow;

pub mod foreign;

/// How long a service may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;

/// Where the events of other services are read.
#[derive(Clone, Default)]
pub enum Transport {
    /// The events of each service's API.
    #[default]
    Events,
    /// Lists and watches of each service's API, also of kinds without events.
    Watch,
    /// One source for all.
    Shared(Arc<dyn Source>),
}

/// The kinds of other services, each with its service.
#[derive(Clone, Default)]
pub struct Peers {
    kinds: Arc<BTreeMap<KindName, Peer>>,
    holders: Arc<BTreeMap<String, HolderService>>,
}

/// A kind of another service.
pub struct Peer {
    kind: KindName,
    address: Address,
    /// What is known of it once its service has answered.
    resource: OnceCell<Resource>,
    /// Where its events are read.
    events: Transport,
    /// Look-ups are numbered as they are sent: what one of them shows is newer than what those before it show.
    looked: Arc<AtomicU64>,
}

struct Resource {
    client: Client,
    api: ApiResource,
}

/// The events of a kind.
struct Topic {
    topic: String,
    source: Arc<dyn Source>,
    look_up: Arc<HttpLookUp>,
}

impl Peers {
    /// These kinds, with their events.
    pub fn new(kinds: impl IntoIterator<Item = (KindName, Address)>, events: &Transport) -> Self {
        let looked = Arc::new(AtomicU64::new(1));
        let peers = kinds.into_iter().map(|(kind, address)| {
            let peer = Peer {
                kind: kind.clone(),
                address,
                resource: OnceCell::new(),
                events: events.clone(),
                looked: looked.clone(),
            };
            (kind, peer)
        });
        Self {
            kinds: Arc::new(peers.collect()),
            holders: Arc::default(),
        }
    }

    /// The same with the services that can be asked for holders, by the groups of their kinds.
    #[must_use]
    pub fn with_holders(mut self, services: impl IntoIterator<Item = (String, Address)>) -> Self {
        let services = services.into_iter();
        self.holders = Arc::new(services.map(|(group, address)| (group, address.into())).collect());
        self
    }

    /// The service of the holders of a group.
    pub fn of_holders(&self, group: &str) -> Option<&HolderService> {
        self.holders.get(group)
    }

    /// The groups whose services can be asked for holders.
    pub fn groups_of_holders(&self) -> impl Iterator<Item = &String> {
        self.holders.keys()
    }

    /// The kind, where it is one of another service.
    pub fn of(&self, kind: &KindName) -> Option<&Peer> {
        self.kinds.get(kind)
    }

    /// All of them.
    pub fn kinds(&self) -> impl Iterator<Item = &KindName> {
        self.kinds.keys()
    }
}

impl Peer {
    /// `the service region at https://region.example.com:6443`.
    pub fn place(&self) -> String {
        format!("the service {} at {}", self.address.name, self.address.url)
    }

    /// The object at a place, with the references on it, as its service shows it at this moment.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn look(&self, key: &Key) -> Result<Option<Object>, ClusterError> {
        let number = self.looked.fetch_add(1, Ordering::SeqCst);
        match self.ask(Method::GET, key, None).await {
            Ok(answer) => {
                let found = object(key, number, &answer);
                found
                    .map(Some)
                    .ok_or_else(|| self.unclear("its answer shows no object"))
            }
            Err(unanswered) if unanswered.is_absence(key) => Ok(None),
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    /// Places a reference. That it is there already is success.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the object is being deleted, [`ClusterError::NotFound`] where there is none.
    pub async fn hold(&self, key: &Key, reference: &str) -> Result<(), ClusterError> {
        match self.ask(Method::PUT, key, Some(reference)).await {
            Ok(_) => Ok(()),
            Err(Unanswered::Status(status)) if status.code == 409 => {
                Err(ClusterError::Conflict(status.message.clone()))
            }
            Err(unanswered) if unanswered.is_absence(key) => {
                Err(ClusterError::NotFound(format!("{key} at {}", self.place())))
            }
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    /// Releases a reference. That it or its object is not there is success.
    ///
    /// # Errors
    /// Where the service does not say that it is released.
    pub async fn release(&self, key: &Key, reference: &str) -> Result<(), ClusterError> {
        match self.ask(Method::DELETE, key, Some(reference)).await {
            Ok(_) => Ok(()),
            Err(unanswered) if unanswered.is_absence(key) => Ok(()),
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    /// The objects that bear a reference of one of these kinds.
    async fn bearers(&self, holders: &[KindName]) -> Result<Vec<Key>, ClusterError> {
        let resource = self.resource().await?;
        let api: Api<DynamicObject> = Api::all_with(resource.client.clone(), &resource.api);
        let mut parameters = ListParams::default().limit(PAGE_OBJECTS);
        let mut bearers = Vec::new();
        loop {
            let listed = timeout(ANSWER_TIMEOUT, api.list(&parameters)).await;
            let listed = listed.map_err(|_| self.late())?.map_err(|error| self.failed(error))?;
            for object in &listed.items {
                let mut names = object
                    .finalizers()
                    .iter()
                    .filter_map(|one| ReferenceName::of_finalizer(one));
                if names.any(|name| is_of(&name, holders)) {
                    bearers.push(Key {
                        kind: self.kind.clone(),
                        namespace: object.namespace().unwrap_or_default(),
                        name: object.name_any(),
                    });
                }
            }
            parameters.continue_token = listed.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                return Ok(bearers);
            }
        }
    }

    /// The topic of its events, and whom to ask for them. Whether an object is absent is asked of its API in any case.
    async fn events(&self) -> Result<Topic, ClusterError> {
        let resource = self.resource().await?;
        let certificates = self.address.ca_file.as_ref().map(std::fs::read).transpose();
        let certificates = certificates.map_err(|error| self.unclear(&format!("its certificates: {error}")))?;
        let token = self.address.token_file.clone().map(|path| Token::File(path.into()));
        let source = HttpSource::new(&self.address.url, certificates.as_deref(), token);
        let source = source.map_err(|error| self.unclear(&error.to_string()))?;
        let topic = topic(&resource.api);
        Ok(Topic {
            look_up: Arc::new(HttpLookUp::new(source.clone(), &topic)),
            source: match &self.events {
                Transport::Events => Arc::new(source),
                Transport::Watch => Arc::new(ListWatch::new(resource.client.clone())),
                Transport::Shared(events) => events.clone(),
            },
            topic,
        })
    }

    async fn ask(&self, method: Method, key: &Key, reference: Option<&str>) -> Result<Value, Unanswered> {
        let resource = self.resource().await?;
        let path = path(&topic(&resource.api), key, reference);
        let request = Request::builder().method(method).uri(path).body(Vec::new());
        let request = request.map_err(|error| ClusterError::Refused(error.to_string()))?;
        match timeout(ANSWER_TIMEOUT, resource.client.request::<Value>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) => Err(Unanswered::Status(status)),
            Ok(Err(error)) => Err(self.failed(error).into()),
            Err(_) => Err(self.late().into()),
        }
    }

    /// How the service calls the kind. Asked once: a kind keeps its plural.
    async fn resource(&self) -> Result<&Resource, ClusterError> {
        let asked = self.resource.get_or_try_init(|| async {
            let client = self.client().await?;
            let group = timeout(ANSWER_TIMEOUT, discovery::group(&client, &self.kind.group)).await;
            let group = group.map_err(|_| self.late())?.map_err(|error| self.failed(error))?;
            let found = group.recommended_kind(&self.kind.kind);
            let (api, _) = found.ok_or_else(|| self.unclear(&format!("it has no kind {}", self.kind.kind)))?;
            Ok(Resource { client, api })
        });
        asked.await
    }

    async fn client(&self) -> Result<Client, ClusterError> {
        self.address.client().await.map_err(|why| self.unclear(&why))
    }

    /// Nothing follows from an answer that is none of this object.
    fn why(&self, unanswered: Unanswered) -> ClusterError {
        match unanswered {
            Unanswered::Status(status) => self.refused(&status),
            Unanswered::Other(error) => error,
        }
    }

    fn failed(&self, error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => self.refused(&status),
            other => self.unclear(&chain(&other)),
        }
    }

    fn refused(&self, status: &Status) -> ClusterError {
        match status.code {
            404 | 408 | 409 | 429 | 500.. => self.unclear(&status.message),
            _ => ClusterError::Refused(format!("{}: {}", self.place(), status.message)),
        }
    }

    fn late(&self) -> ClusterError {
        self.unclear("no answer in time")
    }

    fn unclear(&self, why: &str) -> ClusterError {
        ClusterError::Retryable {
            cause: "unavailable",
            retry_after: None,
            message: format!("{} does not answer: {why}", self.place()),
        }
    }
}

fn is_of(name: &ReferenceName, holders: &[KindName]) -> bool {
    let mut holders = holders.iter();
    holders.any(|kind| name.group() == kind.group && name.kind().eq_ignore_ascii_case(&kind.kind))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use kindex_events::{SourceError, Subscribe, Subscription};

    use serde_json::json;

    use super::*;

    struct Elsewhere;

    #[async_trait]
    impl Source for Elsewhere {
        async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
            Err(SourceError::UnknownTopic(to.topic.clone()))
        }
    }

    #[tokio::test]
    async fn events_come_from_where_they_are_said_to_be_read() {
        let kind = KindName::new("region.example.com", "Network");
        let address = Address {
            name: "region".to_owned(),
            url: "http://127.0.0.1:1".to_owned(),
            ca_file: None,
            token_file: None,
        };
        let elsewhere: Arc<dyn Source> = Arc::new(Elsewhere);
        let transports = [
            (Transport::Shared(elsewhere.clone()), true),
            (Transport::Events, false),
            (Transport::Watch, false),
        ];
        for (events, is_read_there) in transports {
            let peers = Peers::new([(kind.clone(), address.clone())], &events);
            let peer = peers.of(&kind).expect("it is known");
            let resource = Resource {
                client: peer.client().await.expect("a client"),
                api: ApiResource {
                    group: kind.group.clone(),
                    version: "v1".to_owned(),
                    api_version: "region.example.com/v1".to_owned(),
                    kind: kind.kind.clone(),
                    plural: "networks".to_owned(),
                },
            };
            assert!(peer.resource.set(resource).is_ok(), "nobody has asked yet");
            let from = peer.events().await.expect("a topic");
            assert_eq!(from.topic, "networks.region.example.com");
            assert_eq!(Arc::ptr_eq(&from.source, &elsewhere), is_read_there);
        }
    }

    #[test]
    fn a_refusal_is_not_tried_again_and_an_outage_is() {
        let said = |code: u16| {
            let status = json!({"code": code, "message": "", "details": {"name": "blue"}});
            Unanswered::Status(serde_json::from_value(status).expect("a status"))
        };
        let kind = KindName::new("region.example.com", "Network");
        let address = Address {
            name: "region".to_owned(),
            url: "http://region".to_owned(),
            ca_file: None,
            token_file: None,
        };
        let peer = Peers::new([(kind.clone(), address)], &Transport::Events);
        let peer = peer.of(&kind).expect("it is known");
        let why = peer.why(said(503));
        assert!(matches!(why, ClusterError::Retryable { .. }), "{why}");
        assert!(matches!(peer.why(said(403)), ClusterError::Refused(_)));
    }
}
