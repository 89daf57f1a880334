//! Releases over a cluster in memory, as of people who run `kindex release`: page by page, and two at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_kube_client::{ClusterError, ObjectName, Page, ReadApi, RefusedBy, Target, WriteApi};
use kindex_maintenance::release::{Options, RefusedAlike, ReleaseSides, Released, StoppedServices, release};
use kindex_maintenance::sides::{FinalizerOwner, RepairError};
use kindex_model::kind::Kind;
use kindex_model::object::Object;
use kindex_query::Life;
use kindex_sim::storage::SimStorage;
use kindex_sim::thing::{PLATFORM, THING};
use kindex_store::IngesterStorage;
use kindex_store::progress::NoProgress;
use tokio::time::Instant;

use super::fakes::FakeCluster;

/// A cluster in which another release runs to its end as soon as this one has its list.
struct Overtaken {
    cluster: FakeCluster,
    other: Mutex<Option<Released>>,
}

async fn run(cluster: Arc<dyn WriteApi>) -> Released {
    run_with(cluster, &Options::default()).await
}

async fn run_with(cluster: Arc<dyn WriteApi>, options: &Options) -> Released {
    let sides = ReleaseSides {
        platform: PLATFORM,
        cluster,
        storage: None,
    };
    let released = release(&sides, &THING, &mut StoppedServices::default(), options, &NoProgress).await;
    released.expect("it comes to its end")
}

#[async_trait]
impl ReadApi for Overtaken {
    async fn list(&self, kind: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        let page = self.cluster.list(kind, limit, token).await?;
        let other = run(Arc::new(self.cluster.clone())).await;
        *self.other.lock().expect("not poisoned") = Some(other);
        Ok(page)
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        self.cluster.get(kind, name).await
    }
}

#[async_trait]
impl WriteApi for Overtaken {
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
    assert_eq!((late.with_finalizer, late.released, late.elsewhere), (3, 0, 3));
}

/// Why an object of this name is refused; `None` if it is not.
type Refuses = fn(&str) -> Option<&'static str>;

/// A cluster that refuses every change of some objects, and counts what it is asked to change.
struct Refusing {
    cluster: FakeCluster,
    refuses: Refuses,
    asked: AtomicUsize,
}

#[async_trait]
impl ReadApi for Refusing {
    async fn list(&self, kind: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        self.cluster.list(kind, limit, token).await
    }

    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        self.cluster.get(kind, name).await
    }
}

#[async_trait]
impl WriteApi for Refusing {
    async fn delete(&self, kind: &Kind, target: &Target) -> Result<Option<Object>, ClusterError> {
        self.cluster.delete(kind, target).await
    }

    async fn set_finalizers(
        &self,
        kind: &Kind,
        target: &Target,
        finalizers: &[String],
    ) -> Result<Object, ClusterError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(why) = (self.refuses)(&target.name.name) {
            return Err(ClusterError::Refused(why.to_owned()));
        }
        self.cluster.set_finalizers(kind, target, finalizers).await
    }
}

const DENIED: &str = "admission webhook \"w\" denied the request";
const NO_RIGHT: &str = "things.example.com \"x\" is forbidden: User \"u\" cannot patch resource \"things\" in API group \
                        \"example.com\" in the namespace \"sim\"";

/// Releases objects of a cluster that refuses some, with pages of so many; what came of it, and how many changes were
/// asked for.
async fn release_refused(
    cluster: &FakeCluster,
    refuses: Refuses,
    page_rows: u32,
    stored: bool,
) -> (Result<Released, RepairError>, usize) {
    let refusing = Arc::new(Refusing {
        cluster: cluster.clone(),
        refuses,
        asked: AtomicUsize::default(),
    });
    let sides = ReleaseSides {
        platform: PLATFORM,
        cluster: refusing.clone(),
        storage: stored.then(|| Arc::new(SimStorage::default()) as Arc<dyn IngesterStorage>),
    };
    let options = Options {
        settle: Duration::ZERO,
        page_rows,
        ..Options::default()
    };
    let released = release(&sides, &THING, &mut StoppedServices::default(), &options, &NoProgress).await;
    (released, refusing.asked.load(Ordering::Relaxed))
}

/// As if a webhook that denies the release of one object kept the finalizers on all that come after it.
#[tokio::test]
async fn an_object_whose_release_is_denied_keeps_no_other_waiting() {
    for (page_rows, stored) in [(1, false), (100, false), (1, true), (100, true)] {
        let cluster = FakeCluster::new(&[&THING]);
        for name in ["a", "b", "c"] {
            cluster.with(&THING, |cluster| cluster.create(name, 1, true));
        }
        let denied = |name: &str| (name == "a").then_some(DENIED);
        let (released, _) = release_refused(&cluster, denied, page_rows, stored).await;
        let released = released.expect("it comes to its end");
        let counts = (released.with_finalizer, released.released, released.refused);
        assert_eq!(counts, (3, 2, 1), "pages of {page_rows}");
        let left = |name: &str| cluster.with(&THING, |cluster| cluster.objects[name].finalizers.len());
        assert_eq!([left("a"), left("b"), left("c")], [1, 0, 0], "pages of {page_rows}");
    }
}

