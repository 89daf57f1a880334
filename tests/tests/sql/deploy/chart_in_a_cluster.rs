//! The chart on a real kube-apiserver: every manifest passes its strict validation, and helm installs, changes and
//! removes a release. No pods run there; the containers run elsewhere, as processes.

use std::path::Path;
use std::process::Command;

use kindex_harness::controlplane::ControlPlane;
use kindex_harness::require::require;
use kindex_harness::wait::wait_until;
use kindex_harness::{helm, kubectl};
use serde_json::{Value, json};

use super::chart::{AGGREGATED, EVERYTHING, everything, helm_is_there, rendered};

/// As much of the Prometheus operator's kind as the chart uses: the fields that it sets, and no others.
const SERVICE_MONITORS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, plural: servicemonitors, singular: servicemonitor}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [endpoints, selector]
            properties:
              selector:
                type: object
                properties:
                  matchLabels: {type: object, additionalProperties: {type: string}}
              endpoints:
                type: array
                items:
                  type: object
                  properties:
                    port: {type: string}
                    path: {type: string}
                    interval: {type: string, pattern: '^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$'}
"#;

struct Cluster {
    plane: ControlPlane,
}

impl Cluster {
    /// With the release's namespace and the monitor's kind in it.
    fn start() -> Option<Self> {
        let kubectl_is_there = require("kubectl", kubectl::installed());
        if !(helm_is_there() && kubectl_is_there && require("controlplane", ControlPlane::installed())) {
            return None;
        }
        let cluster = Self {
            plane: ControlPlane::start(),
        };
        cluster.kubectl(&["create", "namespace", helm::RELEASE], "");
        cluster.kubectl(&["create", "-f", "-"], SERVICE_MONITORS);
        let established = "--for=condition=established";
        let name = "crd/servicemonitors.monitoring.coreos.com";
        cluster.kubectl(&["wait", established, "--timeout=240s", name], "");
        // Which kinds there are kube-apiserver tells from a copy that is renewed later.
        wait_until("the kind in the discovery", || {
            let output = kubectl::run(cluster.command(&["get", "servicemonitors", "-A"]), "");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(stderr) }
        });
        Some(cluster)
    }

    fn kubeconfig(&self) -> &Path {
        self.plane.kubeconfig()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = kubectl::command("/nonexistent");
        command.args(args).env("KUBECONFIG", self.kubeconfig());
        command
    }

    fn kubectl(&self, args: &[&str], input: &str) -> String {
        let output = kubectl::run(self.command(args), input);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn helm(&self, args: &[&str]) {
        let kubeconfig = self.kubeconfig().to_str().expect("letters");
        let place = ["--kubeconfig", kubeconfig, "--namespace", helm::RELEASE];
        let output = helm::helm(&[args, &place].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "helm {args:?}: {stderr}");
    }

    fn get(&self, path: &[&str]) -> Value {
        let args = [&["get", "--namespace", helm::RELEASE, "-o", "json"], path].concat();
        serde_json::from_str(&self.kubectl(&args, "")).expect("JSON")
    }
}

#[test]
fn every_manifest_passes_the_strict_validation_of_kube_apiserver() {
    let Some(cluster) = Cluster::start() else { return };
    for manifests in [rendered(&[]), everything()] {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        let apply = ["apply", "--server-side", "--validate=strict", "-f", "-"];
        let tried = cluster.kubectl(&[&apply[..], &["--dry-run=server"]].concat(), &list.to_string());
        assert_eq!(tried.lines().count(), manifests.len(), "{tried}");
        cluster.kubectl(&apply, &list.to_string());
        // A Job cannot be changed: helm removes it before it makes the next one.
        cluster.kubectl(&["delete", "jobs", "--all", "--namespace", helm::RELEASE], "");
    }
}

#[test]
fn what_leads_kube_apiserver_to_the_api_server_passes_as_well() {
    let Some(cluster) = Cluster::start() else { return };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": rendered(AGGREGATED)});
    let apply = [
        "apply",
        "--server-side",
        "--validate=strict",
        "--dry-run=server",
        "-f",
        "-",
    ];
    let tried = cluster.kubectl(&apply, &list.to_string());
    assert_eq!(tried.lines().count(), rendered(AGGREGATED).len(), "{tried}");
}

