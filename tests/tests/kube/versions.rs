//! A kind in several versions, as the real kubectl sees it: each version in its own shape, whichever is stored. In the
//! embedded cluster, which converts in process, and on a kube-apiserver, which asks the webhook.

use std::path::PathBuf;
use std::sync::Arc;

use kindex_cluster::ClusterOptions;
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::kubectl;
use kindex_harness::wait::eventually;
use kindex_tests::trials::{KIND, Trials, webhook};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cluster::TestCluster;
use super::kubectl::kubectl_is_there;

const OLD: &str = r#"
apiVersion: traps.dev/v1
kind: Trial
metadata: {name: old, namespace: default}
spec: {method: xgboost, rate: 0.5, hours: 2, notes: [first, second]}
"#;

const NEW: &str = r#"
apiVersion: traps.dev/v2
kind: Trial
metadata: {name: new, namespace: default}
spec: {algorithm: lightgbm, mode: MODE_NEW, seconds: 5000, optimizer: {rate: 0.1, momentum: 0.9}}
"#;

/// A cluster that serves trials.
struct Server {
    client: Client,
    kubeconfig: PathBuf,
    _embedded: Option<TestCluster>,
    _webhook: Option<DropGuard>,
}

impl Server {
    async fn embedded(manifest: &Value) -> Self {
        let options = ClusterOptions {
            converter: Some(Arc::new(Trials)),
            ..ClusterOptions::default()
        };
        Self::within(options, manifest, None).await
    }

    /// An embedded cluster that knows nothing of trials, and asks a webhook.
    async fn embedded_with_webhook() -> Self {
        let (manifest, stop) = with_webhook().await;
        Self::within(ClusterOptions::default(), &manifest, Some(stop)).await
    }

    async fn within(options: ClusterOptions, manifest: &Value, webhook: Option<DropGuard>) -> Self {
        let cluster = TestCluster::with(options).await;
        let place = Self {
            client: cluster.client.clone(),
            kubeconfig: cluster.path("kubeconfig"),
            _embedded: Some(cluster),
            _webhook: webhook,
        };
        place.install(manifest).await;
        place
    }

    /// A kube-apiserver that asks a webhook of ours, with the certificate's authority in the definition.
    async fn real(plane: &ControlPlane) -> Self {
        let (manifest, stop) = with_webhook().await;
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let place = Self {
            client: Client::try_from(config.unwrap()).unwrap(),
            kubeconfig: plane.kubeconfig().to_owned(),
            _embedded: None,
            _webhook: Some(stop),
        };
        place.install(&manifest).await;
        place
    }

    /// Applies the definition of trials and waits until it is served.
    async fn install(&self, manifest: &Value) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &super::cluster::definitions());
        let parameters = PatchParams::apply("tests").force();
        let patch = Patch::Apply(manifest);
        api.patch(&KIND.crd_name(), &parameters, &patch).await.unwrap();
        eventually("trials are served", async || {
            let trials = self.trials("v2");
            let found = trials.list(&kube::api::ListParams::default()).await;
            found.is_ok()
        })
        .await;
    }

    fn trials(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(KIND.group, version, KIND.name);
        let resource = ApiResource::from_gvk_with_plural(&kind, KIND.plural);
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    /// What kubectl says.
    async fn kubectl(&self, words: &[&str], input: &str) -> String {
        let mut command = kubectl::command(self.kubeconfig.parent().unwrap());
        command.args(words).env("KUBECONFIG", &self.kubeconfig);
        let output = kubectl::run_async(command, input).await;
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).unwrap()
    }

    /// The spec of an object, as kubectl gets it in a version.
    async fn spec(&self, version: &str, name: &str) -> Value {
        let resource = format!("trials.{version}.{}", KIND.group);
        let output = self.kubectl(&["get", &resource, name, "-o", "json"], "").await;
        let (_, object) = output.split_once('{').unwrap_or_else(|| panic!("{output}"));
        let object: Value = serde_json::Deserializer::from_str(&format!("{{{object}"))
            .into_iter()
            .next()
            .expect("an object")
            .unwrap();
        assert_eq!(object["apiVersion"], format!("{}/{version}", KIND.group));
        object["spec"].clone()
    }
}

/// The definition with a webhook that is served for as long as the guard is kept.
async fn with_webhook() -> (Value, DropGuard) {
    let stop = CancellationToken::new();
    let mut manifest = manifest("v2");
    assert_eq!(manifest["spec"]["conversion"]["strategy"], "Webhook");
    manifest["spec"]["conversion"]["webhook"]["clientConfig"] = webhook(stop.clone()).await;
    (manifest, stop.drop_guard())
}

