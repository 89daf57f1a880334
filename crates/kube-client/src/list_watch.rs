//! Events over lists and watches of a Kubernetes API: the replay is a list, what changes comes from a watch. Asks for
//! metadata alone. With Kindex's API server archived objects are in both.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, stream};
use jiff::Timestamp;
use kindex_events::{Event, Message, Position, Source, SourceError, Subscribe, Subscription};
use kindex_kube_api::list::List;
use kindex_kube_api::request::Collection;
use kindex_kube_api::watch::{EventType, Frame};
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use serde::Deserialize;
use tokio::time::timeout;

use super::ClusterError;
use super::classify::{classify, classify_status};
use super::kube_cluster::{KubeCluster, built};
use super::wire::parse;

/// The transport, as positions name it.
const VIA: &str = "watch";
/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;
/// Longest answer to anything but a watch.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server is asked to keep a watch, and how long its silence is borne.
const WATCH_SECONDS: u32 = 240;
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);
/// What is wanted of objects.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The kinds of an API server as topics.
#[derive(Clone)]
pub struct ListWatch {
    cluster: KubeCluster,
    kinds: &'static [&'static Kind],
}

impl ListWatch {
    /// These kinds of this API server.
    pub fn new(cluster: KubeCluster, kinds: &'static [&'static Kind]) -> Self {
        Self { cluster, kinds }
    }
}

#[async_trait]
impl Source for ListWatch {
    /// Positions come with changes and with the end of the replay: a list that is cut off begins again.
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        let mut kinds = self.kinds.iter().copied();
        let kind = kinds.find(|kind| topic(kind) == to.topic);
        let kind = kind.ok_or_else(|| SourceError::UnknownTopic(to.topic.clone()))?;
        let from = to.from.as_ref().map(|from| from.decode::<u64>(VIA, &to.topic));
        let from = from.transpose()?.map(ResourceVersion);
        let mut following = Following {
            cluster: self.cluster.clone(),
            kind,
            topic: to.topic.clone(),
            deleting: to.deleting,
            pending: VecDeque::new(),
            step: Step::List(None),
        };
        match from {
            Some(version) => following.watch(version).await?,
            None => following.list(None).await?,
        }
        let messages = stream::unfold(Some(following), |following| async {
            let mut following = following?;
            let message = following.next().await;
            let following = message.is_ok().then_some(following);
            Some((message, following))
        });
        Ok(messages.boxed())
    }
}

