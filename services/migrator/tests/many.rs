//! Migrations of many objects, which an API server made up by this test has: more than one could be asked to hold. It
//! has a process of its own, whose memory is measured.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::settings::Pace;
use kindex_migrator::cluster::work::work;
use kindex_migrator::hash::Hash;
use kindex_migrator::run::Verdict;
use kindex_migrator::wire::{
    GroupVersionResource, StorageVersionMigration, StorageVersionMigrationSpec, StorageVersionMigrationStatus,
};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const GROUP: &str = "zoo.example.com";
/// At most so many, and enough that all of them together would be seen in the memory of the process.
const PETS: usize = 40_000;
const PACE: Pace = Pace { page: 500, workers: 16 };
/// Every list with such a number has expired: etcd is compacted every five minutes, and a million objects take longer.
const EXPIRES: usize = 7;
/// What the memory may grow by after the first pages. The metadata of all pets takes some 30 MiB.
const GROWTH_KIB_MAX: u64 = 8 * 1_024;

/// What the API server holds.
struct Server {
    /// Whether each pet is in the target version.
    current: Vec<bool>,
    lists: usize,
    expired: usize,
    migration: StorageVersionMigration,
    /// Of every saved status, with the memory of the process at that time.
    saved: Vec<(StorageVersionMigrationStatus, u64)>,
}

impl Server {
    fn new() -> Self {
        let resource = GroupVersionResource {
            group: GROUP.to_owned(),
            version: String::new(),
            resource: "pets".to_owned(),
        };
        let mut migration = StorageVersionMigration::new("by-hand", StorageVersionMigrationSpec { resource });
        migration.metadata.uid = Some("m".to_owned());
        migration.metadata.resource_version = Some("1".to_owned());
        Self {
            current: vec![false; PETS],
            lists: 0,
            expired: 0,
            migration,
            saved: Vec::new(),
        }
    }

    fn answer(&mut self, method: &Method, path: &str, query: &str, body: &[u8]) -> (u16, Value) {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["apis"]) => (200, groups()),
            ("GET", ["apis", GROUP, "v2"]) => (200, resources()),
            ("GET", ["apis", "apiextensions.k8s.io", ..]) => (200, definition()),
            ("POST", [.., "selfsubjectaccessreviews"]) => (201, review()),
            ("GET", [.., "storageversionmigrations", _]) => (200, json!(self.migration)),
            ("PUT", [.., "storageversionmigrations", _, "status"]) => (200, self.save(body)),
            ("GET", ["apis", GROUP, "v2", "pets"]) => self.list(query),
            ("PATCH", [.., "pets", name]) => (200, self.patch(name, query.contains("dryRun"))),
            _ => panic!("nobody asks for {method} {path}"),
        }
    }

    fn list(&mut self, query: &str) -> (u16, Value) {
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let from = parameter("continue");
        let limit: usize = parameter("limit").expect("a limit").parse().expect("a number");
        self.lists += 1;
        let at = from.map_or(0, |token| token.trim_start_matches('n').parse().expect("a number"));
        if let Some(token) = from.filter(|token| !token.starts_with('n') && self.lists.is_multiple_of(EXPIRES)) {
            self.expired += 1;
            return (410, expired(&format!("n{token}")));
        }
        let end = PETS.min(at + limit);
        let items: Vec<Value> = (at..end).map(|number| self.pet(number)).collect();
        let more = (end < PETS).then(|| json!({"continue": end.to_string(), "remainingItemCount": PETS - end}));
        let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": more.unwrap_or_else(|| json!({})), "items": items});
        (200, list)
    }

    fn pet(&self, number: usize) -> Value {
        let version = if self.current[number] { "2" } else { "1" };
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {
            "name": format!("pet-{number}"), "namespace": "default", "uid": format!("uid-{number}"),
            "resourceVersion": version,
            "managedFields": [{"manager": "a", "operation": "Update", "apiVersion": format!("{GROUP}/v2"),
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:number": {}}}}]}})
    }

    fn patch(&mut self, name: &str, is_dry: bool) -> Value {
        let number: usize = name.trim_start_matches("pet-").parse().expect("a number");
        self.current[number] |= !is_dry;
        self.pet(number)
    }

    fn save(&mut self, body: &[u8]) -> Value {
        self.migration = serde_json::from_slice(body).expect("a migration");
        let status = self.migration.status.clone().expect("a status");
        self.saved.push((status, memory_kib()));
        json!(self.migration)
    }
}

fn groups() -> Value {
    let version = json!({"groupVersion": format!("{GROUP}/v2"), "version": "v2"});
    json!({"kind": "APIGroupList", "apiVersion": "v1",
        "groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]})
}

fn resources() -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/v2"),
        "resources": [{"name": "pets", "singularName": "pet", "namespaced": true, "kind": "Pet",
            "verbs": ["list", "patch"], "storageVersionHash": Hash::of(GROUP, "v2", "Pet").to_string()}]})
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("pets.{GROUP}"), "uid": "d", "generation": 2},
        "spec": {"group": GROUP, "names": {"kind": "Pet", "plural": "pets"},
            "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": true, "storage": true}]}})
}

fn review() -> Value {
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {},
        "status": {"allowed": true}})
}

fn expired(token: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old", "metadata": {"continue": token}})
}

/// The memory that the process holds.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.expect("a line").trim().trim_end_matches(" kB");
    digits.parse().expect("a number")
}

fn client(server: &Arc<Mutex<Server>>) -> Client {
    let server = server.clone();
    let answer = move |request: Request<Body>| {
        let server = server.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
            let mut server = server.lock().expect("nobody panics");
            let (code, json) = server.answer(&head.method, path, query, &body);
            let mut response = Response::new(Body::from(json.to_string().into_bytes()));
            *response.status_mut() = StatusCode::from_u16(code).expect("a code");
            Ok::<_, std::io::Error>(response)
        }
    };
    Client::new(tower::service_fn(answer), "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_are_migrated_in_constant_memory_though_lists_expire() {
    let server = Arc::new(Mutex::new(Server::new()));
    let migration = server.lock().expect("nobody panics").migration.clone();
    let cluster = Cluster::new(client(&server), Vec::new());
    let verdict = work(&cluster, migration, PACE).await.expect("saved");
    assert_eq!(verdict, Some(Verdict::Succeeded));

    let server = server.lock().expect("nobody panics");
    assert!(server.current.iter().all(|current| *current));
    assert!(server.expired > 10, "{} lists have expired", server.expired);
    let run = server.migration.status.as_ref().expect("a status").run();
    let pets = PETS as u64;
    let all = run.all_passes();
    assert_eq!(
        (run.passes, run.restarts, all.rewritten, all.listed()),
        (2, 0, pets, 2 * pets)
    );

    let (first, rest) = server.saved.split_at(10);
    let peak = rest.iter().map(|(_, memory)| *memory).max().expect("many pages");
    let before = first.last().expect("ten").1;
    assert!(
        peak <= before + GROWTH_KIB_MAX,
        "{before} KiB after ten pages, {peak} at most"
    );
    for (status, _) in rest.iter().filter(|(status, _)| status.continue_token.is_some()) {
        assert_eq!(status.total, Some(pets));
        assert!(
            status.pass_end_time.is_some() && status.objects_per_second > Some(0),
            "{status:?}"
        );
    }
}
