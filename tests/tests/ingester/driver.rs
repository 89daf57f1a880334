//! The driver: real tasks and the real clock over clusters and databases in memory.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kindex_harness::wait::eventually;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::{Column, ColumnType, Kind, Registry};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_runtime::message::{Input, StoreFailure};
use kindex_runtime::settings::Settings;
use kindex_runtime::{Ingester, Sharding, Storage};
use kindex_sim::database::SimRow;
use kindex_sim::storage::SimStorage;
use kindex_sim::thing::{DELETING, REGISTRY, THING};
use tracing_subscriber::fmt::MakeWriter;

use super::bench::{Bench, Thing, away, thing, write_of};
use super::fakes::FakeCluster;

/// A kind whose projection panics on the value 13.
static FRAGILE: Kind = Kind {
    name: "Fragile",
    encode: |text| {
        assert!(!text.contains("\"value\":13}"), "thirteen");
        (THING.encode)(text)
    },
    ..THING
};

/// A kind that takes the value for a text.
static NARROW: Kind = Kind {
    name: "Narrow",
    columns: &[Column {
        name: "value",
        path: &["spec", "value"],
        ty: ColumnType::Text { chars: 8 },
        own_namespace: false,
    }],
    ..THING
};

/// A kind that the cluster refuses to show.
static FORBIDDEN: Kind = Kind {
    name: "Forbidden",
    ..THING
};

/// A kind whose CRD others install.
static GUEST: Kind = Kind {
    name: "Guest",
    plural: "guests",
    ..THING
};

static GUESTS: &[&Kind] = &[&GUEST, &THING];
static THINGS: &[&Kind] = &[&THING];
static TROUBLED: &[&Kind] = &[&FORBIDDEN, &THING];
static NARROWS: &[&Kind] = &[&NARROW];
static FRAGILES: &[&Kind] = &[&FRAGILE];

struct Stage {
    cluster: FakeCluster,
    storage: Arc<SimStorage>,
}

impl Stage {
    fn new(kinds: &[&'static Kind]) -> Self {
        Self {
            cluster: FakeCluster::new(kinds),
            storage: Arc::default(),
        }
    }

    fn start(&self, kinds: &'static [&'static Kind]) -> Ingester {
        let registry = Registry { kinds, ..REGISTRY };
        let cluster = Arc::new(self.cluster.clone());
        let storage = Storage {
            rows: self.storage.clone(),
            database: None,
        };
        Ingester::start(registry, cluster, storage, Sharding::Alone, |_| Settings {
            requeue_period: Duration::from_millis(100),
            ..Settings::default()
        })
    }

    fn life(&self, uid: &str) -> Option<Life> {
        let database = self.storage.database();
        database.rows.get(&Uid::from(uid)).map(SimRow::life)
    }
}

#[tokio::test]
async fn an_object_is_stored_and_leaves_the_cluster_once_its_row_is_closed() {
    let stage = Stage::new(&[&THING]);
    let ingester = stage.start(THINGS);
    stage.cluster.with(&THING, |cluster| cluster.create("a", 1, true));
    eventually("stored", async || stage.life("uid-001") == Some(Life::Live)).await;
    stage
        .cluster
        .with(&THING, |cluster| cluster.delete("a", Timestamp::now(), false));
    eventually("gone", async || {
        stage.cluster.with(&THING, |cluster| cluster.objects.is_empty())
    })
    .await;
    assert_eq!(stage.life("uid-001"), Some(Life::Deleted));
    eventually("caught up", async || ingester.status().is_caught_up()).await;
    let (_, metrics) = ingester.metrics().next().expect("a kind");
    assert_eq!((metrics.inserted.get(), metrics.lost.get()), (1, 0));
    ingester.shutdown().await;
}

#[tokio::test]
async fn a_database_that_is_down_at_the_start_is_a_reason_and_heals() {
    let stage = Stage::new(&[&THING]);
    stage.storage.set_down(true);
    stage.cluster.with(&THING, |cluster| cluster.create("a", 1, true));
    let ingester = stage.start(THINGS);
    let reason = || ingester.status().not_ready().join("\n");
    eventually("a reason", async || reason().contains("cannot answer now")).await;
    stage.storage.set_down(false);
    eventually("ready", async || ingester.status().not_ready().is_empty()).await;
    eventually("stored", async || stage.life("uid-001") == Some(Life::Live)).await;
    ingester.shutdown().await;
}

#[tokio::test]
async fn a_kind_in_trouble_touches_no_other() {
    let stage = Stage::new(&[&THING]);
    let ingester = stage.start(TROUBLED);
    stage.cluster.with(&THING, |cluster| cluster.create("a", 1, true));
    eventually("stored", async || stage.life("uid-001") == Some(Life::Live)).await;
    let reasons = || ingester.status().not_ready();
    eventually(
        "one reason",
        async || matches!(&reasons()[..], [only] if only.starts_with("Forbidden") && only.contains("forbidden")),
    )
    .await;
    ingester.shutdown().await;
}

#[tokio::test]
async fn a_kind_without_its_crd_waits_says_so_once_and_begins_when_it_is_installed() {
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber());
    let stage = Stage::new(&[&GUEST, &THING]);
    stage.cluster.uninstall(&GUEST);
    let ingester = stage.start(GUESTS);
    stage.cluster.with(&THING, |cluster| cluster.create("a", 1, true));
    eventually("stored", async || stage.life("uid-001") == Some(Life::Live)).await;
    let retries = || {
        let (_, metrics) = ingester.metrics().next().expect("a kind");
        metrics.retries("not_found")
    };
    eventually("asked again and again", async || retries() >= 3).await;
    let reason = "Guest: waiting for its CRD: the cluster has no CustomResourceDefinition guests.sim.kindex";
    eventually("one reason", async || ingester.status().not_ready() == [reason]).await;
    assert!(ingester.status().is_caught_up(), "there is nothing to wait for");

    stage.cluster.install(&GUEST);
    eventually("begun", async || !ingester.status().kinds[0].unserved).await;
    ingester.shutdown().await;
    for line in [
        "waiting until its CRD is installed",
        "The CRD of this kind is installed",
    ] {
        assert_eq!(log.text().matches(line).count(), 1, "{line}:\n{}", log.text());
    }
}

