//! Lists and watches of an API server as a transport, of the metadata of objects. Serves kinds without events too. A
//! position is a resource version and the cluster that gave it; changes that SQL made have none, and a bookmark follows
//! them.
//!
//! # Assumptions
//! The caller may get the namespace `kube-system`, whose uid tells one cluster from another. Otherwise the number of a
//! position is all that is compared. A cluster that is restored from its own backup keeps the uid: it has to continue
//! with higher numbers and without its old history, as `etcdutl snapshot restore --bump-revision --mark-compacted`
//! does.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kindex_kube_client::identity::{Identity, identify};
use kindex_kube_client::{DiscoveryQuery, Outcome, Served, outcome_of, served};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta, Status};
use kube::{Client, discovery};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::event::{Event, Message};
use crate::position::{Position, PositionError};
use crate::source::{Source, SourceError, Subscribe, Subscription};

/// What positions say that they came by.
const VIA: &str = "watch";
/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;
/// How long a watch lasts before it is begun anew.
const WATCH_SECONDS: u32 = 120;
/// Longest silence, bookmarks included.
const SILENCE_MAX: Duration = Duration::from_secs(150);

type Watched = Result<WatchEvent<PartialObjectMeta<DynamicObject>>, kube::Error>;

/// An API server of Kindex, or one of Kubernetes, which has no archived objects.
#[derive(Clone)]
pub struct ListWatch {
    client: Client,
}

impl ListWatch {
    /// The server of a client that repeats nothing by itself.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The objects of a topic.
    async fn objects(&self, topic: &str) -> Result<Api<DynamicObject>, SourceError> {
        let named = topic.split_once('.').filter(|(_, group)| !group.is_empty());
        let (plural, group) = named.ok_or_else(|| SourceError::UnknownTopic(topic.to_owned()))?;
        let in_any_version = DiscoveryQuery {
            group,
            version: "",
            plural,
            scope: None,
        };
        let found = match discovery::group(&self.client, group).await {
            Err(kube::Error::Discovery(_)) => return Err(self.unknown(topic, &in_any_version).await),
            found => found.map_err(failed)?,
        };
        let resources = found.recommended_resources();
        match resources.into_iter().find(|(resource, _)| resource.plural == plural) {
            Some((resource, _)) => Ok(Api::all_with(self.client.clone(), &resource)),
            None => {
                let missing = DiscoveryQuery {
                    version: found.preferred_version_or_latest(),
                    ..in_any_version
                };
                Err(self.unknown(topic, &missing).await)
            }
        }
    }

    /// Why a topic was not found. What stands before the server may have answered, with JSON that reads as a discovery
    /// without kinds: a subscription must not end for ever because of that.
    async fn unknown(&self, topic: &str, missing: &DiscoveryQuery<'_>) -> SourceError {
        match served(&self.client, missing).await {
            Ok(Served::Nowhere) => SourceError::UnknownTopic(topic.to_owned()),
            // In versions that the server does not prefer.
            Ok(Served::InOtherVersion) if !missing.version.is_empty() => SourceError::UnknownTopic(topic.to_owned()),
            Ok(Served::Hidden) => SourceError::Refused(format!("the discovery of {} may not be read", missing.group)),
            Ok(Served::Here | Served::InOtherScope | Served::InOtherVersion | Served::Unknown) => {
                SourceError::interrupted(format_args!("the server does not say whether it has {topic}"))
            }
            Err(error) => failed(error),
        }
    }

    /// Which cluster it is; `None` where the caller may not know it, or there is nothing that tells it.
    async fn cluster(&self) -> Result<Option<String>, SourceError> {
        match identify(&self.client).await.map_err(failed)? {
            Identity::Known(uid) => Ok(Some(uid.to_string())),
            Identity::Absent | Identity::Hidden => Ok(None),
        }
    }
}

#[async_trait]
impl Source for ListWatch {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        let objects = self.objects(&to.topic).await?;
        let (state, cluster) = match &to.from {
            // Known before anything is listed: where the list is of another one by then, its position is gone.
            None => (State::List(None), self.cluster().await?),
            Some(from) => {
                let from = ResumePoint::read(from, &to.topic)?;
                check(&objects, from.version()).await?;
                let watched = watch(&objects, from.version()).await?;
                // Asked once the watch has begun: it is of this cluster, or of one that is there no more.
                let cluster = self.cluster().await?;
                from.check(cluster.as_deref())?;
                (State::Watch(watched), cluster)
            }
        };
        let topic = Topic {
            name: to.topic.clone(),
            deleting: to.deleting,
            cluster,
        };
        let messages = stream::try_unfold(state, move |state| {
            let (objects, topic) = (objects.clone(), topic.clone());
            async move { state.advance(&objects, &topic).await }
        });
        let messages = messages.map_ok(|messages| stream::iter(messages.into_iter().map(Ok)));
        Ok(messages.try_flatten().boxed())
    }
}

/// Where a watch can begin again.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct ResumePoint {
    /// The cluster that gave the version: another one comes to the same numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    version: u64,
}

impl ResumePoint {
    /// Reads a position. Before positions named their cluster, they were a version alone.
    fn read(position: &Position, topic: &str) -> Result<Self, PositionError> {
        let version = |error: PositionError| match position.decode::<u64>(VIA, topic) {
            Ok(version) => Ok(Self { cluster: None, version }),
            Err(_) => Err(error),
        };
        position.decode::<Self>(VIA, topic).or_else(version)
    }

    fn version(&self) -> ResourceVersion {
        ResourceVersion(self.version)
    }

