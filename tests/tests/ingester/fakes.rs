//! The simulated cluster with watches that wait for events, for the driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kindex_kube_client::{
    ClusterError, EventApi, Notice, ObjectName, Page, ReadApi, SelectApi, Selection, Target, WatchApi, WatchStream,
    WriteApi,
};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion};
use kindex_sim::cluster::{SimCluster, version_of};
use tokio::sync::watch;

/// One simulated cluster for each kind; a kind without one is refused. Clones are the
/// same cluster.
#[derive(Clone)]
pub struct FakeCluster(Arc<Clusters>);

struct Clusters {
    kinds: BTreeMap<&'static str, Mutex<SimCluster>>,
    changed: watch::Sender<u64>,
    notices: Mutex<Vec<Notice>>,
    /// Kinds whose CRDs are not installed.
    unserved: Mutex<BTreeSet<&'static str>>,
}

impl FakeCluster {
    pub fn new(kinds: &[&'static Kind]) -> Self {
        let kinds = kinds.iter().map(|kind| (kind.name, Mutex::default())).collect();
        Self(Arc::new(Clusters {
            kinds,
            changed: watch::Sender::new(0),
            notices: Mutex::default(),
            unserved: Mutex::default(),
        }))
    }

    fn kind(&self, kind: &Kind) -> Result<MutexGuard<'_, SimCluster>, ClusterError> {
        if self.0.unserved.lock().expect("not poisoned").contains(kind.name) {
            return Err(ClusterError::Unserved {
                in_other_version: false,
                message: format!("the cluster serves no {}", kind.crd_name()),
            });
        }
        let cluster = self.0.kinds.get(kind.name);
        let cluster = cluster.ok_or_else(|| ClusterError::Refused("forbidden".to_owned()))?;
        Ok(cluster.lock().expect("no test panics with a cluster in hand"))
    }

    /// Takes the CRD of a kind away.
    pub fn uninstall(&self, kind: &Kind) {
        self.0.unserved.lock().expect("not poisoned").insert(kind.name);
    }

    /// Installs the CRD of a kind again.
    pub fn install(&self, kind: &Kind) {
        self.0.unserved.lock().expect("not poisoned").remove(kind.name);
    }

    /// The events recorded so far.
    pub fn notices(&self) -> Vec<Notice> {
        self.0.notices.lock().expect("not poisoned").clone()
    }

    /// Does something to the cluster of a kind and wakes its watchers.
    pub fn with<T>(&self, kind: &Kind, act: impl FnOnce(&mut SimCluster) -> T) -> T {
        let done = act(&mut self.kind(kind).expect("a known kind"));
        self.0.changed.send_modify(|count| *count += 1);
        done
    }
}

#[async_trait]
impl ReadApi for FakeCluster {
    async fn list(&self, kind: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        self.kind(kind)?.list(limit as usize, token)
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        Ok(self.kind(kind)?.get(&name.name))
    }
}

#[async_trait]
impl SelectApi for FakeCluster {
    async fn select(&self, kind: &Kind, _: Selection<'_>) -> Result<Option<Page>, ClusterError> {
        drop(self.kind(kind)?);
        Ok(None)
    }
}

#[async_trait]
impl WatchApi for FakeCluster {
    async fn watch(&self, kind: &Kind, from: ResourceVersion) -> Result<WatchStream, ClusterError> {
        drop(self.kind(kind)?);
        let name = *self.0.kinds.get_key_value(kind.name).expect("just found").0;
        let start = (self.clone(), self.0.changed.subscribe(), from.0);
        let events = stream::unfold(start, move |(fake, mut changed, position)| async move {
            loop {
                let event = {
                    let cluster = fake.0.kinds[name].lock().expect("not poisoned");
                    cluster
                        .next_change(position)
                        .map(|change| change.map(|change| change.event()))
                };
                match event {
                    Ok(None) => changed.changed().await.ok()?,
                    Ok(Some(event)) => {
                        let version = version_of(&event);
                        return Some((Ok(event), (fake, changed, version)));
                    }
                    Err(error) => return Some((Err(error), (fake, changed, position))),
                }
            }
        });
        Ok(events.boxed())
    }
}

#[async_trait]
impl WriteApi for FakeCluster {
    async fn delete(&self, kind: &Kind, target: &Target) -> Result<Option<Object>, ClusterError> {
        self.with(kind, |cluster| cluster.delete_if(target, Timestamp::now()))
    }

    async fn set_finalizers(
        &self,
        kind: &Kind,
        target: &Target,
        finalizers: &[String],
    ) -> Result<Object, ClusterError> {
        self.with(kind, |cluster| cluster.set_finalizers(target, finalizers))
    }
}

#[async_trait]
impl EventApi for FakeCluster {
    async fn create_event(&self, _: &Kind, notice: &Notice) -> Result<(), ClusterError> {
        self.0.notices.lock().expect("not poisoned").push(notice.clone());
        Ok(())
    }
}
