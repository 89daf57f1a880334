//! Lists and watches of an API server as a transport, of the metadata of objects. Serves kinds without events too. A
//! position is a resource version of the cluster; changes that SQL made have none, and a bookmark follows them.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta, Status};
use kube::{Client, discovery};
use tokio::time::timeout;

use crate::event::{Event, Message};
use crate::position::Position;
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
        let unknown = || SourceError::UnknownTopic(topic.to_owned());
        let (plural, group) = topic.split_once('.').ok_or_else(unknown)?;
        let group = match discovery::group(&self.client, group).await {
            Err(kube::Error::Discovery(_)) => return Err(unknown()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(unknown()),
            group => group.map_err(failed)?,
        };
        let resources = group.recommended_resources();
        let found = resources.into_iter().find(|(resource, _)| resource.plural == plural);
        let (resource, _) = found.ok_or_else(unknown)?;
        Ok(Api::all_with(self.client.clone(), &resource))
    }
}

#[async_trait]
impl Source for ListWatch {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        let objects = self.objects(&to.topic).await?;
        let topic = Topic {
            name: to.topic.clone(),
            deleting: to.deleting,
        };
        let state = match &to.from {
            None => State::List(None),
            Some(from) => {
                let from = ResourceVersion(from.decode(VIA, &to.topic)?);
                check(&objects, from).await?;
                State::Watch(watch(&objects, from).await?)
            }
        };
        let messages = stream::try_unfold(state, move |state| {
            let (objects, topic) = (objects.clone(), topic.clone());
            async move { state.advance(&objects, &topic).await }
        });
        let messages = messages.map_ok(|messages| stream::iter(messages.into_iter().map(Ok)));
        Ok(messages.try_flatten().boxed())
    }
}

/// Whether the server has come as far as a version. If it has not, its database was restored since, and a watch would
/// be silent until it has.
async fn check(objects: &Api<DynamicObject>, from: ResourceVersion) -> Result<(), SourceError> {
    let last = objects.list_metadata(&ListParams::default().limit(1)).await;
    let last = version(last.map_err(failed)?.metadata.resource_version.as_deref());
    match last {
        Some(last) if last < from => Err(SourceError::Gone(format!("{from} is beyond {last}, the last version"))),
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
        (!is_direct).then(|| Position::encode(VIA, &self.name, &version.0))
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
    match status.code {
        410 => SourceError::Gone(message),
        408 | 409 | 429 | 500.. => SourceError::interrupted(message),
        _ => SourceError::Refused(message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SQL_GAVE_IT: &str = "4611703610613432327";

    fn topic(deleting: bool) -> Topic {
        Topic {
            name: "runs.g".to_owned(),
            deleting,
        }
    }

    fn message(topic: &Topic, r#type: &str, metadata: &Value) -> Result<Option<Message>, SourceError> {
        let object = json!({"apiVersion": "g/v1", "kind": "Run", "metadata": metadata});
        let event = serde_json::from_value(json!({"type": r#type, "object": object}));
        topic.message_of(event.expect("an event"))
    }

    #[test]
    fn an_event_is_resumed_at_a_version_of_the_cluster_alone() {
        let place = |version: &str| {
            let metadata = json!({"name": "a", "uid": "u", "resourceVersion": version});
            let message = message(&topic(false), "MODIFIED", &metadata).expect("no error");
            message.and_then(|message| message.position().cloned())
        };
        let known = place("7").expect("a position");
        assert_eq!(known.decode::<u64>(VIA, "runs.g"), Ok(7));
        assert_eq!(place(SQL_GAVE_IT), None);
        assert_eq!(place("nonsense"), None);
    }

    #[test]
    fn what_the_filter_holds_back_moves_the_position() {
        let live = json!({"name": "a", "uid": "u", "resourceVersion": "7"});
        let leaving = json!({"name": "a", "uid": "u", "resourceVersion": "7",
            "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let sent = |deleting, r#type, metadata: &Value| {
            let message = message(&topic(deleting), r#type, metadata).expect("no error");
            let message = message.expect("a message");
            assert!(message.position().is_some(), "{message:?}");
            message
                .event()
                .map(|event| (event.deletion_timestamp.is_some(), event.erased))
        };
        assert_eq!(sent(false, "ADDED", &live), Some((false, false)));
        assert_eq!(sent(true, "ADDED", &live), None);
        assert_eq!(sent(true, "MODIFIED", &leaving), Some((true, false)));
        assert_eq!(sent(true, "DELETED", &live), Some((false, true)));
        assert_eq!(sent(false, "BOOKMARK", &live), None);
        let nobody = json!({"name": "a", "resourceVersion": "7"});
        assert_eq!(message(&topic(false), "ADDED", &nobody), Ok(None));
    }

    #[test]
    fn a_version_that_is_forgotten_is_gone_and_an_outage_is_not() {
        let said = |code: u16| {
            let status = json!({"code": code, "message": "m"});
            refused(&serde_json::from_value(status).expect("a status"))
        };
        assert_eq!(said(410), SourceError::Gone("m".to_owned()));
        assert_eq!(said(403), SourceError::Refused("m".to_owned()));
        for code in [408, 429, 500, 504] {
            assert!(matches!(said(code), SourceError::Interrupted { .. }), "{code}");
        }
    }
}
