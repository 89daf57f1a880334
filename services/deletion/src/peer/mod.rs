//! Other services whose objects ours refer to. Their API and their events are all that is used of them: an object is
//! looked up with the references on it, ours are placed and released there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kindex_events::Source;
use kindex_events::http_source::{HttpLookUp, HttpSource, Token};
use kindex_events::list_watch::ListWatch;
use kindex_kube_client::peer::{Address, PeerKind, Resource};
use kindex_kube_client::{ClusterError, ObjectName};
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, ObjectList, PartialObjectMeta};

use crate::object::{Key, KindName, Object};
use answer::{is_another, is_deleting, object, version};
use holder::HolderService;

mod answer;

pub mod holder;

pub mod follow;

pub mod look_ups;

/// An object in a list.
type Listed = PartialObjectMeta<DynamicObject>;

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

/// Look-ups are numbered as they are sent: what one of them shows is newer than what those before it show.
#[derive(Clone, Debug, Default)]
pub struct LookUps(Arc<AtomicU64>);

impl LookUps {
    /// The number of one that is about to be sent.
    pub(crate) fn begin(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The number of the last one that was sent; zero before the first one.
    pub fn last(&self) -> ResourceVersion {
        ResourceVersion(self.0.load(Ordering::SeqCst))
    }
}

/// The kinds of other services, each with its service.
#[derive(Clone, Default)]
pub struct Peers {
    kinds: Arc<BTreeMap<KindName, Peer>>,
    holders: Arc<BTreeMap<String, HolderService>>,
    look_ups: LookUps,
}

/// A kind of another service.
pub struct Peer {
    kind: KindName,
    service: PeerKind,
    /// Where its events are read.
    events: Transport,
    look_ups: LookUps,
}

/// The events of a kind.
struct Topic {
    topic: String,
    source: Arc<dyn Source>,
    look_up: Arc<HttpLookUp>,
    /// Those that both trust.
    certificates: Option<Vec<u8>>,
}

impl Peers {
    /// These kinds, with their events.
    pub fn new(kinds: impl IntoIterator<Item = (KindName, Address)>, events: &Transport) -> Self {
        let look_ups = LookUps::default();
        let peers = kinds.into_iter().map(|(kind, address)| {
            let peer = Peer {
                service: PeerKind::new(&kind.group, &kind.kind, address),
                kind: kind.clone(),
                events: events.clone(),
                look_ups: look_ups.clone(),
            };
            (kind, peer)
        });
        Self {
            kinds: Arc::new(peers.collect()),
            holders: Arc::default(),
            look_ups,
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

    /// The look-ups of all of them.
    pub fn look_ups(&self) -> &LookUps {
        &self.look_ups
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
    pub fn service_description(&self) -> String {
        self.service.service_description()
    }

    /// The object at a place, with the references on it, as its service shows it at this moment.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn look(&self, key: &Key) -> Result<Option<Object>, ClusterError> {
        let number = self.look_ups.begin();
        let Some(answer) = self.service.references(&object_name(key)).await? else {
            return Ok(None);
        };
        let found = object(key, number, &answer);
        let unclear = || self.service.unclear("its answer shows no object");
        found.map(Some).ok_or_else(unclear)
    }

    /// Whether its service deletes this very object at this moment. Each of its holders asks that, and there may be
    /// many: none of them reads the references of all.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn deletes(&self, key: &Key, uid: &str) -> Result<bool, ClusterError> {
        let answer = self.service.look(&object_name(key)).await?;
        Ok(answer.is_some_and(|answer| is_deleting(uid, &answer)))
    }

    /// Places a reference. That it is there already is success.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the object is being deleted, [`ClusterError::NotFound`] where there is none.
    pub async fn place_reference(&self, key: &Key, reference: &str) -> Result<(), ClusterError> {
        let placed = self.service.place_reference(&object_name(key), reference).await;
        placed.map(drop)
    }

    /// The version in which its service has this very object in the cluster; `None` where it says none, or has none.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where another object has its name; else where the service does not say whether there
    /// is one.
    pub async fn version(&self, key: &Key, uid: &str) -> Result<Option<String>, ClusterError> {
        let Some(answer) = self.service.look(&object_name(key)).await? else {
            return Ok(None);
        };
        match is_another(uid, &answer) {
            true => Err(ClusterError::Conflict(format!("another object is {key} now"))),
            false => Ok(version(&answer).map(str::to_owned)),
        }
    }

    /// Releases a reference; with a version, only if an object in the cluster has that still. That it or its object is
    /// not there is success.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the object has another version; else where the service does not say that it is
    /// released.
    pub async fn release_reference(&self, key: &Key, reference: &str, at: Option<&str>) -> Result<(), ClusterError> {
        self.service.release_reference(&object_name(key), reference, at).await
    }

    /// The objects that have a reference of one of these kinds.
    async fn targets(&self, holders: &[KindName]) -> Result<Vec<Key>, ClusterError> {
        let (mut targets, mut token) = (Vec::new(), None);
        loop {
            let listed = self.listed(token).await?;
            for object in &listed.items {
                let mut names = object
                    .finalizers()
                    .iter()
                    .filter_map(|one| ReferenceName::of_finalizer(one));
                if names.any(|name| is_of(&name, holders)) {
                    targets.push(self.key(object));
                }
            }
            token = next(&listed);
            if token.is_none() {
                return Ok(targets);
            }
        }
    }

    /// A page of its objects, live and archived, with the token of the next page. A list does not show all references
    /// on an object: those on archived ones are rows.
    ///
    /// # Errors
    /// Where the service does not list them.
    pub async fn page(&self, token: Option<&str>) -> Result<(Vec<Key>, Option<String>), ClusterError> {
        let listed = self.listed(token.map(str::to_owned)).await?;
        let keys = listed.items.iter().map(|object| self.key(object));
        Ok((keys.collect(), next(&listed)))
    }

    /// Nothing of the objects but their metadata.
    async fn listed(&self, token: Option<String>) -> Result<ObjectList<Listed>, ClusterError> {
        let resource = self.service.resource().await?;
        let api: Api<DynamicObject> = Api::all_with(resource.client.clone(), &resource.api);
        let parameters = ListParams {
            continue_token: token,
            ..ListParams::default().limit(PAGE_OBJECTS)
        };
        self.service.within(api.list_metadata(&parameters)).await
    }

    fn key(&self, object: &Listed) -> Key {
        Key {
            kind: self.kind.clone(),
            namespace: object.namespace().unwrap_or_default().into(),
            name: object.name_any().into(),
        }
    }

    /// The topic of its events, and whom to ask for them. Whether an object is absent is asked of its API in any case.
    async fn events(&self) -> Result<Topic, ClusterError> {
        self.topic(self.service.resource().await?)
    }

    fn topic(&self, resource: &Resource) -> Result<Topic, ClusterError> {
        let address = self.service.address();
        let certificates = address.ca_file.as_ref().map(std::fs::read).transpose();
        let unclear = |error: &dyn std::fmt::Display| self.service.unclear(&error.to_string());
        let certificates = certificates.map_err(|error| unclear(&format!("its certificates: {error}")))?;
        let token = address.token_file.clone().map(|path| Token::File(path.into()));
        let source = HttpSource::new(&address.url, certificates.as_deref(), token);
        let source = source.map_err(|error| unclear(&error))?;
        let topic = resource.topic();
        Ok(Topic {
            look_up: Arc::new(HttpLookUp::new(source.clone(), &topic)),
            source: match &self.events {
                Transport::Events => Arc::new(source),
                Transport::Watch => Arc::new(ListWatch::new(resource.client.clone())),
                Transport::Shared(events) => events.clone(),
            },
            topic,
            certificates,
        })
    }
}

/// The token of the page after this one.
fn next(listed: &ObjectList<Listed>) -> Option<String> {
    listed.metadata.continue_.clone().filter(|token| !token.is_empty())
}

fn object_name(key: &Key) -> ObjectName {
    ObjectName {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

fn is_of(name: &ReferenceName, holders: &[KindName]) -> bool {
    let mut holders = holders.iter();
    holders.any(|kind| name.group() == kind.group && name.kind().eq_ignore_ascii_case(&kind.kind))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use async_trait::async_trait;
    use kindex_events::{SourceError, Subscribe, Subscription};
    use kube::core::ApiResource;
    use tokio::time::{Duration, Instant, sleep};

    use super::*;
    use crate::fixture::key_in;

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
                client: address.client().await.expect("a client"),
                api: ApiResource {
                    group: kind.group.to_string(),
                    version: "v1".to_owned(),
                    api_version: "region.example.com/v1".to_owned(),
                    kind: kind.kind.to_string(),
                    plural: "networks".to_owned(),
                },
            };
            let from = peer.topic(&resource).expect("a topic");
            assert_eq!(from.topic, "networks.region.example.com");
            assert_eq!(Arc::ptr_eq(&from.source, &elsewhere), is_read_there);
        }
    }