/// The definition, with objects stored in that version.
fn manifest(stored: &str) -> Value {
    let mut manifest: Value = serde_saphyr::from_str(KIND.manifest).unwrap();
    for version in manifest["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = (version["name"] == stored).into();
    }
    manifest
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_each_version_in_its_own_shape() {
    if !kubectl_is_there() {
        return;
    }
    each_version_has_its_own_shape(&Server::embedded(&manifest("v2")).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_cluster_converts_by_the_webhook() {
    if kubectl_is_there() {
        each_version_has_its_own_shape(&Server::embedded_with_webhook().await).await;
    }
}

/// There are no services, and an object is not shown in a form that nobody made.
#[tokio::test]
async fn a_webhook_behind_a_service_is_refused_by_name() {
    let place = Server::within(ClusterOptions::default(), &manifest("v2"), None).await;
    let object: DynamicObject = serde_saphyr::from_str(NEW).unwrap();
    place
        .trials("v2")
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let refused = place.trials("v1").get("new").await.unwrap_err().to_string();
    assert!(
        refused.contains("conversion webhook for traps.dev/v2, Kind=Trial failed"),
        "{refused}"
    );
    assert!(refused.contains("service \"kindex-migrator\" not found"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_converts_by_the_webhook() {
    let Some(plane) = ControlPlane::shared().filter(|_| kubectl_is_there()) else {
        return;
    };
    each_version_has_its_own_shape(&Server::real(plane).await).await;
}

async fn each_version_has_its_own_shape(place: &Server) {
    let output = place.kubectl(&["apply", "-f", "-"], OLD).await;
    assert!(output.contains("created") && output.contains("use v2"), "{output}");
    place.kubectl(&["apply", "-f", "-"], NEW).await;
    let old = json!({"method": "xgboost", "rate": 0.5, "hours": 2, "notes": ["first", "second"]});
    assert_eq!(place.spec("v1", "old").await, old);
    let old = json!({"algorithm": "xgboost", "optimizer": {"rate": 0.5}, "mode": "MODE_LEGACY", "retries": 3, "seconds": 7200});
    assert_eq!(place.spec("v2", "old").await, old);
    assert_eq!(
        place.spec("v1", "new").await,
        json!({"method": "lightgbm", "rate": 0.1, "hours": 1})
    );

    let patch = [
        "patch",
        "trials.v1.traps.dev",
        "new",
        "--type=merge",
        "-p",
        r#"{"spec":{"tries":7}}"#,
    ];
    place.kubectl(&patch, "").await;
    let new = json!({"algorithm": "lightgbm", "mode": "MODE_NEW", "seconds": 5000, "retries": 7,
                     "optimizer": {"rate": 0.1, "momentum": 0.9}});
    assert_eq!(place.spec("v2", "new").await, new, "what v1 does not show is as it was");
    for (version, column) in [("v1", "spec.method"), ("v2", "spec.algorithm")] {
        let (resource, selector) = (format!("trials.{version}.traps.dev"), format!("{column}=xgboost"));
        let found = place
            .kubectl(&["get", &resource, "-o", "name", "--field-selector", &selector], "")
            .await;
        assert!(found.contains("/old") && !found.contains("/new"), "{found}");
        let table = place.kubectl(&["get", &resource], "").await;
        assert!(table.contains("ALGORITHM") && table.contains("lightgbm"), "{table}");
        assert_eq!(table.contains("SECONDS"), version == "v2", "{table}");
    }
    let unserved = place.kubectl(&["get", "trials.v2beta1.traps.dev"], "").await;
    assert!(unserved.contains("doesn't have a resource type"), "{unserved}");
    for name in ["old", "new"] {
        place.kubectl(&["delete", "trial", name], "").await;
    }
}

/// What one version has no place for comes back, and nothing is left to carry.
#[tokio::test]
async fn an_object_is_the_same_after_it_was_changed_in_another_version() {
    let place = Server::embedded(&manifest("v1")).await;
    let object: DynamicObject = serde_saphyr::from_str(NEW).unwrap();
    let before = place
        .trials("v2")
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let change = Patch::Merge(json!({"metadata": {"labels": {"seen": "true"}}}));
    let changed = place
        .trials("v1")
        .patch("new", &PatchParams::default(), &change)
        .await
        .unwrap();
    assert_eq!(
        changed.data["spec"],
        json!({"method": "lightgbm", "rate": 0.1, "hours": 1})
    );
    let after = place.trials("v2").get("new").await.unwrap();
    assert_eq!(after.data["spec"], before.data["spec"]);
    assert_eq!(after.metadata.annotations, None);
    assert_eq!(after.metadata.generation, before.metadata.generation);
}

/// As a storage version is changed by its operator.
#[tokio::test]
async fn an_update_without_a_change_stores_the_object_in_the_version_of_today() {
    let place = Server::embedded(&manifest("v1")).await;
    let object: DynamicObject = serde_saphyr::from_str(NEW).unwrap();
    let before = place
        .trials("v2")
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let touch = async || {
        let nothing = Patch::Merge(json!({}));
        place
            .trials("v2")
            .patch("new", &PatchParams::default(), &nothing)
            .await
            .unwrap()
    };
    assert_eq!(
        touch().await.metadata.resource_version,
        before.metadata.resource_version
    );
    place.install(&manifest("v2")).await;
    let rewritten = touch().await;
    assert_ne!(rewritten.metadata.resource_version, before.metadata.resource_version);
    assert_eq!(rewritten.data["spec"], before.data["spec"]);
    assert_eq!(
        touch().await.metadata.resource_version,
        rewritten.metadata.resource_version
    );
}
