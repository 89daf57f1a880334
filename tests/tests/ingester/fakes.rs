//! The simulated cluster and database behind the real traits, for the driver.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kindex_runtime::cluster::{ClusterApi, ClusterError, Notice, ObjectName, Page, Target, WatchStream};
use kindex_runtime::ingester::message::PlannedWrite;
use kindex_runtime::kind::Kind;
use kindex_runtime::object::{Object, ResourceVersion, Uid};
use kindex_runtime::store::{
    self, AsOf, Counts, Dialect, History, ListQuery, MetadataStorage, Past, RowState, RowWrite, Select, StoreError,
    Stored, Written,
};
use tokio::sync::watch;

use crate::sim::cluster::SimCluster;
use crate::sim::database::SimDatabase;

/// One simulated cluster for each kind; a kind without one is refused. Clones are the
/// same cluster.
#[derive(Clone)]
pub struct FakeCluster(Arc<Clusters>);

struct Clusters {
    kinds: BTreeMap<&'static str, Mutex<SimCluster>>,
    changed: watch::Sender<u64>,
    notices: Mutex<Vec<Notice>>,
}

impl FakeCluster {
    pub fn new(kinds: &[&'static Kind]) -> Self {
        let kinds = kinds.iter().map(|kind| (kind.name, Mutex::default())).collect();
        Self(Arc::new(Clusters {
            kinds,
            changed: watch::Sender::new(0),
            notices: Mutex::default(),
        }))
    }

    fn kind(&self, kind: &Kind) -> Result<MutexGuard<'_, SimCluster>, ClusterError> {
        let cluster = self.0.kinds.get(kind.name);
        let cluster = cluster.ok_or_else(|| ClusterError::Refused("forbidden".to_owned()))?;
        Ok(cluster.lock().expect("no test panics with a cluster in hand"))
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
impl ClusterApi for FakeCluster {
    async fn list(&self, kind: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        self.kind(kind)?.list(limit as usize, token)
    }

    async fn watch(&self, kind: &Kind, from: ResourceVersion) -> Result<WatchStream, ClusterError> {
        drop(self.kind(kind)?);
        let name = *self.0.kinds.get_key_value(kind.name).expect("just found").0;
        let start = (self.clone(), self.0.changed.subscribe(), from.0);
        let events = stream::unfold(start, move |(fake, mut changed, position)| async move {
            loop {
                let event = {
                    let cluster = fake.0.kinds[name].lock().expect("not poisoned");
                    cluster.next_event(position)
                };
                match event {
                    Ok(None) => changed.changed().await.ok()?,
                    Ok(Some(event)) => {
                        let version = crate::sim::version_of(&event);
                        return Some((Ok(event), (fake, changed, version)));
                    }
                    Err(error) => return Some((Err(error), (fake, changed, position))),
                }
            }
        });
        Ok(events.boxed())
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        Ok(self.kind(kind)?.get(&name.name))
    }

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

    async fn create_event(&self, _: &Kind, notice: &Notice) -> Result<(), ClusterError> {
        self.0.notices.lock().expect("not poisoned").push(notice.clone());
        Ok(())
    }
}

/// One simulated database for all kinds, that can be down.
#[derive(Default)]
pub struct FakeStorage {
    pub database: Mutex<SimDatabase>,
    pub down: AtomicBool,
}

impl FakeStorage {
    fn open(&self, kind: &str) -> Result<MutexGuard<'_, SimDatabase>, StoreError> {
        if self.down.load(Ordering::Relaxed) {
            let source = sqlx::Error::PoolTimedOut;
            return Err(StoreError::Retryable {
                kind: kind.to_owned(),
                cause: "connection",
                source,
            });
        }
        Ok(self.database.lock().expect("not poisoned"))
    }
}

#[async_trait]
impl History for FakeStorage {
    async fn incarnations(&self, _: &Kind, _: &str, _: &str) -> Result<Vec<Stored>, StoreError> {
        unreachable!("the ingester reads no objects back")
    }

    async fn history(&self, _: &Kind, _: &Uid, _: Option<&Past>, _: u32) -> Result<Vec<Past>, StoreError> {
        unreachable!("the ingester reads no history")
    }

