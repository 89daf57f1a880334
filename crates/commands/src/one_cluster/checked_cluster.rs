//! A cluster that is asked which one it is before its answers count. Refuses the answers of any other cluster than that
//! of the database, so that nothing is closed or written by them.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{
    ClusterCause, ClusterError, EventApi, Notice, ObjectName, Page, ReadApi, SelectApi, Selection, Target, WatchApi,
    WatchStream, WriteApi,
};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_store::ClusterBinding;
use tokio::time::timeout;

use super::{ANSWER_WITHIN, Another, Verdict, judge, unnamed};
use crate::error::chain;

/// The cluster of a database, and no other.
///
/// # Guarantees
/// A page of a list, the beginning of a watch, an object, and that one is not there: each counts only where the cluster
/// is that of the database after the answer. Events continue a watch, and a write that is done has met an object by its
/// uid, which no other cluster has.
pub struct CheckedCluster<S: ?Sized> {
    cluster: KubeCluster,
    store: Arc<S>,
    /// The database for people, without a password.
    database: String,
    known: Mutex<Known>,
}

/// What is remembered between two questions.
#[derive(Default)]
struct Known {
    /// The cluster of the database, as it was read last.
    recorded: Option<Uid>,
    /// Whether it was reported that nobody says which cluster this is.
    reported: bool,
}

impl<S: ClusterBinding + ?Sized> CheckedCluster<S> {
    /// Compares this cluster with that of a database.
    pub fn new(cluster: KubeCluster, store: Arc<S>, database: String) -> Self {
        Self {
            cluster,
            store,
            database,
            known: Mutex::default(),
        }
    }

    /// Whether this is the cluster of the database now. The first one is recorded.
    async fn check(&self) -> Result<(), ClusterError> {
        let identity = self.cluster.identity().await?;
        let recorded = self.recorded().await?;
        match judge(recorded.as_ref(), &identity) {
            Verdict::Same => {}
            Verdict::First(cluster) => {
                let claimed = self.store.claim(cluster, Timestamp::now()).await;
                let claimed = claimed.map_err(|error| unanswered(&chain(&error)))?;
                self.known().recorded = Some(claimed.clone());
                if claimed != *cluster {
                    let cluster = Some(cluster);
                    let recorded = &claimed;
                    return Err(self.refused(&Another { recorded, cluster }));
                }
            }
            Verdict::Unnamed => {
                if !std::mem::replace(&mut self.known().reported, true) {
                    unnamed(&identity);
                }
            }
            Verdict::Another(another) => return Err(self.refused(&another)),
        }
        Ok(())
    }

    /// The cluster of the database. While the database is away, a cluster is compared with what it said last.
    async fn recorded(&self) -> Result<Option<Uid>, ClusterError> {
        let answer = timeout(ANSWER_WITHIN, self.store.cluster()).await;
        let mut known = self.known();
        let silence = match answer {
            Ok(Ok(recorded)) => {
                known.recorded.clone_from(&recorded);
                return Ok(recorded);
            }
            Ok(Err(error)) => unanswered(&chain(&error)),
            Err(late) => unanswered(&late),
        };
        known.recorded.clone().map(Some).ok_or(silence)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer about one object.
    async fn believed<T>(&self, answer: Result<T, ClusterError>) -> Result<T, ClusterError> {
        if matches!(answer, Err(ClusterError::NotFound(_) | ClusterError::Unserved { .. })) {
            self.check().await?;
        }
        answer
    }

    fn refused(&self, another: &Another<'_>) -> ClusterError {
        ClusterError::Refused(format!("{}: {}", another.message(&self.database), another.hint()))
    }
}

fn unanswered(why: &dyn Display) -> ClusterError {
    ClusterError::Retryable {
        cause: ClusterCause::Connection,
        retry_after: None,
        message: format!("the database does not say whose objects it has: {why}"),
    }
}

#[async_trait]
impl<S: ClusterBinding + ?Sized> ReadApi for CheckedCluster<S> {
    async fn list(&self, kind: &Kind, limit: u32, continue_token: Option<&str>) -> Result<Page, ClusterError> {
        let page = self.cluster.list(kind, limit, continue_token).await?;
        self.check().await?;
        Ok(page)
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        let found = self.believed(self.cluster.get(kind, name).await).await?;
        // One of that name with another uid says that ours is gone, as none does.
        self.check().await?;
        Ok(found)
    }
}

#[async_trait]
impl<S: ClusterBinding + ?Sized> SelectApi for CheckedCluster<S> {
    async fn select(&self, kind: &Kind, selection: Selection<'_>) -> Result<Option<Page>, ClusterError> {
        let page = self.believed(self.cluster.select(kind, selection).await).await?;
        // Another cluster has nothing of what our objects own.
        self.check().await?;
        Ok(page)
    }
}

#[async_trait]
impl<S: ClusterBinding + ?Sized> WatchApi for CheckedCluster<S> {
    async fn watch(&self, kind: &Kind, from: ResourceVersion) -> Result<WatchStream, ClusterError> {
        let stream = self.cluster.watch(kind, from).await?;
        self.check().await?;
        Ok(stream)
    }
}

#[async_trait]
impl<S: ClusterBinding + ?Sized> WriteApi for CheckedCluster<S> {
    async fn delete(&self, kind: &Kind, target: &Target) -> Result<Option<Object>, ClusterError> {
        self.believed(self.cluster.delete(kind, target).await).await
    }

