//! The simulated cluster as a Kubernetes API server for the production client: HTTP requests in, status codes and JSON
//! out, without a socket.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::{Method, Request, Response};
use kindex_kube_api::status::{Details, GroupResource, Reason, Status};
use kindex_kube_api::watch::{EventType, FRAME_END};
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{ClusterError, ObjectName, Page, Target};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use super::api::{RETRY_AFTER_S, RequestFailure, SimApi};
use super::cluster::Change;
use super::thing::{NAMESPACE, THING};

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Line = mpsc::UnboundedSender<Bytes>;

/// The connection of one process to the cluster, with the sending end of its watch.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    api: Arc<SimApi>,
    /// The sender of the open watch.
    watch: Arc<Mutex<Option<Line>>>,
}

impl Wire {
    pub(crate) fn new(api: Arc<SimApi>) -> Self {
        Self {
            api,
            watch: Arc::default(),
        }
    }

    /// The production client over this connection. Must be called inside a Tokio runtime.
    pub(crate) fn client(&self) -> KubeCluster {
        let wire = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let wire = wire.clone();
            let answer: BoxFuture<'static, Result<Answer, BoxError>> =
                Box::pin(async move { wire.serve(request).await });
            answer
        });
        KubeCluster::from(kube::Client::new(service, NAMESPACE))
    }

    /// Sends one line down the open watch.
    pub(crate) fn send(&self, line: String) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = watch.as_ref().expect("a watch is open");
        sender.unbounded_send(Bytes::from(line)).expect("the client reads on");
    }

    async fn serve(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let failing = self.api.take_failure();
        match failing {
            None | Some(RequestFailure::LostAnswer) => {}
            Some(RequestFailure::Silence) => return Err("the connection is closed".into()),
            Some(RequestFailure::Throttled) => {
                let mut status = failure(Reason::TooManyRequests);
                status.details = Some(Box::new(Details {
                    retry_after_seconds: Some(RETRY_AFTER_S),
                    ..Details::default()
                }));
                return Ok(refused(&status));
            }
            Some(RequestFailure::ServerError) => return Ok(refused(&failure(Reason::InternalError))),
        }
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let query = Query::of(head.uri.query().unwrap_or_default());
        let name = head.uri.path().split_once("/things/").map(|(_, name)| name.to_owned());
        let answer = match (head.method, name) {
            (Method::GET, None) if query.has("watch") => self.open_watch(&query),
            (Method::GET, None) if query.has("fieldSelector") => self.select(&query),
            (Method::GET, None) => self.list(&query),
            (Method::GET, Some(name)) => match self.api.cluster().get(&name) {
                Some(object) => text(object.text().to_owned()),
                None => absent(&name),
            },
            (Method::DELETE, Some(name)) => self.delete(&name, &body),
            (Method::PATCH, Some(name)) => self.patch(&name, &body),
            (method, name) => unreachable!("no ingester sends {method} {name:?}"),
        };
        match failing {
            Some(_) => Err("the connection broke".into()),
            None => Ok(answer),
        }
    }

    fn select(&self, query: &Query) -> Answer {
        let fields = query.get("fieldSelector").unwrap_or_default();
        let (_, name) = fields.split_once("%3D").expect("one field");
        text(page_text(&self.api.cluster().owned_by(name)))
    }

    fn list(&self, query: &Query) -> Answer {
        let limit = query.number("limit").expect("every list has a limit");
        let token = query.get("continue");
        let page = self
            .api
            .cluster()
            .list(usize::try_from(limit).expect("small"), token.as_deref());
        match page {
            Ok(page) => text(page_text(&page)),
            Err(error) => refusal(&error),
        }
    }

    fn open_watch(&self, query: &Query) -> Answer {
        let version = query.number("resourceVersion").expect("every watch names its version");
        if let Err(error) = self.api.cluster().next_change(version) {
            return refusal(&error);
        }
        let (sender, lines) = mpsc::unbounded();
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        let frames = lines.map(|line| Ok::<_, Infallible>(Frame::data(line)));
        Response::new(BodyExt::boxed(StreamBody::new(frames.into_stream())))
    }

    /// Deletes an object under the preconditions that the request has.
    fn delete(&self, name: &str, options: &Value) -> Answer {
        let mut cluster = self.api.cluster();
        let Some(found) = cluster.get(name) else {
            return absent(name);
        };
        let conditions = &options["preconditions"];
        let now = cluster.now;
        let target = target(
            &found,
            conditions["uid"].as_str(),
            conditions["resourceVersion"].as_str(),
        );
        match cluster.delete_if(&target, now) {
            Ok(Some(object)) => text(object.text().to_owned()),
            Ok(None) => text(Status::deleted(things(), name, &target.uid.0).to_json()),
            Err(error) => refusal(&error),
        }
    }

    /// A merge patch of the finalizers; a version in it is a precondition.
    fn patch(&self, name: &str, patch: &Value) -> Answer {
        let mut cluster = self.api.cluster();
        let Some(found) = cluster.get(name) else {
            return absent(name);
        };
        let metadata = &patch["metadata"];
        let target = target(&found, None, metadata["resourceVersion"].as_str());
        let finalizers = metadata["finalizers"].as_array().expect("the patch is of finalizers");
        let finalizers: Vec<String> = finalizers.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        match cluster.set_finalizers(&target, &finalizers) {
            Ok(object) => text(object.text().to_owned()),
            Err(error) => refusal(&error),
        }
    }
}

