//! Releases over a cluster with several namespaces that refuses the objects of some: what is tried in the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kindex_kube_client::{ClusterError, ObjectName, Page, ReadApi, Target, WriteApi};
use kindex_maintenance::release::{Options, ReleaseSides, Released, StoppedServices, release};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion};
use kindex_sim::thing::{FINALIZER, PLATFORM, THING};
use kindex_store::progress::NoProgress;

const DENIED: &str = "admission webhook \"w\" denied the request";
const DENIED_BY_ANOTHER: &str = "admission webhook \"v\" denied the request";

/// Why the objects of a namespace are refused; `None` if they are not.
type Refuses = fn(&str) -> Option<&'static str>;

/// A cluster with these objects, which notes whose change it is asked for.
struct Namespaces {
    objects: Vec<Object>,
    refuses: Refuses,
    asked: Mutex<Vec<String>>,
    /// Whether the next list expires after its first page.
    expires: AtomicBool,
}

fn object(namespace: &str, number: usize, finalizers: &[&str]) -> Object {
    let finalizers = serde_json::json!(finalizers);
    let text = format!(
        r#"{{"apiVersion":"sim.kindex/v1","kind":"Thing","metadata":{{"creationTimestamp":"2026-01-01T00:00:00Z",
            "finalizers":{finalizers},"name":"o{number:02}","namespace":"{namespace}","resourceVersion":"7",
            "uid":"{namespace}-{number}"}},"spec":{{"value":1}}}}"#
    );
    Object::parse_str(&text).expect("an object")
}

impl Namespaces {
    /// So many objects in each of these namespaces.
    fn of(namespaces: &[(&str, usize)], refuses: Refuses) -> Self {
        let objects = namespaces
            .iter()
            .flat_map(|(namespace, objects)| (0..*objects).map(|number| object(namespace, number, &[FINALIZER])));
        Self {
            objects: objects.collect(),
            refuses,
            asked: Mutex::default(),
            expires: AtomicBool::default(),
        }
    }
}

#[async_trait]
impl ReadApi for Namespaces {
    async fn list(&self, _: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        if token.is_some() && self.expires.swap(false, Ordering::Relaxed) {
            return Err(ClusterError::Expired("the list is too old".to_owned()));
        }
        let from = token.map_or(0, |token| token.parse().expect("a position"));
        let to = self.objects.len().min(from + limit as usize);
        Ok(Page {
            objects: self.objects[from..to].to_vec(),
            resource_version: ResourceVersion(7),
            continue_token: (to < self.objects.len()).then(|| to.to_string()),
            ..Page::default()
        })
    }

    async fn get(&self, _: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        Ok(self.objects.iter().find(|one| ObjectName::of(one) == *name).cloned())
    }
}

#[async_trait]
impl WriteApi for Namespaces {
    async fn delete(&self, _: &Kind, _: &Target) -> Result<Option<Object>, ClusterError> {
        Err(ClusterError::Refused("a release deletes nothing".to_owned()))
    }

    async fn set_finalizers(&self, _: &Kind, target: &Target, finalizers: &[String]) -> Result<Object, ClusterError> {
        assert!(finalizers.is_empty(), "there are none of others");
        let ObjectName { namespace, name } = &target.name;
        self.asked.lock().expect("not poisoned").push(namespace.clone());
        match (self.refuses)(namespace) {
            Some(why) => Err(ClusterError::Refused(why.to_owned())),
            None => Ok(object(namespace, name[1..].parse().expect("a number"), &[])),
        }
    }
}

/// Releases all with pages of so many. What came of it, and how many changes were asked for in `a`, `b` and `c`.
async fn run(cluster: Namespaces, page_rows: u32) -> (Released, [usize; 3]) {
    let cluster = Arc::new(cluster);
    let sides = ReleaseSides {
        platform: PLATFORM,
        cluster: cluster.clone(),
        storage: None,
    };
    let options = Options {
        page_rows,
        ..Options::default()
    };
    let released = release(&sides, &THING, &mut StoppedServices::default(), &options, &NoProgress).await;
    let asked = cluster.asked.lock().expect("not poisoned").clone();
    let count = |namespace: &str| asked.iter().filter(|one| *one == namespace).count();
    (released.expect("it comes to its end"), ["a", "b", "c"].map(count))
}

/// Released, refused and not tried.
fn counts(released: &Released) -> (u64, u64, u64) {
    (released.released, released.refused, released.untried)
}

const PAGES: [u32; 4] = [1, 7, 25, 100];

/// As if the policy of one namespace kept the finalizers on the objects of all.
#[tokio::test]
async fn what_is_refused_in_one_namespace_keeps_no_other_namespace_waiting() {
    for page_rows in PAGES {
        let denied = |namespace: &str| (namespace == "a").then_some(DENIED);
        let cluster = Namespaces::of(&[("a", 24), ("b", 1), ("c", 30)], denied);
        let (released, asked) = run(cluster, page_rows).await;
        assert_eq!(asked, [20, 1, 30], "pages of {page_rows}");
        assert_eq!(counts(&released), (31, 20, 4), "pages of {page_rows}");
        let alike = released.refused_alike.expect("some were not tried");
        assert_eq!((alike.objects, alike.object.as_str()), (20, "a/o00"));
    }
}

/// As if each namespace of thousands cost twenty requests.
#[tokio::test]
async fn what_is_refused_in_the_next_namespace_too_is_not_tried_in_the_others() {
    for page_rows in PAGES {
        let cluster = Namespaces::of(&[("a", 24), ("b", 3), ("c", 30)], |_| Some(DENIED));
        let (released, asked) = run(cluster, page_rows).await;
        assert_eq!(asked, [20, 1, 0], "pages of {page_rows}");
        assert_eq!(counts(&released), (0, 21, 36), "pages of {page_rows}");
        let alike = released.refused_alike.expect("some were not tried");
        assert_eq!((alike.objects, alike.object.as_str()), (21, "a/o00"));
    }
}

#[tokio::test]
async fn another_webhook_in_the_next_namespace_is_another_reason() {
    let denied =
        |namespace: &str| (namespace != "c").then_some(if namespace == "a" { DENIED } else { DENIED_BY_ANOTHER });
    for page_rows in PAGES {
        let cluster = Namespaces::of(&[("a", 24), ("b", 3), ("c", 30)], denied);
        let (released, asked) = run(cluster, page_rows).await;
        assert_eq!(asked, [20, 3, 30], "pages of {page_rows}");
        assert_eq!(counts(&released), (30, 23, 4), "pages of {page_rows}");
    }
}

/// As if what was refused before the list expired counted twice, or as the beginning of the new list.
#[tokio::test]
async fn a_list_that_begins_anew_counts_and_tries_all_anew() {
    let cluster = Namespaces::of(&[("a", 30)], |_| Some(DENIED));
    cluster.expires.store(true, Ordering::Relaxed);
    let (released, asked) = run(cluster, 25).await;
    assert_eq!(asked, [40, 0, 0], "twenty of each list");
    assert_eq!((released.objects, released.with_finalizer), (30, 30));
    assert_eq!(counts(&released), (0, 20, 10));
}