    async fn set_finalizers(
        &self,
        kind: &Kind,
        target: &Target,
        finalizers: &[String],
    ) -> Result<Object, ClusterError> {
        self.believed(self.cluster.set_finalizers(kind, target, finalizers).await)
            .await
    }
}

#[async_trait]
impl<S: ClusterBinding + ?Sized> EventApi for CheckedCluster<S> {
    async fn create_event(&self, kind: &Kind, notice: &Notice) -> Result<(), ClusterError> {
        self.cluster.create_event(kind, notice).await
    }
}

#[cfg(test)]
mod tests {
    use kindex_cluster::Cluster;
    use kindex_generated::kinds::model;
    use kindex_kube_client::Identity;
    use kindex_store::{MetadataStorage, PoolConfig};
    use kube::Client;
    use kube::api::{Api, DynamicObject, PostParams};
    use serde_json::json;

    use super::*;
    use crate::client::api_resource;
    use crate::install::{ClusterOwner, crds};

    /// The models of every cluster: other objects of the same names.
    const TWICE: [&str; 2] = ["a", "b"];

    /// A cluster of its own, which ends when it is dropped.
    async fn cluster() -> (Cluster, KubeCluster) {
        let cluster = Cluster::ephemeral().await.expect("a cluster");
        let client = Client::new(cluster.in_process(([127, 0, 0, 1], 1).into()), "default");
        let installed = crds(&client, &kindex_generated::registry(), ClusterOwner::Kindex).await;
        installed.expect("models are served");
        let models: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &api_resource(&model::KIND));
        for name in TWICE {
            let model = json!({"apiVersion": model::KIND.api_version(), "kind": "Model", "metadata": {"name": name},
                "spec": {"algorithm": "xgboost"}});
            let model = serde_json::from_value(model).expect("a model");
            models.create(&PostParams::default(), &model).await.expect("created");
        }
        (cluster, KubeCluster::from(client))
    }

