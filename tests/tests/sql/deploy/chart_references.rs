//! The deletion graph in the chart: its flags, the role of holders' controllers, and the policy that keeps references
//! on objects, on a real kube-apiserver.

use std::process::Output;

use clap::Parser as _;
use kindex::cli::Cli;
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::kubectl;
use kindex_harness::require::require;
use kindex_harness::wait::wait_until;
use serde_json::{Value, json};

use super::chart::{helm_is_there, one, rendered};
use super::manifest::documents;
use super::path;

const ON: &str = "--set=deletion.enabled=true";
const REFERENCE: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const OTHER: &str = "cluster.compute.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";
/// Its holder is of a kind of the chart, which says the plural.
const OWN: &str = "modelfamily.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const BACKUP: &str = "example.com/backup";
const ANNOTATION: &str = "michelangelo.api/release-references";

#[test]
fn the_container_runs_a_command_that_the_program_takes() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(&[ON, "--set=deletion.options.blockedAfterSeconds=3600"]);
    let deployment = one(&manifests, "Deployment", "kindex-deletion");
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let args = args
        .as_array()
        .expect("arguments")
        .iter()
        .map(|arg| arg.as_str().expect("text"));
    let args: Vec<_> = args.collect();
    assert!(args.contains(&"--blocked-after=3600"), "{args:?}");
    assert!(Cli::try_parse_from(["kindex"].iter().chain(&args)).is_ok(), "{args:?}");
    assert_eq!(deployment["spec"]["replicas"], 2);
}

#[test]
fn nats_is_fed_with_the_token_and_the_certificates_of_a_secret() {
    if !helm_is_there() {
        return;
    }
    let nats = "--set=deletion.options.nats.url=tls://nats:4222,deletion.options.nats.partitions=4";
    let keys = "--set=deletion.keys.existingSecret=nats,deletion.keys.natsToken=token,deletion.keys.natsCa=ca.crt";
    let manifests = rendered(&[ON, nats, keys]);
    let pod = &one(&manifests, "Deployment", "kindex-deletion")["spec"]["template"]["spec"];
    let args = pod["containers"][0]["args"].as_array().expect("arguments");
    let args: Vec<_> = args.iter().filter_map(Value::as_str).collect();
    for flag in [
        "--config=/etc/kindex/config/config.yaml",
        "--nats=tls://nats:4222",
        "--nats-partitions=4",
        "--nats-token-file=/etc/kindex/keys/token",
        "--nats-ca-file=/etc/kindex/keys/ca.crt",
    ] {
        assert!(args.contains(&flag), "{args:?}");
    }
    assert!(Cli::try_parse_from(["kindex"].iter().chain(&args)).is_ok(), "{args:?}");
    let volumes = pod["volumes"].as_array().expect("volumes");
    let volume = |name: &str| volumes.iter().find(|volume| volume["name"] == name);
    assert_eq!(volume("keys").expect("the Secret")["secret"]["secretName"], "nats");
    assert!(volume("mysql").is_some(), "it reads the outbox");

    let off = rendered(&[ON, "--set=database.enabled=false"]);
    let deployment = one(&off, "Deployment", "kindex-deletion");
    assert_eq!(deployment["spec"]["replicas"], 2, "it works without a database");
}

#[test]
fn a_web_server_is_notified_with_the_token_and_the_certificates_of_a_secret() {
    if !helm_is_there() {
        return;
    }
    let url = "--set=deletion.options.notify.url=https://hooks.example.com/kindex";
    let keys = "--set=deletion.keys.existingSecret=hooks,deletion.keys.notifyToken=token";
    // Both servers may have a certificate of the same authority.
    let certificates = "--set=deletion.keys.notifyCa=ca.crt,deletion.keys.natsCa=ca.crt";
    let nats = "--set=deletion.options.nats.url=tls://nats:4222";
    let manifests = rendered(&[ON, url, keys, certificates, nats]);
    let pod = &one(&manifests, "Deployment", "kindex-deletion")["spec"]["template"]["spec"];
    let args = pod["containers"][0]["args"].as_array().expect("arguments");
    let args: Vec<_> = args.iter().filter_map(Value::as_str).collect();
    for flag in [
        "--notify=https://hooks.example.com/kindex",
        "--notify-token-file=/etc/kindex/keys/token",
        "--notify-ca-file=/etc/kindex/keys/ca.crt",
    ] {
        assert!(args.contains(&flag), "{args:?}");
    }
    assert!(Cli::try_parse_from(["kindex"].iter().chain(&args)).is_ok(), "{args:?}");
    let mut volumes = pod["volumes"].as_array().expect("volumes").iter();
    let secret = volumes.find(|volume| volume["name"] == "keys").expect("the Secret");
    let items = json!([{"key": "ca.crt", "path": "ca.crt"}, {"key": "token", "path": "token"}]);
    assert_eq!(secret["secret"]["items"], items);
}

