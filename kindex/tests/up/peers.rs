//! Deletion across two services: clusters of this process name projects of a real `kindex up`, by its API and its
//! events alone.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_cluster::Cluster as Embedded;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::peer::{Peers, Transport};
use kindex_deletion::service::{Deletion, Options};
use kindex_generated::kinds::cluster;
use kindex_harness::ports;
use kindex_harness::wait::WAIT_MAX;
use kindex_kube_client::peer::Address;
use kindex_model::kind::{Kind, Platform, Registry};
use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::process::{Running, kubectl_is_there, wait_for};

mod cycles;

const PHASE: &str = "compute.example.com/deletion-phase";
const CONDITIONS: &str = "compute.example.com/deletion-conditions";

static IDENTITY: Service = Service {
    name: "identity",
    group: "michelangelo.api",
    cluster_scoped: &[],
    plurals: &[],
    refers_to: &[],
    address: "http://127.0.0.1:1",
    ca_file: None,
    token_file: None,
};
static CLUSTERS: Kind = Kind {
    group: "compute.example.com",
    version: "v1",
    references: &[Reference {
        name: "project",
        targets: &[Target {
            service: Some(&IDENTITY),
            group: "michelangelo.api",
            kind: "Project",
        }],
        kind_column: None,
        path: &["spec", "project"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Cascade,
    }],
    ..cluster::KIND
};
const REGISTRY: Registry = Registry {
    platform: Platform {
        group: "compute.example.com",
        version: "v1",
        finalizer: "compute.example.com/kindex",
        deleting: "compute.example.com/deleting",
        immutable: "compute.example.com/immutable",
        ..Platform::EMPTY
    },
    kinds: &[&CLUSTERS],
    ..Registry::EMPTY
};

/// The service with the clusters, beside the one with the projects.
struct Compute {
    runtime: Runtime,
    client: Client,
    /// Where projects are.
    url: String,
    _embedded: Embedded,
}

impl Compute {
    fn start(url: String) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (client, embedded) = runtime.block_on(async {
            let embedded = Embedded::ephemeral().await.expect("the cluster opens");
            let client = Client::new(embedded.in_process(([127, 0, 0, 1], 1).into()), "default");
            let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
            let definition = serde_json::from_value(definition()).expect("a definition");
            let created = definitions.create(&PostParams::default(), &definition).await;
            created.expect("a definition is taken");
            (client, embedded)
        });
        let compute = Self {
            runtime,
            client,
            url,
            _embedded: embedded,
        };
        wait_for("the kind", || {
            let listed = compute
                .runtime
                .block_on(async { compute.api().list(&ListParams::default()).await });
            listed.is_ok()
        });
        compute
    }

    fn api(&self) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: CLUSTERS.group.to_owned(),
            version: CLUSTERS.version.to_owned(),
            api_version: CLUSTERS.api_version(),
            kind: CLUSTERS.name.to_owned(),
            plural: CLUSTERS.plural.to_owned(),
        };
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    /// `kindex deletion`, until it is stopped.
    fn work(&self) -> Working<'_> {
        self.work_with(&REGISTRY)
    }

    fn work_with(&self, registry: &'static Registry) -> Working<'_> {
        let kinds = Kinds::of(registry);
        let foreign = kinds.foreign().into_iter().map(|(kind, service)| {
            let url = self.url.clone();
            (
                kind,
                Address {
                    url,
                    ..Address::from(service)
                },
            )
        });
        let identity = Address {
            url: self.url.clone(),
            ..Address::from(&IDENTITY)
        };
        let peers = Peers::new(foreign, &Transport::Events).with_holders([(IDENTITY.group.to_owned(), identity)]);
        let cluster = Cluster::new(self.client.clone(), kinds.clone()).beside(peers);
        let options = Options {
            blocked_after: Duration::ZERO,
        };
        let deletion = Arc::new(Deletion::new(cluster, options, Metrics::default()));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = self.runtime.spawn(async move { deletion.run(&stopped).await });
        Working {
            compute: self,
            stop,
            running: Some(running),
        }
    }

    /// Creates a cluster; the reference by which it holds others.
    fn create(&self, name: &str, project: &str) -> String {
        let object = json!({
            "apiVersion": "compute.example.com/v1",
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {"project": project},
        });
        let object = serde_json::from_value(object).expect("an object");
        let created = self
            .runtime
            .block_on(async { self.api().create(&PostParams::default(), &object).await });
        format!(
            "cluster.compute.example.com/{}",
            created.expect("taken").uid().expect("a uid")
        )
    }

    fn get(&self, name: &str) -> Option<DynamicObject> {
        self.runtime
            .block_on(async { self.api().get_opt(name).await })
            .expect("an answer")
    }

    fn phase(&self, name: &str) -> String {
        let found = self.get(name).unwrap_or_else(|| panic!("{name} is there"));
        found.annotations().get(PHASE).cloned().unwrap_or_default()
    }

    /// The condition that says what the deletion of an object waits for; null where it has none.
    fn blocked(&self, name: &str) -> Value {
        let found = self.get(name).unwrap_or_else(|| panic!("{name} is there"));
        let text = found.annotations().get(CONDITIONS);
        let conditions: Vec<Value> = text.map_or(Vec::new(), |text| serde_json::from_str(text).expect("JSON"));
        let mut blocked = conditions.into_iter();
        let blocked = blocked.find(|condition| condition["type"] == "DeletionBlocked");
        blocked.unwrap_or_default()
    }

    fn move_to(&self, name: &str, project: &str) {
        let patch = Patch::Merge(json!({"spec": {"project": project}}));
        let patched = self
            .runtime
            .block_on(async { self.api().patch(name, &PatchParams::default(), &patch).await });
        patched.expect("it is there");
    }

    /// Somebody places a reference.
    fn place(&self, name: &str, reference: &str) {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": ["compute.example.com/deletion", reference]}}));
        let patched = self
            .runtime
            .block_on(async { self.api().patch(name, &PatchParams::default(), &patch).await });
        patched.expect("it is there");
    }

    fn delete(&self, name: &str) {
        let deleted = self
            .runtime
            .block_on(async { self.api().delete(name, &DeleteParams::default()).await });
        deleted.expect("it is there");
    }

    fn has_event(&self, reason: &str, words: &str) -> bool {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = self
            .runtime
            .block_on(async { events.list(&ListParams::default()).await });
        events.expect("events").items.into_iter().any(|event| {
            event.reason.as_deref() == Some(reason) && event.message.is_some_and(|message| message.contains(words))
        })
    }
}