    /// Refuses the point in any cluster but its own. Where nobody says which cluster it is, neither the position nor
    /// the cluster, the number has to do.
    fn check(&self, cluster: Option<&str>) -> Result<(), SourceError> {
        let why = match (self.cluster.as_deref(), cluster) {
            (of, now) if of == now => return Ok(()),
            (None, _) => "it does not name its cluster",
            (Some(_), None) => "the server does not say any more which cluster it is",
            (Some(_), Some(_)) => "it is one of another cluster",
        };
        Err(SourceError::gone(why))
    }
}

/// Whether the server has come as far as a version. If it has not, its database was restored since, and a watch would
/// be silent until it has.
async fn check(objects: &Api<DynamicObject>, from: ResourceVersion) -> Result<(), SourceError> {
    let last = objects.list_metadata(&ListParams::default().limit(1)).await;
    let last = version(last.map_err(failed)?.metadata.resource_version.as_deref());
    match last {
        Some(last) if last < from => Err(SourceError::gone(format_args!(
            "{from} is beyond {last}, the last version"
        ))),
        Some(_) | None => Ok(()),
    }
}

async fn watch(
    objects: &Api<DynamicObject>,
    from: ResourceVersion,
) -> Result<BoxStream<'static, Watched>, SourceError> {
    let parameters = WatchParams::default().timeout(WATCH_SECONDS);
    let watched = objects.watch_metadata(&parameters, &from.to_string()).await;
    Ok(watched.map_err(failed)?.boxed())
}

/// What a subscription does next.
enum State {
    /// Reads a page: the first one, or the one of this token.
    List(Option<String>),
    /// Begins a watch at a version.
    Begin(ResourceVersion),
    /// Waits for an event.
    Watch(BoxStream<'static, Watched>),
}

impl State {
    /// The next messages; nothing once the server ends the watch.
    async fn advance(
        self,
        objects: &Api<DynamicObject>,
        topic: &Topic,
    ) -> Result<Option<(Vec<Message>, Self)>, SourceError> {
        match self {
            Self::List(token) => {
                let parameters = ListParams {
                    continue_token: token,
                    ..ListParams::default().limit(PAGE_OBJECTS)
                };
                // A token that has expired is no position: it is begun from nothing again.
                let page = objects
                    .list_metadata(&parameters)
                    .await
                    .map_err(SourceError::interrupted)?;
                let items = page.items.iter();
                let messages = items.filter_map(|object| topic.message(&object.metadata, false, None));
                let mut messages: Vec<Message> = messages.collect();
                if let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) {
                    return Ok(Some((messages, Self::List(Some(token)))));
                }
                let version = version(page.metadata.resource_version.as_deref());
                let version = version.ok_or_else(|| SourceError::interrupted("a list without a resource version"))?;
                messages.push(Message::Replayed(topic.position(version)));
                Ok(Some((messages, Self::Begin(version))))
            }
            Self::Begin(version) => {
                let watched = watch(objects, version).await?;
                Ok(Some((Vec::new(), Self::Watch(watched))))
            }
            Self::Watch(mut watched) => {
                let event = timeout(SILENCE_MAX, watched.next()).await;
                let event = event.map_err(|_| SourceError::interrupted("the watch says nothing any more"))?;
                let Some(event) = event else {
                    return Ok(None);
                };
                let message = topic.message_of(event.map_err(failed)?)?;
                Ok(Some((message.into_iter().collect(), Self::Watch(watched))))
            }
        }
    }
}

/// What is subscribed to.
#[derive(Clone)]
struct Topic {
    name: String,
    deleting: bool,
    cluster: Option<String>,
}

impl Topic {
    fn message_of(&self, event: WatchEvent<PartialObjectMeta<DynamicObject>>) -> Result<Option<Message>, SourceError> {
        let (object, erased) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                let version = version(Some(&bookmark.metadata.resource_version));
                return Ok(Some(Message::Alive(version.and_then(|version| self.position(version)))));
            }
            WatchEvent::Error(status) => return Err(refused(&status)),
        };
        let version = version(object.metadata.resource_version.as_deref());
        let position = version.and_then(|version| self.position(version));
        Ok(self.message(&object.metadata, erased, position))
    }

    /// What is said of an object; nothing of one without a uid.
    fn message(&self, metadata: &ObjectMeta, erased: bool, position: Option<Position>) -> Option<Message> {
        let event = Event {
            resource_id: Uid::from(metadata.uid.as_deref()?),
            deletion_timestamp: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            topic: self.name.clone(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            erased,
        };
        Some(match self.deleting && !event.is_deleted() {
            true => Message::Alive(position),
            false => Message::Event(event, position),
        })
    }

    /// Where a watch can begin again: at a version that the cluster gave.
    fn position(&self, version: ResourceVersion) -> Option<Position> {
        let is_direct = RowVersion::unpack(version).is_direct();
        (!is_direct).then(|| {
            let place = ResumePoint {
                cluster: self.cluster.clone(),
                version: version.0,
            };
            Position::encode(VIA, &self.name, &place)
        })
    }
}

fn version(text: Option<&str>) -> Option<ResourceVersion> {
    text?.parse().ok().map(ResourceVersion)
}

fn failed(error: kube::Error) -> SourceError {
    match error {
        kube::Error::Api(status) => refused(&status),
        other => SourceError::interrupted(other),
    }
}

fn refused(status: &Status) -> SourceError {
    let message = status.message.clone();
    match outcome_of(status) {
        Outcome::Expired => SourceError::gone(message),
        // What stands before the server has pages of its own for that.
        Outcome::Unserved => SourceError::interrupted(message),
        outcome if outcome.is_transient() || outcome.is_conflict() => SourceError::interrupted(message),
        _ => SourceError::Refused(message),
    }
}

#[cfg(test)]
mod tests;