#[test]
fn helm_installs_changes_and_removes_a_release() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = helm::chart();
    let chart = chart.to_str().expect("letters");
    // Its Job would be waited for, and nothing runs pods here.
    let upgrade = [
        "upgrade",
        "--install",
        "--reuse-values",
        "--no-hooks",
        helm::RELEASE,
        chart,
    ];
    let replicas = || cluster.get(&["deployment", "kindex-ingester"])["spec"]["replicas"].clone();
    let config = || cluster.get(&["configmap", "kindex"])["data"]["config.yaml"].to_string();
    let with = |values: &[&str]| cluster.helm(&[&upgrade[..], values].concat());
    with(&["--set=config.mysql.host=db"]);
    assert_eq!(replicas(), 2);
    with(EVERYTHING);
    let before = config();
    let monitors = cluster.get(&["servicemonitors"]);
    assert_eq!(monitors["items"].as_array().map(Vec::len), Some(1));
    // As the page on the chart has it.
    with(&["--set=database.enabled=false", "--set=api.enabled=false"]);
    assert_eq!(replicas(), 0, "disabled");
    assert!(!config().contains("mysql"), "{}", config());
    with(&["--set=database.enabled=true"]);
    assert_eq!(replicas(), 2, "enabled again");
    assert_eq!(config(), before);
    cluster.helm(&["uninstall", "--no-hooks", helm::RELEASE]);
    let left = cluster.get(&[
        "deployments,cronjobs,services,configmaps,roles,serviceaccounts",
        "-l",
        "app.kubernetes.io/name=kindex",
    ]);
    assert_eq!(left["items"], json!([]));
}

/// The volume has all runs: neither a change of the release, nor its end, nor an installation after that may lose it.
#[test]
fn the_volume_of_runs_outlives_every_change_of_its_release() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = helm::chart();
    let chart = chart.to_str().expect("letters");
    let upgrade = [
        "upgrade",
        "--install",
        "--reuse-values",
        "--no-hooks",
        helm::RELEASE,
        chart,
    ];
    let with = |values: &[&str]| cluster.helm(&[&upgrade[..], values].concat());
    let volume = || cluster.get(&["pvc", "kindex-runs"])["metadata"]["uid"].clone();
    let mounted = || {
        let pod = cluster.get(&["statefulset", "kindex-runs"])["spec"]["template"]["spec"].clone();
        let volumes = pod["volumes"].as_array().expect("volumes").clone();
        let data = volumes.into_iter().find(|volume| volume["name"] == "data");
        data.expect("its data")["persistentVolumeClaim"]["claimName"].clone()
    };
    let install = [
        "--set=config.mysql.host=db",
        "--set=runs.enabled=true",
        "--set=runs.options.allowPlaintext=true",
    ];
    with(&install);
    let (first, made) = (
        volume(),
        cluster.get(&["statefulset", "kindex-runs"])["metadata"]["uid"].clone(),
    );
    for change in [
        "--set=image.tag=next",
        "--set=runs.options.durability=normal",
        "--set=runs.resources.limits.memory=2Gi",
        "--set=runs.podAnnotations.changed=yes",
        "--set=runs.replicas=0",
        "--set=runs.replicas=1",
    ] {
        with(&[change]);
        assert_eq!((volume(), mounted()), (first.clone(), json!("kindex-runs")), "{change}");
        let now = cluster.get(&["statefulset", "kindex-runs"])["metadata"]["uid"].clone();
        assert_eq!(now, made, "{change}: it is changed, and not made anew");
    }
    with(&["--set=runs.enabled=false"]);
    assert_eq!(volume(), first, "disabled");
    with(&["--set=runs.enabled=true"]);
    assert_eq!(
        (volume(), mounted()),
        (first.clone(), json!("kindex-runs")),
        "enabled again"
    );
    cluster.helm(&["uninstall", "--no-hooks", helm::RELEASE]);
    assert_eq!(volume(), first, "the release is gone");
    with(&install);
    assert_eq!((volume(), mounted()), (first, json!("kindex-runs")), "installed again");
}