/// The deletion graph of the clusters at work.
struct Working<'c> {
    compute: &'c Compute,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            let ended = self
                .compute
                .runtime
                .block_on(async { timeout(WAIT_MAX, running).await });
            // A panic of the loop is the test's own failure.
            drop(ended);
        }
    }
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CLUSTERS.crd_name()},
        "spec": {
            "group": CLUSTERS.group,
            "scope": "Namespaced",
            "names": {"kind": CLUSTERS.name, "plural": CLUSTERS.plural, "singular": CLUSTERS.singular},
            "versions": [{
                "name": CLUSTERS.version,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
            }],
        },
    })
}

/// A service with projects, at an address that it keeps.
fn identity() -> (Running, String) {
    let address = format!("127.0.0.1:{}", ports::reserve());
    let run = Running::start(&["--listen", &address]);
    for name in ["a", "b"] {
        let project = format!(
            "apiVersion: michelangelo.api/v2\nkind: Project\nmetadata: {{name: {name}, namespace: default}}\nspec: {{}}\n"
        );
        run.kubectl(&["apply", "-f", "-"], &project);
    }
    (run, format!("http://{address}"))
}

fn has_reference(run: &Running, project: &str, reference: &str) -> bool {
    let path = "-o=jsonpath={.metadata.finalizers}";
    let finalizers = run.kubectl(&["get", "project", project, "--ignore-not-found", path], "");
    finalizers.contains(reference)
}

#[test]
fn a_project_of_another_service_takes_its_clusters_along_and_goes_after_them() {
    if !kubectl_is_there() {
        return;
    }
    let (run, url) = identity();
    let compute = Compute::start(url);
    let _working = compute.work();
    let (held, other) = (compute.create("c", "a"), compute.create("d", "b"));
    wait_for("the references", || {
        has_reference(&run, "a", &held) && has_reference(&run, "b", &other)
    });
    let finalizers = json!({"metadata": {"finalizers": ["compute.example.com/deletion", "example.com/machines"]}});
    let patch = |patch: Value| {
        let patched = compute.runtime.block_on(async {
            compute
                .api()
                .patch("c", &PatchParams::default(), &Patch::Merge(patch))
                .await
        });
        patched.expect("it is there");
    };
    patch(finalizers);

    run.kubectl(&["delete", "project", "a", "--wait=false"], "");
    wait_for("the cluster to drain", || compute.phase("c") == "DRAINING");
    assert!(
        has_reference(&run, "a", &held),
        "the project is held until the cluster is through"
    );
    patch(json!({"metadata": {"finalizers": ["compute.example.com/deletion"]}}));
    wait_for("both to go", || {
        compute.get("c").is_none() && run.kubectl(&["get", "projects", "-o=name"], "").lines().count() == 1
    });
    let left = compute.get("d").expect("nobody deleted what it names");
    assert!(left.metadata.deletion_timestamp.is_none() && has_reference(&run, "b", &other));
}

