//! [`ClusterApi`](super::ClusterApi) over the `kube` client, with requests of our own: lists and watches
//! are read as text, so that an object stays what the API server sent to the byte.

use std::time::Duration;

use async_trait::async_trait;
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, stream};
use kindex_kube_api::request::Collection;
use kindex_kube_api::status::Outcome;
use kindex_model::kind::{Kind, Scope};
use kindex_model::object::{Object, ResourceVersion};
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions, WatchParams};
use kube::core::Request;
use serde_json::json;

use super::classify::{classify, classify_of, outcome};
use super::connect::connect;
use super::discovery::{Served, served};
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
        let client = connect(config).map_err(|error| classify(&error))?;
        Ok(Self::from(client))
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
        let (said, is_unserved) = match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => {
                let said = match name {
                    Some(name) => classify_of(kind, &name.name, &error),
                    None => classify(&error),
                };
                (said, outcome(&error) == Some(Outcome::Unserved))
            }
            Err(_) => return Err(silence(CALL_TIMEOUT)),
        };
        match is_unserved {
            true => Err(self.confirm_unserved(kind, said).await),
            false => Err(said),
        }
    }

    /// What it means that the cluster has `said` of a path of the kind that nothing is there. What stands before the
    /// cluster may have said that, so its discovery counts.
    async fn confirm_unserved(&self, kind: &Kind, said: ClusterError) -> ClusterError {
        match self.answer(served(&self.client, kind)).await {
            Ok(Served::Here | Served::Unknown) => said,
            Ok(Served::InOtherVersion) => unserved(kind, true),
            Ok(Served::Nowhere) => unserved(kind, false),
            Err(why) => ClusterError::Retryable {
                cause: "not_found",
                retry_after: None,
                message: format!("the cluster does not say whether it serves {}: {why}", kind.crd_name()),
            },
        }
    }
}

fn unserved(kind: &Kind, in_other_version: bool) -> ClusterError {
    ClusterError::Unserved {
        in_other_version,
        message: format!("{} in version {}", kind.crd_name(), kind.version),
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
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use kube::Client;
    use kube::client::Body;
    use serde_json::Value;

    use super::*;

    static WIDGETS: Kind = Kind {
        name: "Widget",
        group: "g.example",
        version: "v1",
        plural: "widgets",
        scope: Scope::Namespaced,
        ..Kind::EMPTY
    };
    const PAGE: &str = "404 page not found";

    fn a() -> ObjectName {
        ObjectName {
            namespace: "n".to_owned(),
            name: "a".to_owned(),
        }
    }

    /// The discovery of a cluster that serves widgets in these versions, and other things in others.
    fn discovery(path: &str, versions: &[&str]) -> Option<Value> {
        let version = |version: &&str| json!({"groupVersion": format!("g.example/{version}"), "version": version});
        let group = |name: &str, versions: &[&str]| {
            let versions: Vec<Value> = versions.iter().map(version).collect();
            json!({"name": name, "versions": versions})
        };
        if path == "/apis" {
            let mut groups = vec![group("apiextensions.k8s.io", &["v1"])];
            groups.extend((!versions.is_empty()).then(|| group(WIDGETS.group, versions)));
            return Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}));
        }
        let version = path.strip_prefix("/apis/g.example/")?;
        versions.contains(&version).then(|| {
            let widgets = json!({"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget",
                "verbs": ["get"]});
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("g.example/{version}"),
                "resources": [widgets]})
        })
    }

    /// A cluster that says this of every object and list, and to questions about its discovery what the function says.
    fn cluster(said: &str, discovery: impl Fn(&str) -> Option<Value> + Send + 'static) -> KubeCluster {
        let said = said.to_owned();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let path = request.uri().path();
            let (code, text): (u16, String) = match (path.contains("/widgets"), discovery(path)) {
                (true, _) => (404, said.clone()),
                (false, Some(document)) => (200, document.to_string()),
                (false, None) => (404, PAGE.to_owned()),
            };
            let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
            async move { Ok::<_, Infallible>(response.expect("an answer")) }
        });
        KubeCluster::from(Client::new(service, "default"))
    }

    fn target() -> Target {
        Target {
            name: a(),
            uid: "u".into(),
            resource_version: ResourceVersion(7),
        }
    }

    /// What comes of all requests, which is the same of each.
    async fn asked(cluster: &KubeCluster) -> ClusterError {
        let got = cluster.get(&WIDGETS, &a()).await.map(drop);
        for other in [
            cluster.list(&WIDGETS, 10, None).await.map(drop),
            cluster.watch(&WIDGETS, ResourceVersion(7)).await.map(drop),
            cluster.delete(&WIDGETS, &target()).await.map(drop),
            cluster.set_finalizers(&WIDGETS, &target(), &[]).await.map(drop),
            cluster.patch(&WIDGETS, &target(), None, json!({})).await.map(drop),
        ] {
            assert_eq!(other, got);
        }
        got.expect_err("nothing is there")
    }

    #[tokio::test]
    async fn an_object_that_is_named_is_not_there_whatever_is_served() {
        let said = json!({"kind": "Status", "code": 404, "details": {"name": "a", "kind": "widgets"}}).to_string();
        let cluster = cluster(&said, |_| None);
        let found = cluster.get(&WIDGETS, &a()).await;
        assert!(matches!(found, Ok(None)), "{found:?}");
        let deleted = cluster.delete(&WIDGETS, &target()).await;
        assert!(matches!(deleted, Err(ClusterError::NotFound(_))), "{deleted:?}");
    }

    /// As if an object were gone, and its row to be closed, because a proxy has a page for paths that it does not know.
    #[tokio::test]
    async fn a_page_is_an_outage_where_discovery_does_not_say_that_the_kind_is_not_served() {
        let named_nothing = json!({"kind": "Status", "code": 404, "message": "m", "details": {}}).to_string();
        for said in [PAGE, "", &named_nothing] {
            for answers in [
                cluster(said, |path| discovery(path, &["v1"])),
                cluster(said, |path| discovery(path, &["v2", "v1"])),
                cluster(said, |_| None),
                cluster(said, |_| Some(json!({}))),
                cluster(said, |path| discovery(path, &["v2"]).filter(|_| path == "/apis")),
            ] {
                let why = asked(&answers).await;
                let is_outage = matches!(why, ClusterError::Retryable { cause: "not_found", .. });
                assert!(is_outage, "{said}: {why:?}");
                let found = answers.find(&WIDGETS, &a()).await;
                assert!(found.is_err(), "{said}: {found:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_kind_is_not_served_where_discovery_says_so_and_has_no_objects_where_no_version_is_there() {
        for (versions, has_none) in [(vec![], true), (vec!["v2"], false)] {
            let cluster = cluster(PAGE, move |path| discovery(path, &versions));
            let unserved = ClusterError::Unserved {
                in_other_version: !has_none,
                message: "widgets.g.example in version v1".to_owned(),
            };
            assert_eq!(asked(&cluster).await, unserved);
            assert_eq!(cluster.find(&WIDGETS, &a()).await.is_ok(), has_none);
        }
    }
}