/// So many objects, `o00` and so on.
fn numbered(objects: usize) -> FakeCluster {
    let cluster = FakeCluster::new(&[&THING]);
    for number in 0..objects {
        cluster.with(&THING, |cluster| cluster.create(&format!("o{number:02}"), 1, true));
    }
    cluster
}

/// As if an account without the right sent one request for each object that there is.
#[tokio::test]
async fn a_release_that_is_refused_from_its_beginning_tries_twenty_objects() {
    for (page_rows, stored) in [(7, false), (100, false), (7, true), (100, true)] {
        let (without_right, denied) = (|_: &str| Some(NO_RIGHT), |_: &str| Some(DENIED));
        let reasons: [(Refuses, _, _); 2] = [
            (without_right, NO_RIGHT, RefusedBy::Authorization),
            (denied, DENIED, RefusedBy::Admission),
        ];
        for (refuses, why, expected) in reasons {
            let (released, asked) = release_refused(&numbered(45), refuses, page_rows, stored).await;
            let released = released.expect("other kinds are released");
            let counts = (released.with_finalizer, released.refused, released.untried);
            assert_eq!(counts, (45, 20, 25), "pages of {page_rows}");
            let alike = RefusedAlike {
                objects: 20,
                object: "sim/o00".to_owned(),
                message: why.to_owned(),
                by: expected,
            };
            assert_eq!(released.refused_alike, Some(alike));
            assert_eq!(asked, 20, "pages of {page_rows}");
        }
    }
}

/// As if an account with the right could not release what comes after objects that a webhook denies.
#[tokio::test]
async fn what_is_refused_after_another_outcome_ends_no_release() {
    let after_one = |name: &str| (name != "o00").then_some(DENIED);
    let up_to_nineteen = |name: &str| (name < "o19").then_some(NO_RIGHT);
    let for_two_reasons = |name: &str| Some(if name == "o03" { DENIED } else { NO_RIGHT });
    let cases: [(Refuses, u64); 3] = [(after_one, 44), (up_to_nineteen, 19), (for_two_reasons, 45)];
    for (refuses, expected) in cases {
        for (page_rows, stored) in [(7, false), (100, false), (7, true), (100, true)] {
            let (released, asked) = release_refused(&numbered(45), refuses, page_rows, stored).await;
            let released = released.expect("it comes to its end");
            assert_eq!((released.refused, released.released), (expected, 45 - expected));
            assert_eq!((released.untried, released.refused_alike), (0, None));
            assert_eq!(asked, 45, "pages of {page_rows}");
        }
    }
}