fn is_policy(manifest: &&Value) -> bool {
    manifest["apiVersion"] == "admissionregistration.k8s.io/v1"
}

#[test]
fn the_policy_is_the_emitted_one_with_the_accounts_of_the_release() {
    if !helm_is_there() {
        return;
    }
    assert_eq!(rendered(&[]).iter().filter(is_policy).count(), 0);
    let off = [ON, "--set=references.policy.enabled=false,references.role=false"];
    assert_eq!(rendered(&off).iter().filter(is_policy).count(), 0);
    let name = "fleet-data-references";
    let manifests = rendered(&[ON, "--set=fullnameOverride=fleet", "--namespace=data"]);
    let policy = one(&manifests, "ValidatingAdmissionPolicy", name);
    let binding = one(&manifests, "ValidatingAdmissionPolicyBinding", name);
    assert_eq!(binding["spec"]["policyName"], name);
    let mut expected = documents("schema/admission/references.yaml")[0]["items"][0]["spec"].clone();
    let accounts = &policy["spec"]["variables"][0]["expression"];
    for role in ["api", "deletion", "ingester"] {
        let account = format!("'system:serviceaccount:data:fleet-{role}'");
        assert!(accounts.as_str().expect("text").contains(&account), "{accounts}");
    }
    expected["variables"][0]["expression"] = accounts.clone();
    assert_eq!(policy["spec"], expected);
    let role = one(&manifests, "ClusterRole", name);
    assert_eq!(role["rules"], documents("schema/rbac/references.yaml")[0]["rules"]);
}

struct Cluster {
    plane: ControlPlane,
}