fn topic(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

/// The lines of a watch.
type Lines = Pin<Box<dyn AsyncBufRead + Send>>;

/// What comes next.
enum Step {
    /// The next page of the list.
    List(Option<String>),
    /// A watch from this version.
    Watch(ResourceVersion),
    /// The next line of the watch, whose client has seen this version.
    Read(Lines, ResourceVersion),
}

/// One subscription.
struct Following {
    cluster: KubeCluster,
    kind: &'static Kind,
    topic: String,
    deleting: bool,
    pending: VecDeque<Message>,
    step: Step,
}

impl Following {
    async fn next(&mut self) -> Result<Message, SourceError> {
        loop {
            if let Some(message) = self.pending.pop_front() {
                return Ok(message);
            }
            match &mut self.step {
                Step::List(token) => {
                    let token = token.clone();
                    self.list(token).await?;
                }
                Step::Watch(version) => {
                    let version = *version;
                    self.watch(version).await?;
                }
                Step::Read(..) => self.read().await?,
            }
        }
    }

    fn collection(&self) -> Collection<'static> {
        Collection {
            group: self.kind.group,
            version: self.kind.version,
            plural: self.kind.plural,
            namespace: None,
        }
    }

    fn position(&self, version: ResourceVersion) -> Position {
        Position::encode(VIA, &self.topic, &version.0)
    }

    /// Reads a page; after the last one the replay has ended.
    async fn list(&mut self, token: Option<String>) -> Result<(), SourceError> {
        let params = ListParams {
            limit: Some(PAGE_OBJECTS),
            continue_token: token,
            ..ListParams::default()
        };
        let request = Request::new(self.collection().path()).list(&params);
        let request = accepting(built(request).map_err(of_cluster)?, METADATA_LIST);
        let text = self.cluster.answer(self.cluster.client.request_text(request)).await;
        // A page that has expired ends the replay, and no position does.
        let text = text.map_err(|error| match error {
            ClusterError::Expired(message) => SourceError::interrupted(message),
            error => of_cluster(error),
        })?;
        let list: List = parse(&text).map_err(of_cluster)?;
        for item in list.items.iter().flatten() {
            let object = parse::<Head>(item.get()).map_err(of_cluster)?.metadata;
            self.send(object, false, None);
        }
        self.step = match list.metadata.next() {
            Some(token) => Step::List(Some(token.to_owned())),
            None => {
                let version = version_of(&list.metadata.resource_version)
                    .ok_or_else(|| SourceError::Refused("a list without a version".to_owned()))?;
                self.pending.push_back(Message::Replayed(Some(self.position(version))));
                Step::Watch(version)
            }
        };
        Ok(())
    }

    /// Watches after a version.
    async fn watch(&mut self, version: ResourceVersion) -> Result<(), SourceError> {
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let request = Request::new(self.collection().path()).watch(&params, &version.to_string());
        let mut request = accepting(built(request).map_err(of_cluster)?, METADATA);
        // Kubernetes compresses watches one member an event, which decoders take for the end.
        let identity = "identity".parse().expect("a header value");
        request.headers_mut().insert("accept-encoding", identity);
        let opened = timeout(CALL_TIMEOUT, self.cluster.client.request_stream(request)).await;
        let lines = opened.map_err(|_| SourceError::interrupted("no answer to a watch"))?;
        let lines = lines.map_err(|error| of_cluster(classify(&error)))?;
        self.step = Step::Read(Box::pin(lines), version);
        Ok(())
    }

    /// Reads a line of the watch; where the server ends it in order, it is watched on.
    async fn read(&mut self) -> Result<(), SourceError> {
        let Step::Read(lines, reached) = &mut self.step else {
            return Ok(());
        };
        let (mut line, reached) = (Vec::new(), *reached);
        let read = timeout(SILENCE_MAX, lines.read_until(b'\n', &mut line)).await;
        let read = read.map_err(|_| SourceError::interrupted("the watch is silent"))?;
        if read.map_err(SourceError::interrupted)? == 0 {
            self.step = Step::Watch(reached);
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let frame: Frame<'_> = parse(&text).map_err(of_cluster)?;
        if frame.r#type == EventType::Error {
            let status = parse(frame.object.get()).map_err(of_cluster)?;
            return Err(of_cluster(classify_status(&status)));
        }
        let object = parse::<Head>(frame.object.get()).map_err(of_cluster)?.metadata;
        // One that SQL gave is no version to watch from.
        let version = version_of(&object.resource_version);
        let reached = version.unwrap_or(reached).max(reached);
        if let Step::Read(_, known) = &mut self.step {
            *known = reached;
        }
        let position = Some(self.position(reached));
        match frame.r#type {
            EventType::Added | EventType::Modified => self.send(object, false, position),
            EventType::Deleted => self.send(object, true, position),
            EventType::Bookmark | EventType::Other(_) | EventType::Error => {
                self.pending.push_back(Message::Alive(position));
            }
        }
        Ok(())
    }

    fn send(&mut self, object: ObjectMetadata, erased: bool, position: Option<Position>) {
        let event = Event {
            resource_id: Uid::from(object.uid.as_str()),
            deletion_timestamp: object.deletion_timestamp,
            topic: self.topic.clone(),
            namespace: object.namespace,
            name: object.name,
            erased,
        };
        match !self.deleting || event.is_deleted() {
            true => self.pending.push_back(Message::Event(event, position)),
            false => self.pending.push_back(Message::Alive(position)),
        }
    }
}

/// An object, of which only metadata is read.
#[derive(Deserialize)]
struct Head {
    metadata: ObjectMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectMetadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
}

/// A version of the cluster.
fn version_of(text: &str) -> Option<ResourceVersion> {
    let number = text.parse().map(ResourceVersion).ok()?;
    (!RowVersion::unpack(number).is_direct()).then_some(number)
}

fn accepting(mut request: http::Request<Vec<u8>>, form: &'static str) -> http::Request<Vec<u8>> {
    let form = http::HeaderValue::from_static(form);
    request.headers_mut().insert(http::header::ACCEPT, form);
    request
}

fn of_cluster(error: ClusterError) -> SourceError {
    match error {
        ClusterError::Expired(message) => SourceError::Gone(message),
        ClusterError::NotFound(message) | ClusterError::Refused(message) => SourceError::Refused(message),
        ClusterError::Conflict(message) => SourceError::interrupted(message),
        ClusterError::Retryable {
            message, retry_after, ..
        } => SourceError::Interrupted { message, retry_after },
    }
}
