//! [`ClusterApi`](super::ClusterApi) over the `kube` client, with requests of our own: lists and watches
//! are read as text, so that an object stays what the API server sent to the byte.

use std::time::Duration;

use async_trait::async_trait;
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, stream};
use kindex_kube_api::request::Collection;
use kindex_kube_api::selector;
use kindex_kube_api::status::Outcome;
use kindex_model::kind::{Kind, Scope};
use kindex_model::object::{Object, ResourceVersion};
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions, WatchParams};
use kube::core::Request;
use serde_json::json;

use super::classify::{classify, classify_of, outcome, outcome_of};
use super::connect::connect;
use super::discovery::{Answers, DiscoveryQuery, Served, served};
use super::event;
use super::notice::event_of;
use super::wire::{parse_object, read_line, read_page};
use super::{
    ClusterCause, ClusterError, EventApi, Notice, ObjectName, Page, ReadApi, SelectApi, Selection, Target, WatchApi,
    WatchEvent, WatchStream, WriteApi,
};

/// Longest answer to anything but a watch and a selection.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer to each page of a selection. The limit of a page does not bound the work for it: a server goes on
/// through the objects of the kind until it has found as many, or none are left. kube-apiserver gives up after 60 s
/// (`--request-timeout`), so a longer wait would bring no more than its error.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a server is asked to keep a watch, and how long silence is tolerated beyond it: a peer
/// that died without a word is noticed no sooner.
const WATCH_SECONDS: u32 = 60;
const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// A Kubernetes API server.
#[derive(Clone)]
pub struct KubeCluster {
    pub(super) client: kube::Client,
    discovered: Answers,
}

impl KubeCluster {
    /// Connects as this configuration says. Requests are not repeated below the ingester,
    /// which must know of every failure whose outcome is open.
    ///
    /// # Errors
    /// [`ClusterError::Refused`] where the configuration cannot be used.
    pub fn new(mut config: kube::Config) -> Result<Self, ClusterError> {
        config.default_retry = false;
        let client = connect(config).map_err(|error| classify(&error))?;
        Ok(Self::from(client))
    }

    /// The client, for requests that read less than whole objects. [`why_unlisted`](Self::why_unlisted) says what it
    /// means that a list fails.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    pub(super) async fn answer<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, ClusterError> {
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(answer) => answer.map_err(|error| classify(&error)),
            Err(_) => Err(silence(CALL_TIMEOUT)),
        }
    }

    /// What comes of a request about objects of a kind; with a name, about the one that has it.
    pub(super) async fn answer_about<T>(
        &self,
        kind: &Kind,
        name: Option<&ObjectName>,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        self.answer_within(CALL_TIMEOUT, kind, name, call).await
    }

    async fn answer_within<T>(
        &self,
        timeout: Duration,
        kind: &Kind,
        name: Option<&ObjectName>,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        match tokio::time::timeout(timeout, call).await {
            Ok(Ok(answer)) => {
                self.discovered.forget(kind);
                Ok(answer)
            }
            Ok(Err(error)) => Err(self.meaning(kind, name, &error).await),
            Err(_) => Err(silence(timeout)),
        }
    }

    /// What it means that a list of all objects of a kind has failed which its client was asked for.
    pub async fn why_unlisted(&self, kind: &Kind, error: &kube::Error) -> ClusterError {
        self.meaning(kind, None, error).await
    }

    /// What it means that the cluster has answered a request for one object of a kind, which its client was asked, with
    /// a 404 that names none: [`ClusterError::Unserved`] if it does not serve the kind, as its discovery confirms.
    pub async fn why_unserved(&self, kind: &Kind, said: &str) -> ClusterError {
        self.confirm_unserved(kind, false, in_doubt(said.to_owned())).await
    }

    async fn meaning(&self, kind: &Kind, name: Option<&ObjectName>, error: &kube::Error) -> ClusterError {
        let said = match name {
            Some(name) => classify_of(kind, &name.name, error),
            None => classify(error),
        };
        match outcome(error) {
            Some(Outcome::Unserved) => self.confirm_unserved(kind, name.is_none(), said).await,
            _ => said,
        }
    }

    /// What it means that the cluster has `said` of a path of the kind that nothing is there. What stands before the
    /// cluster may have said that, so its discovery counts.
    async fn confirm_unserved(&self, kind: &Kind, is_of_all: bool, said: ClusterError) -> ClusterError {
        let query = DiscoveryQuery::of(kind);
        let asked = self.answer(served(&self.client, &query));
        let (crd, version) = (kind.crd_name(), kind.version);
        match self.discovered.of(kind, asked).await {
            Ok(Served::Here | Served::Unknown) => said,
            Ok(Served::InOtherScope) => ClusterError::Refused(in_other_scope(kind)),
            Ok(Served::InOtherVersion) => ClusterError::Unserved {
                in_other_version: true,
                message: format!("the cluster serves {crd} in other versions than {version}"),
            },
            Ok(Served::Nowhere) => ClusterError::Unserved {
                in_other_version: false,
                message: format!("the cluster serves no {crd}"),
            },
            // There may be objects, for all that is known: whoever waits for the CRD does no harm.
            Ok(Served::Hidden) if is_of_all => ClusterError::Unserved {
                in_other_version: true,
                message: hidden(kind),
            },
            Ok(Served::Hidden) => in_doubt(hidden(kind)),
            Err(why) => {
                let message = format!("the cluster does not say whether it serves {crd}");
                match why {
                    ClusterError::Retryable {
                        cause,
                        retry_after,
                        message: why,
                    } => ClusterError::Retryable {
                        cause,
                        retry_after,
                        message: format!("{message}: {why}"),
                    },
                    why => in_doubt(format!("{message}: {why}")),
                }
            }
        }
    }
}