impl Cluster {
    /// With the kind of models and the policy in it.
    fn start() -> Option<Self> {
        let kubectl_is_there = require("kubectl", kubectl::installed());
        if !(helm_is_there() && kubectl_is_there && require("controlplane", ControlPlane::installed())) {
            return None;
        }
        let cluster = Self {
            plane: ControlPlane::start(),
        };
        let models = path("schema/crds/models.yaml").display().to_string();
        cluster.done(&["create", "-f", &models], "");
        cluster.done(
            &["wait", "--for=condition=established", "--timeout=240s", "crd", "--all"],
            "",
        );
        let policies: Vec<_> = rendered(&[ON]).into_iter().filter(|it| is_policy(&it)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": policies});
        cluster.done(&["create", "-f", "-"], &list.to_string());
        Some(cluster)
    }

    fn kubectl(&self, args: &[&str], input: &str) -> Output {
        let mut command = kubectl::command("/nonexistent");
        command.args(args).env("KUBECONFIG", self.plane.kubeconfig());
        kubectl::run(command, input)
    }

    fn done(&self, args: &[&str], input: &str) {
        let output = self.kubectl(args, input);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// With a model that others hold.
    fn with_model(finalizers: &[&str]) -> Option<Self> {
        let cluster = Self::start()?;
        let model = json!({"apiVersion": "michelangelo.api/v2", "kind": "Model",
            "metadata": {"name": "m", "finalizers": finalizers}, "spec": {"algorithm": "a"}});
        cluster.done(&["create", "-f", "-"], &model.to_string());
        Some(cluster)
    }

    /// Gives a user the right to do something with the resource of a group.
    fn grant(&self, user: &str, name: &str, (verbs, group, resource): (&[&str], &str, &str)) {
        let rbac = "rbac.authorization.k8s.io";
        let version = format!("{rbac}/v1");
        let rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let role = json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]});
        let binding = json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}]});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]});
        self.done(&["create", "-f", "-"], &list.to_string());
    }

    /// What is answered to a change of the model's metadata.
    fn change(&self, metadata: &Value, flags: &[&str]) -> Result<(), String> {
        let patch = json!({"metadata": metadata}).to_string();
        let args = ["patch", "models.michelangelo.api", "m", "--type=merge", "-p", &patch];
        let output = self.kubectl(&[&args[..], flags].concat(), "");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

#[test]
fn a_reference_is_taken_off_by_kindex_or_by_whoever_names_it() {
    let Some(cluster) = Cluster::with_model(&[REFERENCE, OTHER, BACKUP]) else {
        return;
    };
    let dry = "--dry-run=server";
    let none = json!({"finalizers": null});
    let message = wait_until("the policy at work", || match cluster.change(&none, &[dry]) {
        Ok(()) => Err("it is not refused".to_owned()),
        Err(message) => Ok(message),
    });
    for part in ["forbidden", REFERENCE, OTHER, "kindex references drop", ANNOTATION] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains(BACKUP), "{message}");

    let but_one = json!({"finalizers": [OTHER, BACKUP]});
    let message = cluster.change(&but_one, &[dry]).expect_err("refused");
    assert!(message.contains(REFERENCE) && !message.contains(OTHER), "{message}");
    let named = |names: &str| json!({"finalizers": [OTHER, BACKUP], "annotations": {ANNOTATION: names}});
    cluster.change(&named(OTHER), &[dry]).expect_err("another one is named");
    cluster
        .change(&named(&format!("{OTHER},{REFERENCE}")), &[dry])
        .expect("it is named");

    for finalizers in [
        json!([REFERENCE, OTHER]),
        json!([BACKUP, OTHER, REFERENCE, "example.com/other"]),
    ] {
        let metadata = json!({"finalizers": finalizers, "labels": {"changed": "yes"}});
        cluster
            .change(&metadata, &[dry])
            .expect("those of controllers are theirs");
    }
    let masters = "--as-group=system:masters";
    for account in ["api", "deletion", "ingester"] {
        let account = format!("--as=system:serviceaccount:kindex:kindex-{account}");
        cluster
            .change(&none, &[dry, &account, masters])
            .expect("an account of the release");
    }
    let stranger = "--as=system:serviceaccount:default:kindex-api";
    cluster
        .change(&none, &[dry, stranger, masters])
        .expect_err("another account");
    let operators = "--as-group=kindex:reference-operators";
    cluster
        .change(&none, &["--as=ana", masters, operators])
        .expect("an operator");
}

/// Who may change a model must also have the right that the API wants of those who release for its holders.
#[test]
fn whoever_names_a_reference_may_speak_for_its_holder() {
    let Some(cluster) = Cluster::with_model(&[REFERENCE, OWN, OTHER]) else {
        return;
    };
    let (ana, dry) = ("--as=ana", "--dry-run=server");
    let names = format!("{REFERENCE},{OWN},{OTHER}");
    let named = |left: Value| json!({"finalizers": left, "annotations": {ANNOTATION: names}});
    let without_both = named(json!([OTHER]));
    cluster.grant("ana", "models", (&["get", "patch"], "michelangelo.api", "models"));
    let is_of_policy = |message: &str| message.contains("kindex references drop");
    wait_until("the policy at work", || {
        match cluster.change(&without_both, &[dry, ana]) {
            Err(message) if is_of_policy(&message) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let granted = |metadata: &Value| cluster.change(metadata, &[dry, ana]);

    let clusters = "clusters/references";
    cluster.grant("ana", "others", (&["update"], "other.example.com", clusters));
    cluster.grant("ana", "kind", (&["update"], "compute.example.com", "clusters"));
    cluster.grant("ana", "clusters", (&["update"], "compute.example.com", clusters));
    let without_one = named(json!([OWN, OTHER]));
    wait_until("the right to speak for clusters", || granted(&without_one));
    let message = granted(&without_both).expect_err("she may not speak for families");
    assert!(is_of_policy(&message) && message.contains(OWN), "{message}");
    let unnamed = json!({"finalizers": [OWN, OTHER]});
    granted(&unnamed).expect_err("the right does not do without the name");

    cluster.grant(
        "ana",
        "families",
        (&["update"], "michelangelo.api", "modelfamilys/references"),
    );
    wait_until("the right to speak for families", || granted(&without_both));
    granted(&named(Value::Null)).expect_err("three rights cost more than an expression may");
}