#[test]
fn a_cluster_stays_until_the_other_service_has_released_it() {
    if !kubectl_is_there() {
        return;
    }
    let (mut run, url) = identity();
    let compute = Compute::start(url);
    let _working = compute.work();
    let held = compute.create("c", "a");
    wait_for("the reference", || has_reference(&run, "a", &held));
    run.kill();
    compute.delete("c");
    let why = "waits for the service identity at http://127.0.0.1:";
    wait_for("people to be told", || compute.has_event("ServiceUnavailable", why));
    wait_for("the condition", || {
        let blocked = compute.blocked("c");
        let names = |message: &str| message.starts_with(why);
        blocked["status"] == "True"
            && blocked["reason"] == "ServiceUnavailable"
            && blocked["message"].as_str().is_some_and(names)
    });
    assert_eq!(compute.phase("c"), "FINALIZING");
    run.restart();
    wait_for("the cluster to go", || compute.get("c").is_none());
    assert!(!has_reference(&run, "a", &held));
}

#[test]
fn holders_of_another_service_are_named_and_one_that_vanished_there_is_reported() {
    if !kubectl_is_there() {
        return;
    }
    let (run, url) = identity();
    let compute = Compute::start(url);
    let _working = compute.work();
    let lost = "project.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
    let uid = run.kubectl(&["get", "project", "a", "-o=jsonpath={.metadata.uid}"], "");
    let there = format!("project.michelangelo.api/{uid}");
    for (name, reference) in [("c", there.as_str()), ("d", lost)] {
        compute.create(name, "b");
        compute.place(name, reference);
        compute.delete(name);
    }
    wait_for("the holder to be named", || {
        compute.has_event("DeletionBlocked", "still in use by project.michelangelo.api default/a")
    });
    wait_for("the lost one to be reported", || {
        compute.has_event("HolderNotFound", &format!("still in use by {lost} (not found)"))
    });
    let is_kept = |name| compute.get(name).is_some_and(|found| found.finalizers().len() > 1);
    assert!(is_kept("c") && is_kept("d"), "nothing follows from absence");
}

#[test]
fn what_moved_while_nobody_was_at_work_releases_its_former_project() {
    if !kubectl_is_there() {
        return;
    }
    let (run, url) = identity();
    let compute = Compute::start(url);
    let working = compute.work();
    let held = compute.create("c", "a");
    wait_for("the reference", || has_reference(&run, "a", &held));
    drop(working);
    compute.move_to("c", "b");
    let _working = compute.work();
    wait_for("the new project to be held", || has_reference(&run, "b", &held));
    wait_for("the old project to be free", || !has_reference(&run, "a", &held));
}

#[test]
fn an_address_of_a_service_that_nothing_waits_for_is_refused() {
    for (flags, why) in [
        (["--service", "nonsense"].as_slice(), "no NAME=URL"),
        (
            &["--service", "region=httpx"],
            "\"httpx\" is not an http:// or https:// URL",
        ),
        (
            &["--service", "region=http://127.0.0.1:1"],
            "crds.toml declares no service region",
        ),
        (
            &["--deletion=false", "--service", "region=http://127.0.0.1:1"],
            "--service has no effect with --deletion=false",
        ),
        (
            &["--deletion=false", "--service-events", "nats"],
            "--service-events has no effect with --deletion=false",
        ),
        (&["--service-events", "nats"], "no NATS server is named"),
        (&["--service-events", "mail"], "possible values: api, watch, nats"),
    ] {
        let mut run = Running::once(&[&["--once"], flags].concat());
        let output = run.finish();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(why), "{text}");
        assert!(!run.data_dir().exists(), "nothing was made before {text}");
    }
}