/// As if the objects that are released alone, one after the other, went beyond the rate.
#[tokio::test(start_paused = true)]
async fn objects_that_are_released_alone_keep_to_the_rate() {
    let cluster = numbered(10);
    let denying = Refusing {
        cluster,
        refuses: |_| Some(DENIED),
        asked: AtomicUsize::default(),
    };
    let sides = ReleaseSides {
        platform: PLATFORM,
        cluster: Arc::new(denying),
        storage: Some(Arc::new(SimStorage::default())),
    };
    let options = Options {
        settle: Duration::ZERO,
        objects_per_second: Some(2.0),
        ..Options::default()
    };
    let began = Instant::now();
    let released = release(&sides, &THING, &mut StoppedServices::default(), &options, &NoProgress).await;
    assert_eq!(released.expect("it comes to its end").refused, 10);
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Some of the objects go with their release, and so leave the pages that are walked over.
#[tokio::test]
async fn the_objects_of_all_pages_are_released() {
    for page_rows in [2, 1, 7, 100] {
        for stored in [false, true] {
            let cluster = FakeCluster::new(&[&THING]);
            for name in ["a", "b", "c", "d", "e", "f", "g"] {
                cluster.with(&THING, |cluster| cluster.create(name, 1, true));
            }
            for name in ["a", "d", "g"] {
                cluster.with(&THING, |cluster| cluster.delete(name, Timestamp::now(), false));
            }
            let storage = Arc::new(SimStorage::default());
            let sides = ReleaseSides {
                platform: PLATFORM,
                cluster: Arc::new(cluster.clone()),
                storage: stored.then(|| storage.clone() as Arc<dyn IngesterStorage>),
            };
            let options = Options {
                settle: Duration::ZERO,
                page_rows,
                ..Options::default()
            };
            let released = release(&sides, &THING, &mut StoppedServices::default(), &options, &NoProgress).await;
            let released = released.expect("it comes to its end");
            let counts = (
                released.objects,
                released.with_finalizer,
                released.released,
                released.gone,
            );
            assert_eq!(counts, (7, 7, 7, 3), "pages of {page_rows}");
            let left = cluster.with(&THING, |cluster| {
                let left = cluster.objects.values();
                left.map(|object| (object.name.clone(), object.finalizers.len()))
                    .collect::<Vec<_>>()
            });
            let free = ["b", "c", "e", "f"].map(|name| (name.to_owned(), 0));
            assert_eq!(left, free, "pages of {page_rows}");
            let rows = storage
                .database()
                .rows
                .values()
                .map(|row| row.life())
                .collect::<Vec<_>>();
            let closed = rows.iter().filter(|life| **life == Life::Deleted).count();
            assert_eq!(
                (rows.len(), closed),
                if stored { (7, 3) } else { (0, 0) },
                "pages of {page_rows}"
            );
        }
    }
}

/// The finalizer of the deletion graph goes with that of the ingester, but for objects that others refer to or that the
/// graph is deleting; those of others stay.
#[tokio::test]
async fn the_finalizer_of_the_deletion_graph_is_released_where_it_holds_nothing() {
    let graph = format!("{}/deletion", PLATFORM.group);
    let (graph, reference) = (
        graph.as_str(),
        "holder.example.com/6f1c2f0e-0000-4000-8000-000000000001",
    );
    let cluster = FakeCluster::new(&[&THING]);
    cluster.with(&THING, |cluster| {
        cluster.create_held("both", 1, &[graph, PLATFORM.finalizer]);
        cluster.create_held("alone", 1, &[graph]);
        cluster.create_held("with-others", 1, &["example.com/other", graph]);
        cluster.create_held("referenced", 1, &[reference, graph, PLATFORM.finalizer]);
        cluster.create_held("going", 1, &[graph, PLATFORM.finalizer]);
        cluster.delete("going", Timestamp::now(), false);
    });
    let released = run(Arc::new(cluster.clone())).await;
    let counts = (released.with_finalizer, released.released, released.in_use);
    assert_eq!(counts, (5, 3, 2));
    let left = cluster.with(&THING, |cluster| {
        let left = cluster.objects.values();
        left.map(|object| (object.name.clone(), object.finalizers.clone()))
            .collect::<Vec<_>>()
    });
    let left: Vec<(&str, Vec<&str>)> = left
        .iter()
        .map(|(name, finalizers)| (&**name, finalizers.iter().map(|it| &**it).collect()))
        .collect();
    let expected = [
        ("alone", vec![]),
        ("both", vec![]),
        ("going", vec![graph, PLATFORM.finalizer]),
        ("referenced", vec![reference, graph, PLATFORM.finalizer]),
        ("with-others", vec!["example.com/other"]),
    ];
    assert_eq!(left, expected);
}

/// Puts the finalizer of the deletion graph back on an object, as its service does.
fn put_back_finalizer(cluster: &FakeCluster, name: &str, graph: &str) {
    cluster.with(&THING, |cluster| {
        let before = cluster.objects[name].clone();
        let mut finalizers = before.finalizers.clone();
        if !finalizers.iter().any(|finalizer| finalizer == graph) {
            finalizers.push(graph.to_owned());
            cluster.replace_finalizers(&before, &finalizers);
        }
    });
}

/// The first objects may be of no use to find it: nobody puts a finalizer on them.
#[tokio::test(start_paused = true)]
async fn a_deletion_service_is_found_by_the_first_object_with_its_finalizer() {
    let graph = format!("{}/deletion", PLATFORM.group);
    let cluster = FakeCluster::new(&[&THING]);
    cluster.with(&THING, |cluster| {
        cluster.create("a", 1, true);
        cluster.create_held("b", 1, &[&graph, PLATFORM.finalizer]);
        cluster.create_held("c", 1, &[&graph, PLATFORM.finalizer]);
    });
    let (served, finalizer) = (cluster.clone(), graph.clone());
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    let service = tokio::spawn(async move {
        loop {
            looks.tick().await;
            put_back_finalizer(&served, "b", &finalizer);
        }
    });
    let sides = ReleaseSides {
        platform: PLATFORM,
        cluster: Arc::new(cluster.clone()),
        storage: Some(Arc::new(SimStorage::default())),
    };
    let mut stopped_services = StoppedServices::default();
    let refused = release(&sides, &THING, &mut stopped_services, &Options::default(), &NoProgress).await;
    service.abort();
    let Err(RepairError::Running { service, object, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((service, &*object), (FinalizerOwner::Deletion, "sim/b"));
    let left = |name: &str| cluster.with(&THING, |cluster| cluster.objects[name].finalizers.len());
    assert_eq!([left("a"), left("b"), left("c")], [0, 2, 2]);
}
