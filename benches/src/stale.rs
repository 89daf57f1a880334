//! Objects on a kube-apiserver that become stale at will: their definition has two versions that differ by name alone,
//! and after a flip of the stored one the bytes of every object are those of the other. Knows no migrator.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::Request;
use kindex_harness::controlplane::apart::{ApiServer, Etcd};
use kindex_harness::scrape::Scrape;
use kube::api::{ListParams, Patch, PatchParams};
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject, ObjectList, PartialObjectMeta, Resource as _};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::clients::{all, client, of_kubeconfig, post, timed};

/// Of the definitions.
pub const GROUP: &str = "bench.kindex";
/// The version in which clients read and write, as discovery prefers it.
pub const PREFERRED: &str = "v2";

const CREATORS: usize = 16;
const PAGE_OBJECTS: u32 = 500;
const WAIT_MAX: Duration = Duration::from_secs(300);
/// For so long nothing must change before a server counts as settled.
const QUIET: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);

/// An etcd and a kube-apiserver of the program's own.
pub struct Plane {
    /// Ends before its etcd.
    server: ApiServer,
    etcd: Etcd,
    /// Leads to the server, with all rights.
    pub config: Config,
    client: Client,
}

impl Plane {
    /// Starts one. It forgets old revisions when it is told to alone: no list of a run expires.
    ///
    /// # Panics
    /// When it does not become ready.
    pub async fn start() -> Self {
        let etcd = Etcd::start();
        let server = ApiServer::start(&etcd, &["--etcd-compaction-interval=0"]);
        let config = of_kubeconfig(server.kubeconfig()).await;
        Self {
            client: client(&config),
            config,
            server,
            etcd,
        }
    }

    /// A file that leads to the server.
    pub fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// A certificate for servers on loopback, and its key.
    pub fn certificate(&self) -> [PathBuf; 2] {
        let [certificate, key, _] = self.etcd.certificate();
        [certificate, key]
    }

    /// What a path answers; `None` where it refuses.
    pub async fn get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Vec::new()).expect("a path");
        self.client.request(request).await.ok()
    }

    /// Creates an object, and returns it as it was created.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a path");
        self.client.request(request).await.expect("created")
    }

    /// The revision of etcd: that of an object which is created to know it, and counts itself.
    pub async fn revision(&self) -> u64 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "revision-"}});
        let created = self.create("/api/v1/namespaces/default/configmaps", &map).await;
        let version = created["metadata"]["resourceVersion"].as_str().map(str::parse);
        version.expect("a version").expect("a number")
    }

    /// A counter of kube-apiserver about a resource.
    async fn counter(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let request = Request::get("/metrics").body(Vec::new()).expect("a path");
        let text = self.client.request_text(request).await.expect("figures");
        Scrape::parse(&text).sum_of(name, labels)
    }
}

/// The objects of a resource.
pub struct Objects<'a> {
    plane: &'a Plane,
    resource: ApiResource,
    /// The namespaces, each with so many objects.
    slices: Vec<(&'static str, usize)>,
    stored: &'static str,
}

/// The namespace of one more object, which shows whether a flip has come through.
const PROBE: &str = "probe";

