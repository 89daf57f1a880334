//! Projects of a real SQL store, in the cluster and in the archive, and what becomes of them. The store keeps their
//! outbox.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{Address, Deletion, MetadataStorage, PoolConfig, Released, RowWrite, SqliteLocation, open};
use serde_json::json;

/// What uses each of them until it is erased.
const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const TIME: &str = "2026-11-24T12:00:00Z";

pub(crate) struct Projects {
    pub(crate) store: Arc<dyn MetadataStorage>,
    kind: &'static Kind,
    /// The last resource version of their cluster.
    version: AtomicU64,
    archived: Mutex<BTreeSet<String>>,
}

fn uid(name: &str) -> Uid {
    Uid::from(format!("uid-{name}").as_str())
}

impl Projects {
    pub(crate) async fn begin(kind: &'static Kind) -> Self {
        let memory = Address::Sqlite(SqliteLocation::Memory);
        let store = open(&memory, kindex_generated::registry(), &PoolConfig::default());
        let store = store.expect("an address");
        store.prepare().await.expect("an empty database is prepared");
        Self {
            store,
            kind,
            version: AtomicU64::new(0),
            archived: Mutex::default(),
        }
    }

    pub(crate) async fn create(&self, name: &str) -> Uid {
        self.write(self.stored(name, false, Life::Live)).await;
        uid(name)
    }

    /// As the ingester does it, with the deletionTimestamp with which the object leaves its cluster.
    pub(crate) async fn archive(&self, name: &str) {
        self.write(self.stored(name, true, Life::Archived)).await;
        self.archived.lock().expect("no panic").insert(name.to_owned());
    }

    pub(crate) async fn delete(&self, name: &str) {
        if !self.is_archived(name) {
            return self.write(self.stored(name, true, Life::Live)).await;
        }
        let now = Timestamp::now();
        let deleted = self.store.delete_direct(self.kind, &uid(name), None, now).await;
        assert_eq!(deleted.expect("an answer"), Deletion::Held);
    }

    pub(crate) async fn erase(&self, name: &str) {
        if !self.is_archived(name) {
            return self.write(RowWrite::SoftDelete { uid: uid(name) }).await;
        }
        let (holder, now) = (HOLDER.parse().expect("a reference"), Timestamp::now());
        let released = self.store.release_reference(self.kind, &uid(name), &holder, now).await;
        assert_eq!(released.expect("an answer"), Released::Deleted);
    }

    fn is_archived(&self, name: &str) -> bool {
        self.archived.lock().expect("no panic").contains(name)
    }

    /// The next version of an object, which its holder uses.
    fn stored(&self, name: &str, leaving: bool, life: Life) -> RowWrite {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        let mut object = json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.name,
            "metadata": {
                "namespace": "default",
                "name": name,
                "uid": uid(name).to_string(),
                "resourceVersion": version.to_string(),
                "creationTimestamp": TIME,
                "finalizers": [HOLDER],
            },
            "spec": {},
        });
        if leaving {
            object["metadata"]["deletionTimestamp"] = json!(TIME);
        }
        let object = Object::parse_str(&object.to_string()).expect("an object");
        RowWrite::Store {
            version: Version::project(self.kind, object),
            life,
            revive: Revive::Never,
        }
    }

    async fn write(&self, write: RowWrite) {
        let written = self.store.write(self.kind, &[write], Timestamp::now()).await;
        written.expect("the write is taken");
    }
}
