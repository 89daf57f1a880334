//! A Kubernetes cluster as the graph uses it: its objects are followed, and each step is carried out on condition of
//! what it was decided on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{ClusterCause, ClusterError, ObjectName, ReadApi as _, Target, WriteApi as _};
use kindex_model::kind::Kind;
use kindex_model::object::{Object as Text, Uid};
use kindex_model::reference_name::ReferenceName;
use kube::Client;
use serde_json::{Value, json};

use crate::archive::{Archive, ArchiveError};
use crate::kinds::Kinds;
use crate::metrics::Metrics;
use crate::object::{Key, KindName, Object};
use crate::peer::Peers;
use crate::web::WebNotices;

pub mod follow;

pub mod outcome;

mod waiting;

pub(crate) mod follower;

pub(crate) mod cycle;

mod recent;

mod refusals;

mod remaining;

mod former;

mod archived;

mod sweep;

mod limits;

pub(crate) mod tombstone;

mod clean_up;

mod status;

pub mod carry_out;

pub mod event;

use clean_up::Callable;
use limits::Limits;
use refusals::Rounds;
use status::Known;

/// One cluster, and the kinds of the graph in it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    api: KubeCluster,
    kinds: Arc<Kinds>,
    peers: Peers,
    archive: Option<Arc<dyn Archive>>,
    cleanups: Callable,
    web: Option<WebNotices>,
    metrics: Metrics,
    /// How kinds spell conditions, as far as that was asked.
    forms: Arc<Mutex<BTreeMap<KindName, Known>>>,
    limits: Limits,
    /// Where the next sweeps over holders begin that the cluster refuses to change.
    rounds: Rounds,
}

impl Cluster {
    /// A cluster by a client that repeats nothing by itself.
    pub fn new(client: Client, kinds: Kinds) -> Self {
        Self {
            api: KubeCluster::from(client.clone()),
            client,
            kinds: Arc::new(kinds),
            peers: Peers::default(),
            archive: None,
            cleanups: Callable::default(),
            web: None,
            metrics: Metrics::default(),
            forms: Arc::default(),
            limits: Limits::default(),
            rounds: Rounds::default(),
        }
    }

    /// The same beside other services.
    #[must_use]
    pub fn beside(mut self, peers: Peers) -> Self {
        self.peers = peers;
        self
    }

    /// The kinds of other services.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// The same, with the archive in which objects are that left it.
    pub fn with_archive(self, archive: Arc<dyn Archive>) -> Self {
        Self {
            archive: Some(archive),
            ..self
        }
    }

    /// Whether the objects that left it are known.
    pub fn has_archive(&self) -> bool {
        self.archive.is_some()
    }

    /// The kinds whose objects may have something outside.
    pub fn kinds_outside(&self) -> impl Iterator<Item = &KindName> {
        self.cleanups.kinds()
    }

    /// Whether objects of a kind may have something outside.
    fn may_have_outside(&self, kind: &KindName) -> bool {
        self.kinds_outside().any(|other| other == kind)
    }

    /// The same, with a web server that gets what is reported.
    #[must_use]
    pub fn notifying(self, web: WebNotices) -> Self {
        Self { web: Some(web), ..self }
    }

    /// The same, with the metrics that count what is reported.
    pub(crate) fn counting(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// What is on its way to a web server.
    pub(crate) fn web_notices(&self) -> Option<&WebNotices> {
        self.web.as_ref()
    }

    /// The kinds of the graph.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    fn kind(&self, key: &Key) -> &'static Kind {
        self.kinds.get(&key.kind).expect("what is decided on is of the graph")
    }

    /// The object at a place.
    async fn get(&self, key: &Key) -> Result<Option<Object>, ClusterError> {
        if let Some(peer) = self.peers.of(&key.kind) {
            return peer.look(key).await;
        }
        let kind = self.kind(key);
        let found = self.api.find(kind, &name_of(key)).await?;
        Ok(found.map(|found| self.kinds.read(kind, &found)))
    }

    /// Whether the archived object of that name has a reference. The archives of other services are theirs.
    async fn has_reference_in_archive(&self, target: &Key, name: &ReferenceName) -> Result<bool, ClusterError> {
        match &self.archive {
            Some(archive) if self.peers.of(&target.kind).is_none() => {
                let answer = archive.has_reference(target, name).await;
                answer.map_err(|error| failed(&error))
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Whether an archived holder names the object; `None` where it is not archived.
    async fn archived_names(&self, holder: &Object, target: &Key) -> Result<Option<bool>, ClusterError> {
        match &self.archive {
            Some(archive) => {
                let names = archive.names(holder, target).await;
                names.map_err(|error| failed(&error))
            }
            None => Ok(None),
        }
    }

    /// Whether an object from which this one was moved holds it still by a row, as archived ones do. The archives of
    /// other services are theirs: what is known of their objects says that.
    async fn has_archived_former(&self, object: &Object) -> Result<bool, ClusterError> {
        match &self.archive {
            Some(archive) => archive.has_former(object).await.map_err(|error| failed(&error)),
            None => Ok(false),
        }
    }

    async fn set_finalizers(&self, object: &Object, finalizers: &[String]) -> Result<Object, ClusterError> {
        let kind = self.kind(&object.key);
        let written = self.api.set_finalizers(kind, &target_of(object), finalizers).await?;
        Ok(self.kinds.read(kind, &written))
    }

    /// Deletes an object, which keeps its place until its finalizers are gone.
    async fn delete(&self, object: &Object) -> Result<Option<Object>, ClusterError> {
        let kind = self.kind(&object.key);
        let left = self.api.delete(kind, &target_of(object)).await?;
        Ok(left.map(|left| self.kinds.read(kind, &left)))
    }

    async fn request(&self, object: &Object) -> Result<Object, ClusterError> {
        let annotations = json!({ &self.kinds.names.deleting: "true" });
        let written = self.annotate(object, &annotations).await?;
        Ok(self.kinds.read(self.kind(&object.key), &written))
    }

    /// Records on a live holder which target it uses no more: that write is what matters.
    async fn detach(&self, holder: &Object, former: &str) -> Result<Object, ClusterError> {
        let annotations = json!({ &self.kinds.names.recorded.detached: former });
        let written = self.annotate(holder, &annotations).await?;
        Ok(self.kinds.read(self.kind(&holder.key), &written))
    }

    async fn annotate(&self, object: &Object, annotations: &Value) -> Result<Text, ClusterError> {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.patch(object, None, patch).await
    }

    /// Changes an object, or a subresource of it, in the version that is known.
    async fn patch(&self, object: &Object, subresource: Option<&str>, patch: Value) -> Result<Text, ClusterError> {
        let kind = self.kind(&object.key);
        self.api.patch(kind, &target_of(object), subresource, patch).await
    }

    fn forms(&self) -> MutexGuard<'_, BTreeMap<KindName, Known>> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(error: &ArchiveError) -> ClusterError {
    ClusterError::Retryable {
        cause: match error.is_outage {
            true => ClusterCause::ArchiveAway,
            false => ClusterCause::Archive,
        },
        retry_after: None,
        message: error.to_string(),
    }
}

fn name_of(key: &Key) -> ObjectName {
    ObjectName {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

fn target_of(object: &Object) -> Target {
    Target {
        name: name_of(&object.key),
        uid: Uid::from(object.uid.as_str()),
        resource_version: object.version,
    }
}