impl<'a> Objects<'a> {
    /// Creates them, as clients of v1, which is the stored version.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn create(plane: &'a Plane, plural: &str, kind: &str, slices: &[(&'static str, usize)]) -> Objects<'a> {
        let objects = Self {
            plane,
            resource: ApiResource {
                group: GROUP.to_owned(),
                version: PREFERRED.to_owned(),
                api_version: format!("{GROUP}/{PREFERRED}"),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            },
            slices: [slices, &[(PROBE, 1)]].concat(),
            stored: "v1",
        };
        objects.define().await;
        objects
            .wait("its definition", async || objects.page(None, None).await.is_some())
            .await;
        for (namespace, count) in objects.slices.clone() {
            if plane.get(&format!("/api/v1/namespaces/{namespace}")).await.is_none() {
                let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
                plane.create("/api/v1/namespaces", &body).await;
            }
            let path = format!("/apis/{GROUP}/v1/namespaces/{namespace}/{plural}");
            let kind = kind.to_owned();
            all(&plane.config, CREATORS, count, move |number| {
                post(&path, object(&kind, number))
            })
            .await;
        }
        objects
    }

    /// `plural.group`.
    pub fn name(&self) -> String {
        format!("{}.{GROUP}", self.resource.plural)
    }

    /// As clients name it in paths.
    pub fn plural(&self) -> &str {
        &self.resource.plural
    }

    /// How many there are, with the one that shows flips and is never stale after one.
    pub fn count(&self) -> usize {
        self.slices.iter().map(|(_, count)| count).sum()
    }

    /// Where those of a namespace are.
    pub fn path(&self, namespace: &str) -> String {
        DynamicObject::url_path(&self.resource, Some(namespace))
    }

    /// Bytes of one of them, as the server shows it.
    pub async fn bytes(&self) -> usize {
        let path = format!("{}/{}", self.path(PROBE), name(0));
        let request = Request::get(path).body(Body::empty()).expect("a path");
        timed(&self.plane.client, request).await.1
    }

    /// Lets the server store in the other version, and waits until it does, and is at rest. Every object is stale then,
    /// if all were current. Etcd forgets what was before.
    ///
    /// # Panics
    /// When that does not come.
    pub async fn flip(&mut self) {
        let caches = self.caches().await;
        self.stored = if self.stored == "v1" { "v2" } else { "v1" };
        self.define().await;
        self.wait("the flip", async || self.probe_changes().await).await;
        self.wait("the caches of the server", async || self.caches().await > caches)
            .await;
        let (mut last, mut since) = (self.caches().await, Instant::now());
        while since.elapsed() < QUIET {
            sleep(POLL).await;
            let now = self.caches().await;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        self.plane.etcd.compact();
    }

    /// How often kube-apiserver sent an update of one of them to etcd.
    pub async fn writes(&self) -> u64 {
        let labels = [
            ("operation", "update"),
            ("resource", &self.resource.plural),
            ("group", GROUP),
        ];
        self.plane.counter("etcd_requests_total", &labels).await as u64
    }

    /// A patch for each object of a namespace, as the migrator sends it: it states uid and version and nothing else.
    pub async fn patches(&self, namespace: &str) -> Vec<Request<Vec<u8>>> {
        let (mut patches, mut token) = (Vec::new(), None);
        loop {
            let page = self.page(Some(namespace), token.as_deref()).await.expect("a page");
            patches.extend(page.items.iter().map(|object| self.patch(object)));
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return patches;
            }
        }
    }

    async fn page(
        &self,
        namespace: Option<&str>,
        token: Option<&str>,
    ) -> Option<ObjectList<PartialObjectMeta<DynamicObject>>> {
        let mut params = ListParams::default().limit(PAGE_OBJECTS);
        params.continue_token = token.map(str::to_owned);
        let request = self.request(namespace).list_metadata(&params).expect("a request");
        self.plane.client.request(request).await.ok()
    }

    fn patch(&self, object: &PartialObjectMeta<DynamicObject>) -> Request<Vec<u8>> {
        let patch = Patch::Apply(json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"uid": object.uid(), "resourceVersion": object.resource_version()},
        }));
        let params = PatchParams::apply("bench").force().validation_ignore();
        let request = self.request(object.namespace().as_deref());
        let request = request.patch_metadata(&object.name_any(), &params, &patch);
        request.expect("a request")
    }

    fn request(&self, namespace: Option<&str>) -> kube::core::Request {
        kube::core::Request::new(DynamicObject::url_path(&self.resource, namespace))
    }

    async fn probe_changes(&self) -> bool {
        let page = self.page(Some(PROBE), None).await;
        let Some(probe) = page.and_then(|mut page| page.items.pop()) else {
            return false;
        };
        let written: Result<PartialObjectMeta<DynamicObject>, _> = self.plane.client.request(self.patch(&probe)).await;
        written.is_ok_and(|written| written.resource_version() != probe.resource_version())
    }

    /// How often kube-apiserver has filled a cache with them: anew after each change of the definition.
    async fn caches(&self) -> f64 {
        let labels = [("resource", &*self.resource.plural), ("group", GROUP)];
        let name = "apiserver_watch_cache_initializations_total";
        self.plane.counter(name, &labels).await
    }

    async fn define(&self) {
        let version = |name: &str| {
            json!({"name": name, "served": true, "storage": name == self.stored,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": self.resource.kind, "plural": self.resource.plural},
                "versions": [version("v1"), version("v2")],
            },
        });
        let name = self.name();
        let request = kube::core::Request::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        let params = PatchParams::apply("bench").force();
        let request = request
            .patch(&name, &params, &Patch::Apply(definition))
            .expect("a request");
        let _applied: Value = self.plane.client.request(request).await.expect("applied");
    }

    async fn wait(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < WAIT_MAX, "{}: {what} did not come", self.name());
            sleep(POLL).await;
        }
    }
}

fn name(number: usize) -> String {
    format!("record-{number:08}")
}

/// About 2.5 KiB with all that the server adds.
fn object(kind: &str, number: usize) -> String {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name(number),
            "labels": {"team": format!("team-{}", number % 50), "pipeline": format!("pipeline-{}", number % 500)},
            "annotations": {"example.org/note": "x".repeat(300)},
        },
        "spec": {
            "pipeline": {"namespace": "shared", "name": format!("pipeline-{}", number % 500)},
            "actor": {"name": format!("user-{}", number % 200)},
            "parameters": "x".repeat(1_440),
        },
    })
    .to_string()
}
