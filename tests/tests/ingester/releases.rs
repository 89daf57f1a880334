//! Releases as of people who run `kindex release`, one and two at once, over a cluster in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kindex_runtime::cluster::{ClusterApi, ClusterError, Notice, ObjectName, Page, Target, WatchStream};
use kindex_runtime::kind::Kind;
use kindex_runtime::object::{Object, ResourceVersion};
use kindex_runtime::progress::Untold;
use kindex_runtime::release::{Options, Place, Released, release};
use kindex_sim::thing::{PLATFORM, THING};

use super::fakes::FakeCluster;

/// A cluster in which another release runs to its end as soon as this one has its list.
struct Overtaken {
    cluster: FakeCluster,
    other: Mutex<Option<Released>>,
}

async fn run(cluster: Arc<dyn ClusterApi>) -> Released {
    run_with(cluster, &Options::default()).await
}

async fn run_with(cluster: Arc<dyn ClusterApi>, options: &Options) -> Released {
    let place = Place {
        platform: PLATFORM,
        cluster,
        storage: None,
    };
    let released = release(&place, &THING, true, options, &Untold).await;
    released.expect("it comes to its end")
}

#[async_trait]
impl ClusterApi for Overtaken {
    async fn list(&self, kind: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        let page = self.cluster.list(kind, limit, token).await?;
        let other = run(Arc::new(self.cluster.clone())).await;
        *self.other.lock().expect("not poisoned") = Some(other);
        Ok(page)
    }

    async fn watch(&self, kind: &Kind, from: ResourceVersion) -> Result<WatchStream, ClusterError> {
        self.cluster.watch(kind, from).await
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        self.cluster.get(kind, name).await
    }

    async fn delete(&self, kind: &Kind, target: &Target) -> Result<Option<Object>, ClusterError> {
        self.cluster.delete(kind, target).await
    }

    async fn set_finalizers(
        &self,
        kind: &Kind,
        target: &Target,
        finalizers: &[String],
    ) -> Result<Object, ClusterError> {
        self.cluster.set_finalizers(kind, target, finalizers).await
    }

    async fn create_event(&self, kind: &Kind, notice: &Notice) -> Result<(), ClusterError> {
        self.cluster.create_event(kind, notice).await
    }
}

#[tokio::test]
async fn two_releases_at_once_count_what_each_of_them_did() {
    let cluster = FakeCluster::new(&[&THING]);
    for name in ["a", "b", "c"] {
        cluster.with(&THING, |cluster| cluster.create(name, 1, true));
    }
    let overtaken = Arc::new(Overtaken {
        cluster: cluster.clone(),
        other: Mutex::default(),
    });
    let late = run(overtaken.clone()).await;
    let other = overtaken.other.lock().expect("not poisoned").take();
    let other = other.expect("it ran");
    assert_eq!((other.released, other.elsewhere), (3, 0));
    assert_eq!((late.guarded, late.released, late.elsewhere), (3, 0, 3));
}

#[tokio::test]
async fn every_page_of_the_cluster_is_released() {
    let cluster = FakeCluster::new(&[&THING]);
    for name in ["a", "b", "c", "d", "e"] {
        cluster.with(&THING, |cluster| cluster.create(name, 1, true));
    }
    let pages_of_two = Options {
        page_rows: 2,
        ..Options::default()
    };
    let released = run_with(Arc::new(cluster.clone()), &pages_of_two).await;
    assert_eq!((released.objects, released.released), (5, 5));
    let again = run_with(Arc::new(cluster), &pages_of_two).await;
    assert_eq!((again.objects, again.guarded), (5, 0));
}