    fn named(name: &str) -> ObjectName {
        ObjectName {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    async fn uid(cluster: &KubeCluster) -> String {
        match cluster.identity().await {
            Ok(Identity::Known(uid)) => uid.to_string(),
            other => panic!("each has its own: {other:?}"),
        }
    }

    async fn store() -> Arc<dyn MetadataStorage> {
        let store = kindex_store::connect("sqlite::memory:", kindex_generated::registry(), &PoolConfig::default());
        let store = store.expect("an address");
        store.prepare().await.expect("prepared");
        store
    }

    fn checked(cluster: &KubeCluster, store: &Arc<dyn MetadataStorage>) -> CheckedCluster<dyn MetadataStorage> {
        CheckedCluster::new(cluster.clone(), store.clone(), "sqlite::memory:".to_owned())
    }

    async fn lists(cluster: &CheckedCluster<dyn MetadataStorage>) -> Result<(), ClusterError> {
        cluster.list(&model::KIND, 10, None).await.map(drop)
    }

    /// Why another cluster is refused, whatever it is asked.
    async fn refused(cluster: &CheckedCluster<dyn MetadataStorage>) -> String {
        let absent = named("absent");
        let target = Target {
            name: absent.clone(),
            uid: Uid::from("u"),
            resource_version: ResourceVersion(1),
        };
        let page = cluster.cluster.list(&model::KIND, 1, None).await.expect("a page");
        let continue_token = page.continue_token.as_deref();
        assert!(continue_token.is_some(), "it has two models");
        let refusals = [
            lists(cluster).await,
            cluster.watch(&model::KIND, page.resource_version).await.map(drop),
            cluster.list(&model::KIND, 1, continue_token).await.map(drop),
            cluster.get(&model::KIND, &absent).await.map(drop),
            cluster.get(&model::KIND, &named(TWICE[0])).await.map(drop),
            cluster.delete(&model::KIND, &target).await.map(drop),
            cluster.set_finalizers(&model::KIND, &target, &[]).await.map(drop),
        ];
        let mut texts = refusals.map(|refusal| match refusal {
            Err(ClusterError::Refused(text)) => text,
            other => panic!("nothing of another cluster counts: {other:?}"),
        });
        std::mem::take(&mut texts[0])
    }

    #[tokio::test]
    async fn nothing_of_another_cluster_counts_until_the_database_is_handed_over() {
        let (store, (_first, first), (_second, second)) = (store().await, cluster().await, cluster().await);
        let running = checked(&first, &store);
        lists(&running).await.expect("the first cluster is recorded");
        lists(&checked(&first, &store)).await.expect("it is the same");

        let second_uid = uid(&second).await;
        let follows = checked(&second, &store);
        let text = refused(&follows).await;
        assert!(text.contains(&format!("--follow-cluster {second_uid}")), "{text}");
        lists(&running).await.expect("nothing was written");

        let handed_over = store.hand_over(&Uid::from(second_uid.as_str()), Timestamp::now()).await;
        handed_over.expect("it follows the second");
        lists(&follows).await.expect("it is the one of the database");
        refused(&running).await;
    }

    /// As if two clusters that were filled alike, with the same names and versions, had the same objects.
    #[tokio::test]
    async fn finalizers_are_set_on_the_object_with_the_uid_alone() {
        let ((_first, first), (_second, second)) = (cluster().await, cluster().await);
        let name = named(TWICE[0]);
        let ours = first.get(&model::KIND, &name).await.expect("read").expect("there");
        let theirs = second.get(&model::KIND, &name).await.expect("read").expect("there");
        let target = Target {
            name: name.clone(),
            uid: ours.metadata.uid.clone(),
            resource_version: theirs.metadata.resource_version,
        };
        let set = second
            .set_finalizers(&model::KIND, &target, &["example.com/a".to_owned()])
            .await;
        assert!(matches!(set, Err(ClusterError::Conflict(_))), "{set:?}");
        let after = second.get(&model::KIND, &name).await.expect("read").expect("there");
        assert_eq!(after.metadata.finalizers, theirs.metadata.finalizers);
    }

    /// As if two clusters that come at once were both the one of the database.
    #[tokio::test]
    async fn of_two_clusters_that_come_at_once_one_is_recorded() {
        let (store, (_first, first), (_second, second)) = (store().await, cluster().await, cluster().await);
        let (first, second) = (checked(&first, &store), checked(&second, &store));
        let (one, other) = tokio::join!(lists(&first), lists(&second));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    }

    /// As if a watch that ends during an outage of the database were not begun again.
    #[tokio::test]
    async fn a_cluster_that_was_compared_is_believed_while_the_database_is_away() {
        let (store, (_first, first)) = (store().await, cluster().await);
        let running = checked(&first, &store);
        lists(&running).await.expect("the first cluster is recorded");
        store.close().await;
        lists(&running).await.expect("it is the same");
        let starting = lists(&checked(&first, &store)).await;
        assert!(matches!(starting, Err(ClusterError::Retryable { .. })), "{starting:?}");
    }
}
