//! Releases of objects that stay, and whose rows were archived in the same version: only the cluster can tell that they
//! are still there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_kube_client::{ClusterError, ObjectName, Page, ReadApi, Target, WriteApi};
use kindex_maintenance::release::{Options, ReleaseSides, Released, StoppedServices, release};
use kindex_model::kind::Kind;
use kindex_model::object::Object;
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_sim::cluster::SimCluster;
use kindex_sim::storage::SimStorage;
use kindex_sim::thing::{PLATFORM, THING};
use kindex_store::RowWrite;
use kindex_store::progress::NoProgress;
use serde_json::{Value, json};

use super::fakes::FakeCluster;

/// A cluster in which others do something after the list, before an object is read again.
struct Changing {
    cluster: FakeCluster,
    act: fn(&mut SimCluster),
}

#[async_trait]
impl ReadApi for Changing {
    async fn list(&self, kind: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        self.cluster.list(kind, limit, token).await
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        self.cluster.with(kind, self.act);
        self.cluster.get(kind, name).await
    }
}

#[async_trait]
impl WriteApi for Changing {
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
}

/// Archives the object in its version, but with another text.
fn archive(storage: &SimStorage, object: &Object) {
    let mut text: Value = serde_json::from_str(object.text()).expect("JSON");
    text["spec"]["value"] = json!(7);
    let other = Object::parse_str(&text.to_string()).expect("an object");
    let write = RowWrite::Store {
        version: Version::project(&THING, other),
        life: Life::Archived,
        revive: Revive::Never,
    };
    let written = storage.database().write(&[write], Timestamp::now());
    written.expect("the database takes it");
}

/// Releases one object whose row was archived in its version, while others do this.
async fn release_archived(act: fn(&mut SimCluster)) -> (Released, FakeCluster, Arc<SimStorage>) {
    let (cluster, storage) = (FakeCluster::new(&[&THING]), Arc::new(SimStorage::default()));
    let object = cluster.with(&THING, |cluster| {
        cluster.create("a", 1, true);
        cluster.get("a").expect("it was created")
    });
    archive(&storage, &object);
    let changing = Changing {
        cluster: cluster.clone(),
        act,
    };
    let sides = ReleaseSides {
        platform: PLATFORM,
        cluster: Arc::new(changing),
        storage: Some(storage.clone()),
    };
    let options = Options {
        settle: Duration::ZERO,
        ..Options::default()
    };
    let released = release(&sides, &THING, &mut StoppedServices::default(), &options, &NoProgress).await;
    (released.expect("it comes to its end"), cluster, storage)
}

/// As if the database refused such an object, because it makes no such row live unless the cluster was asked; or as if
/// a version that others have made since were not stored.
#[tokio::test]
async fn an_object_that_was_archived_in_its_version_is_live_before_it_is_released() {
    let acts: [fn(&mut SimCluster); 2] = [|_| {}, |cluster| cluster.update("a", false, |object| object.value = 2)];
    for act in acts {
        let (released, cluster, storage) = release_archived(act).await;
        let counts = (released.stored, released.unstored, released.released);
        assert_eq!(counts, (1, 0, 1));
        let left = cluster.with(&THING, |cluster| cluster.get("a")).expect("it stays");
        assert!(left.metadata.finalizers.is_empty());
        let database = storage.database();
        let row = &database.rows[&left.metadata.uid];
        assert_eq!((row.life(), row.object().text()), (Life::Live, left.text()));
    }
}

/// As if a row became live because of a list that is older than the end of its object.
#[tokio::test]
async fn a_row_stays_archived_whose_object_has_left_since_the_list() {
    let leave = |cluster: &mut SimCluster| {
        cluster.update("a", false, |object| object.finalizers.clear());
        cluster.delete("a", Timestamp::now(), false);
    };
    let (released, _, storage) = release_archived(leave).await;
    let counts = (released.unstored, released.elsewhere, released.released);
    assert_eq!(counts, (0, 1, 0));
    let database = storage.database();
    let lives: Vec<Life> = database.rows.values().map(|row| row.life()).collect();
    assert_eq!(lives, [Life::Archived]);
}