    async fn version(&self, _: &Kind, _: &Uid, _: ResourceVersion) -> Result<Option<Past>, StoreError> {
        unreachable!("the ingester reads no history")
    }

    async fn version_at(&self, _: &Kind, _: &str, _: &str, _: Timestamp) -> Result<AsOf, StoreError> {
        unreachable!("the ingester reads no history")
    }
}

#[async_trait]
impl MetadataStorage for FakeStorage {
    async fn prepare(&self) -> Result<(), StoreError> {
        self.open("").map(drop)
    }

    async fn row_states(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowState>, StoreError> {
        Ok(self.open(kind.name)?.row_states(uids))
    }

    async fn write(&self, kind: &Kind, batch: &[RowWrite], _: Timestamp) -> Result<Vec<Written>, StoreError> {
        let plan = |write: &RowWrite| match write {
            RowWrite::Store { version, life, revive } => PlannedWrite::Store {
                object: version.object.clone(),
                life: *life,
                revive: *revive,
            },
            RowWrite::SoftDelete { uid } => PlannedWrite::SoftDelete(uid.clone()),
            RowWrite::Record { .. } => unreachable!("no kind of these tests keeps a history"),
        };
        let planned: Vec<PlannedWrite> = batch.iter().map(plan).collect();
        let outcomes = self
            .open(kind.name)?
            .write(kind, &planned)
            .map_err(|failure| StoreError::Refused {
                kind: kind.name.to_owned(),
                source: sqlx::Error::Protocol(failure.message),
            })?;
        Ok(outcomes.into_iter().map(|outcome| outcome.written).collect())
    }

    async fn rewind(&self, kind: &Kind, uids: &[Uid]) -> Result<(), StoreError> {
        let mut database = self.open(kind.name)?;
        uids.iter().for_each(|uid| database.rewind(uid));
        Ok(())
    }

    async fn scan(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<RowState>, StoreError> {
        Ok(self.open(kind.name)?.scan(after, limit as usize))
    }

    async fn get_by_name(&self, _: &Kind, _: &str, _: &str) -> Result<Option<Stored>, StoreError> {
        unreachable!("the ingester reads no objects back")
    }

    async fn get_by_id(&self, _: &Kind, _: &Uid) -> Result<Option<Stored>, StoreError> {
        unreachable!("the ingester reads no objects back")
    }

    async fn list(&self, _: &Kind, _: &ListQuery) -> Result<Vec<Stored>, StoreError> {
        unreachable!("the ingester reads no objects back")
    }

    async fn select(&self, _: &Select, _: Option<&str>) -> Result<store::Page, StoreError> {
        unreachable!("the ingester reads no objects back")
    }

    fn dialect(&self) -> Dialect {
        unreachable!("the ingester writes no SQL")
    }

    async fn count(&self, _: &Kind) -> Result<Counts, StoreError> {
        unreachable!("the ingester counts no rows")
    }

    async fn checkpoint(&self, kind: &Kind) -> Result<Option<ResourceVersion>, StoreError> {
        Ok(self.open(kind.name)?.checkpoint)
    }

    async fn save_checkpoint(&self, kind: &Kind, version: ResourceVersion, _: Timestamp) -> Result<(), StoreError> {
        self.open(kind.name)?.checkpoint = Some(version);
        Ok(())
    }

    async fn quarantine(&self, kind: &Kind, object: &Object, reason: &str, _: Timestamp) -> Result<(), StoreError> {
        let uid = object.metadata.uid.clone();
        self.open(kind.name)?.quarantine.insert(uid, reason.to_owned());
        Ok(())
    }

    async fn quarantined(&self, kind: &Kind) -> Result<Vec<(Uid, String)>, StoreError> {
        Ok(self.open(kind.name)?.load().quarantined)
    }

    async fn release_quarantine(&self, kind: &Kind, uid: &Uid) -> Result<(), StoreError> {
        self.open(kind.name)?.quarantine.remove(uid);
        Ok(())
    }

    async fn close(&self) {}
}