/// One line of a watch.
pub(crate) fn line(change: &Change) -> String {
    let word = if change.gone { "DELETED" } else { "MODIFIED" };
    let object = change.object.object.text();
    format!("{{\"type\":\"{word}\",\"object\":{object}}}\n")
}

/// A bookmark as a line.
pub(crate) fn bookmark_line(version: u64) -> String {
    let metadata = json!({"resourceVersion": version.to_string()});
    let object = json!({"kind": "Thing", "apiVersion": "sim.kindex/v1", "metadata": metadata});
    format!("{}\n", json!({"type": "BOOKMARK", "object": object}))
}

/// The end of a watch whose version was compacted.
pub(crate) fn expired_line() -> String {
    EventType::Error.frame_start() + &failure(Reason::Expired).to_json() + FRAME_END
}

fn target(found: &Object, uid: Option<&str>, version: Option<&str>) -> Target {
    let metadata = &found.metadata;
    let version = version.map(|version| ResourceVersion(version.parse().expect("a version")));
    Target {
        name: ObjectName::of(found),
        uid: uid.map_or_else(|| metadata.uid.clone(), Uid::from),
        resource_version: version.unwrap_or(metadata.resource_version),
    }
}

fn page_text(page: &Page) -> String {
    let token = page.continue_token.as_deref().unwrap_or_default();
    let mut text = format!(
        r#"{{"kind":"ThingList","apiVersion":"sim.kindex/v1","metadata":{{"resourceVersion":"{}","continue":"{token}"}},"items":["#,
        page.resource_version
    );
    for (index, object) in page.objects.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}{}", object.text()).expect("a string takes any text");
    }
    text + "]}"
}

fn text(text: String) -> Answer {
    Response::new(Full::new(Bytes::from(text)).boxed())
}

fn things() -> GroupResource<'static> {
    GroupResource {
        group: THING.group,
        plural: THING.plural,
    }
}

/// There is no such object.
fn absent(name: &str) -> Answer {
    refused(&Status::not_found(things(), name))
}

fn failure(reason: Reason) -> Status {
    Status::failure(reason, "simulated")
}

fn refused(status: &Status) -> Answer {
    let mut answer = text(status.to_json());
    *answer.status_mut() = hyper::StatusCode::from_u16(status.http_code()).expect("a code");
    answer
}

fn refusal(error: &ClusterError) -> Answer {
    let reason = match error {
        ClusterError::NotFound(_) | ClusterError::Unserved { .. } => Reason::NotFound,
        ClusterError::Conflict(_) => Reason::Conflict,
        ClusterError::Expired(_) => Reason::Expired,
        ClusterError::Retryable { .. } => Reason::InternalError,
        ClusterError::Refused(_) => Reason::Forbidden,
    };
    refused(&failure(reason))
}

/// The parameters of a request. Nothing that we send in one has to be escaped.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    fn get(&self, key: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.clone())
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }
}