    /// As if each look-up waited until all before it had found out that nobody answers. The clock stands still while
    /// anything is left to do.
    #[tokio::test(start_paused = true)]
    async fn several_look_ups_wait_for_a_service_that_hangs_as_long_as_one_does() {
        let hanging = TcpListener::bind("127.0.0.1:0").expect("a port that nobody reads from");
        let network = |name: &str| key_in("region.example.com", "Network", name);
        let address = Address {
            name: "region".to_owned(),
            url: format!("http://{}", hanging.local_addr().expect("an address")),
            ca_file: None,
            token_file: None,
        };
        let peers = Peers::new([(network("a").kind, address)], &Transport::Events);
        let peer = peers.of(&network("a").kind).expect("it is known");
        let begun = Instant::now();
        assert!(peer.look(&network("a")).await.is_err());
        let (one, begun) = (begun.elapsed(), Instant::now());
        let (a, b, c) = (network("a"), network("b"), network("c"));
        let (a, b, c) = tokio::join!(peer.look(&a), peer.look(&b), peer.look(&c));
        assert!(a.is_err() && b.is_err() && c.is_err());
        assert!(begun.elapsed() < one * 2, "{one:?} {:?}", begun.elapsed());
        // As if each one that comes later had what is left of its time for a try of its own, too little for any answer.
        let (second, begun) = (Duration::from_secs(1), Instant::now());
        let later = async {
            sleep(second).await;
            peer.look(&network("b")).await
        };
        let network_a = network("a");
        let (first, later) = tokio::join!(peer.look(&network_a), later);
        assert!(first.is_err() && later.is_err());
        assert!(begun.elapsed() < one + second / 2, "{one:?} {:?}", begun.elapsed());
    }
}