/// Nothing is known of what was asked for.
fn in_doubt(message: String) -> ClusterError {
    ClusterError::Retryable {
        cause: ClusterCause::NotFound,
        retry_after: None,
        message,
    }
}

/// Whoever asks lacks a right that `system:discovery` gives to all who are authenticated.
fn hidden(kind: &Kind) -> String {
    format!(
        "the cluster answers 404, and does not say whether it serves {}: the account lacks `get` on the non-resource \
         URLs /apis and /apis/*",
        kind.crd_name()
    )
}

fn in_other_scope(kind: &Kind) -> String {
    let (there, here) = match kind.scope {
        Scope::Namespaced => ("for the whole cluster", "in namespaces"),
        Scope::Cluster => ("in namespaces", "for the whole cluster"),
    };
    format!(
        "the cluster serves {} {there}, and Kindex expects its objects {here}",
        kind.crd_name()
    )
}

impl From<kube::Client> for KubeCluster {
    /// Sends through a client that stands already and repeats nothing by itself.
    fn from(client: kube::Client) -> Self {
        Self {
            client,
            discovered: Answers::default(),
        }
    }
}

pub(super) fn built<T>(request: Result<T, kube::core::request::Error>) -> Result<T, ClusterError> {
    request.map_err(|error| ClusterError::Refused(error.to_string()))
}

fn silence(waited: Duration) -> ClusterError {
    ClusterError::Retryable {
        cause: ClusterCause::Timeout,
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
                    cause: ClusterCause::Connection,
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

fn page_params(limit: u32, continue_token: Option<&str>) -> ListParams {
    ListParams {
        limit: Some(limit),
        continue_token: continue_token.map(str::to_owned),
        ..ListParams::default()
    }
}

#[async_trait]
impl ReadApi for KubeCluster {
    async fn list(&self, kind: &Kind, limit: u32, continue_token: Option<&str>) -> Result<Page, ClusterError> {
        let params = page_params(limit, continue_token);
        let request = built(Request::new(path(kind, None)).list(&params))?;
        let asked = self.client.request_text(request);
        let text = self.answer_about(kind, None, asked).await?;
        read_page(&text)
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        let request = built(of_object(kind, name).get(&name.name, &GetParams::default()))?;
        let asked = self.client.request_text(request);
        match self.answer_about(kind, Some(name), asked).await {
            Ok(text) => parse_object(&text).map(Some),
            Err(ClusterError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl SelectApi for KubeCluster {
    async fn select(&self, kind: &Kind, selection: Selection<'_>) -> Result<Option<Page>, ClusterError> {
        let Selection {
            namespace,
            fields,
            limit,
            continue_token,
        } = selection;
        let params = page_params(limit, continue_token).fields(fields);
        let request = built(Request::new(path(kind, namespace)).list(&params))?;
        let asked = async {
            match self.client.request_text(request).await {
                Err(error) if continue_token.is_none() && is_unselectable(&error) => Ok(None),
                answer => answer.map(Some),
            }
        };
        let text = self.answer_within(SELECTION_TIMEOUT, kind, None, asked).await?;
        text.map(|text| read_page(&text)).transpose()
    }
}

/// Whether the cluster does not select by a field: its CRD has no such `selectableFields`, or it knows none at all.
fn is_unselectable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => {
            outcome_of(status) == Outcome::BadRequest && selector::is_unselectable(&status.message)
        }
        _ => false,
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
        let asked = self.client.request_stream(request);
        let reader = self.answer_about(kind, None, asked).await?;
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
        let asked = self.client.request_text(request);
        let text = self.answer_about(kind, Some(&target.name), asked).await?;
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
        let asked = self.client.request_text(built(request)?);
        let text = self.answer_about(kind, Some(&target.name), asked).await?;
        parse_object(&text)
    }
}

#[async_trait]
impl EventApi for KubeCluster {
    async fn create_event(&self, kind: &Kind, notice: &Notice) -> Result<(), ClusterError> {
        self.answer(event::create(&self.client, &event_of(kind, notice))).await
    }
}

#[cfg(test)]
mod tests;