#[tokio::test]
async fn a_projection_that_panics_sets_its_object_aside_and_no_other() {
    let stage = Stage::new(&[&FRAGILE]);
    stage.cluster.with(&FRAGILE, |cluster| {
        for (name, value) in [("a", 1), ("b", 13), ("c", 2)] {
            cluster.create(name, value, true);
        }
    });
    let ingester = stage.start(FRAGILES);
    eventually("caught up", async || ingester.status().is_caught_up()).await;
    let status = ingester.status();
    let set_aside: Vec<(&str, bool)> = status.kinds[0]
        .quarantined
        .iter()
        .map(|(uid, reason)| (&*uid.0, reason.contains("thirteen")))
        .collect();
    assert_eq!(set_aside, [("uid-002", true)]);
    assert_eq!(
        (stage.life("uid-001"), stage.life("uid-003")),
        (Some(Life::Live), Some(Life::Live))
    );
    ingester.shutdown().await;
}

#[tokio::test]
async fn an_object_that_does_not_fit_its_projection_gets_one_warning_event() {
    let stage = Stage::new(&[&NARROW]);
    let ingester = stage.start(NARROWS);
    stage.cluster.with(&NARROW, |cluster| cluster.create("a", 1, true));
    eventually("told", async || !stage.cluster.notices().is_empty()).await;
    assert_eq!(stage.life("uid-001"), Some(Life::Live), "stored all the same");
    let notices = stage.cluster.notices();
    assert!(
        notices[0].warning && notices[0].message.contains("spec.value"),
        "{notices:?}"
    );
    ingester.shutdown().await;
}

#[tokio::test]
async fn a_restart_goes_on_where_the_shutdown_left_off() {
    let stage = Stage::new(&[&THING]);
    let ingester = stage.start(THINGS);
    stage.cluster.with(&THING, |cluster| cluster.create("a", 1, true));
    eventually("stored", async || stage.life("uid-001") == Some(Life::Live)).await;
    eventually("caught up", async || ingester.status().is_caught_up()).await;
    ingester.shutdown().await;
    let saved = stage.storage.database().checkpoint;
    assert_eq!(saved, Some(Checkpoint::Settled(ResourceVersion(2))));

    stage.cluster.with(&THING, |cluster| {
        cluster.delete("a", Timestamp::now(), false);
        cluster.create("b", 2, true);
    });
    let ingester = stage.start(THINGS);
    eventually("resumed", async || stage.life("uid-002") == Some(Life::Live)).await;
    eventually("closed", async || stage.life("uid-001") == Some(Life::Deleted)).await;
    let (_, metrics) = ingester.metrics().next().expect("a kind");
    assert_eq!(metrics.relists.get(), 0, "no list was needed");
    ingester.shutdown().await;
}

/// The store tells an outage once for all kinds. That a deletion waits for its end is told, and so is what is none.
#[test]
fn a_batch_that_an_outage_stops_is_logged_only_for_a_deletion() {
    let deadlock = StoreFailure {
        is_outage: false,
        cause: "deadlock",
        ..away()
    };
    let leaving = Thing {
        deleted: true,
        ..thing("a", 5)
    };
    for (object, failure, reported) in [
        (thing("a", 5), away(), 0),
        (leaving, away(), 1),
        (thing("a", 5), deadlock, 1),
    ] {
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.subscriber());
        let mut bench = Bench::watching(Settings::default());
        let read = bench.applied(&object);
        let write = bench.no_rows(&read);
        let (ticket, _) = write_of(&write).expect("a write");
        bench.step(Input::Written(ticket, Err(failure)));
        assert_eq!(log.text().matches(" WARN ").count(), reported, "{}", log.text());
    }
}

/// What was logged.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn subscriber(&self) -> impl tracing::Subscriber + Send + Sync + 'static {
        let subscriber = tracing_subscriber::fmt().with_writer(self.clone());
        subscriber.with_ansi(false).finish()
    }

    pub(super) fn text(&self) -> String {
        let bytes = self.0.lock().expect("not poisoned").clone();
        String::from_utf8(bytes).expect("a log is text")
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_log_uses_the_words_of_the_reference() {
    // Where there is only one subscriber in a process, what another thread meets first is written off for all of them:
    // <https://docs.rs/tracing-core/latest/tracing_core/callsite/>. With two, each is asked.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber());
    let stage = Stage::new(&[&THING]);
    let ingester = stage.start(THINGS);
    stage.cluster.with(&THING, |cluster| {
        cluster.create("a", 1, true);
        cluster.delete("a", Timestamp::now(), false);
        cluster.create("b", 1, true);
        cluster.update("b", false, |object| {
            object.annotations.insert(DELETING.to_owned(), "true".to_owned());
        });
    });
    eventually("gone", async || {
        stage.cluster.with(&THING, |cluster| cluster.objects.is_empty())
    })
    .await;
    ingester.shutdown().await;
    let text = log.text();
    for line in [
        "Ingester controller registered kind=\"Thing\" controller=\"ingester_thing\"",
        "Object is being deleted",
        "Grace period expired, deleting from metadata storage",
        "Object marked for deletion via annotation",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
