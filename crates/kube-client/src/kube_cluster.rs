//! [`ClusterApi`](super::ClusterApi) over the `kube` client, with requests of our own: lists and watches
//! are read as text, so that an object stays what the API server sent to the byte.

use std::time::Duration;

use async_trait::async_trait;
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, stream};
use kindex_kube_api::request::Collection;
use kindex_model::kind::{Kind, Scope};
use kindex_model::object::{Object, ResourceVersion};
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions, WatchParams};
use kube::core::Request;
use serde_json::json;

use super::classify::classify;
use super::event;
use super::notice::event_of;
use super::wire::{parse_object, read_line, read_page};
use super::{
    ClusterError, EventApi, Notice, ObjectName, Page, ReadApi, Target, WatchApi, WatchEvent, WatchStream, WriteApi,
};

/// Longest answer to anything but a watch.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server is asked to keep a watch, and how long silence is tolerated beyond it: a peer
/// that died without a word is noticed no sooner.
const WATCH_SECONDS: u32 = 60;
const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// A Kubernetes API server.
#[derive(Clone)]
pub struct KubeCluster {
    pub(super) client: kube::Client,
}

impl KubeCluster {
    /// Connects as this configuration says. Requests are not repeated below the ingester,
    /// which must know of every failure whose outcome is open.
    ///
    /// # Errors
    /// [`ClusterError::Refused`] where the configuration cannot be used.
    pub fn new(mut config: kube::Config) -> Result<Self, ClusterError> {
        config.default_retry = false;
        let client = kube::Client::try_from(config).map_err(|error| classify(&error))?;
        Ok(Self::from(client))
    }

    pub(super) async fn answer<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, ClusterError> {
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(answer) => answer.map_err(|error| classify(&error)),
            Err(_) => Err(silence(CALL_TIMEOUT)),
        }
    }
}

impl From<kube::Client> for KubeCluster {
    /// Sends through a client that stands already and repeats nothing by itself.
    fn from(client: kube::Client) -> Self {
        Self { client }
    }
}

pub(super) fn built<T>(request: Result<T, kube::core::request::Error>) -> Result<T, ClusterError> {
    request.map_err(|error| ClusterError::Refused(error.to_string()))
}

fn silence(waited: Duration) -> ClusterError {
    ClusterError::Retryable {
        cause: "timeout",
        retry_after: None,
        message: format!("no answer within {} s", waited.as_secs()),
    }
}

/// The path of a kind's objects, in one namespace or in all.
fn path(kind: &Kind, namespace: Option<&str>) -> String {
    let objects = Collection {
        group: kind.group,
        version: kind.version,
        plural: kind.plural,
        namespace: namespace.filter(|_| kind.scope == Scope::Namespaced),
    };
    objects.path()
}

pub(super) fn of_object(kind: &Kind, name: &ObjectName) -> Request {
    Request::new(path(kind, Some(&name.namespace)))
}

/// The next event; `None` at the end of the stream.
async fn next_event(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<Result<WatchEvent, ClusterError>> {
    loop {
        let mut line = Vec::new();
        let read = tokio::time::timeout(WATCH_SILENCE, reader.read_until(b'\n', &mut line)).await;
        match read {
            Err(_) => return Some(Err(silence(WATCH_SILENCE))),
            Ok(Err(error)) => {
                return Some(Err(ClusterError::Retryable {
                    cause: "connection",
                    retry_after: None,
                    message: error.to_string(),
                }));
            }
            Ok(Ok(0)) => return None,
            Ok(Ok(_)) if line.trim_ascii().is_empty() => {}
            Ok(Ok(_)) => match read_line(&line) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => return Some(Err(error)),
            },
        }
    }
}

#[async_trait]
impl ReadApi for KubeCluster {
    async fn list(&self, kind: &Kind, limit: u32, continue_token: Option<&str>) -> Result<Page, ClusterError> {
        let params = ListParams {
            limit: Some(limit),
            continue_token: continue_token.map(str::to_owned),
            ..ListParams::default()
        };
        let request = built(Request::new(path(kind, None)).list(&params))?;
        let text = self.answer(self.client.request_text(request)).await?;
        read_page(&text)
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        let request = built(of_object(kind, name).get(&name.name, &GetParams::default()))?;
        match self.answer(self.client.request_text(request)).await {
            Ok(text) => parse_object(&text).map(Some),
            Err(ClusterError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl WatchApi for KubeCluster {
    async fn watch(&self, kind: &Kind, from: ResourceVersion) -> Result<WatchStream, ClusterError> {
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let request = Request::new(path(kind, None)).watch(&params, &from.to_string());
        let mut request = built(request)?;
        // Kubernetes compresses watches one member an event, which decoders take for the end.
        let identity = "identity".parse().expect("a header value");
        request.headers_mut().insert("accept-encoding", identity);
        let opened = tokio::time::timeout(CALL_TIMEOUT, self.client.request_stream(request)).await;
        let reader = opened
            .map_err(|_| silence(CALL_TIMEOUT))?
            .map_err(|error| classify(&error))?;
        let events = stream::unfold(Some(Box::pin(reader)), |reader| async {
            let mut reader = reader?;
            let event = next_event(&mut reader).await?;
            let reader = event.is_ok().then_some(reader);
            Some((event, reader))
        });
        Ok(events.boxed())
    }
}

#[async_trait]
impl WriteApi for KubeCluster {
    async fn delete(&self, kind: &Kind, target: &Target) -> Result<Option<Object>, ClusterError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(target.uid.to_string()),
                resource_version: Some(target.resource_version.to_string()),
            }),
            ..DeleteParams::default()
        };
        let request = built(of_object(kind, &target.name).delete(&target.name.name, &params))?;
        let text = self.answer(self.client.request_text(request)).await?;
        // An object that is gone is answered with a Status, or with its last text.
        let object = Object::parse_str(&text).ok();
        Ok(object.filter(|object| !object.metadata.finalizers.is_empty()))
    }

    async fn set_finalizers(
        &self,
        kind: &Kind,
        target: &Target,
        finalizers: &[String],
    ) -> Result<Object, ClusterError> {
        let patch = Patch::Merge(json!({"metadata": {
            "uid": target.uid.to_string(),
            "resourceVersion": target.resource_version.to_string(),
            "finalizers": finalizers,
        }}));
        let request = of_object(kind, &target.name).patch(&target.name.name, &PatchParams::default(), &patch);
        let request = built(request)?;
        let text = self.answer(self.client.request_text(request)).await?;
        parse_object(&text)
    }
}

#[async_trait]
impl EventApi for KubeCluster {
    async fn create_event(&self, kind: &Kind, notice: &Notice) -> Result<(), ClusterError> {
        self.answer(event::create(&self.client, &event_of(kind, notice))).await
    }
}
