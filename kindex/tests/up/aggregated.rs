//! Archived objects through kube-apiserver itself, by its aggregation layer: the users' own kubeconfig, their own
//! rights, and no other server to know of.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::api::Role;
use super::process::{Running, kubectl_is_there, wait_for};
use super::site::Site;

const GROUP: &str = "archive.michelangelo.api";

/// What kubectl says to kube-apiserver as one of its users, and whether it is content.
fn kubectl(kubeconfig: &Path, user: &str, line: &str, input: &str) -> (bool, String) {
    let mut child = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--context", user])
        .args(line.split(' '))
        .env("HOME", kubeconfig.parent().expect("a file lies in a folder"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("kubectl reads");
    drop(stdin);
    let output = child.wait_with_output().expect("kubectl ends");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Leads the group to a server on loopback: a service of that name, since no addresses of pods lead here.
fn register(kubeconfig: &Path, server: SocketAddr) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kindex-api", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": server.port()}]},
    });
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v2.{GROUP}")},
        "spec": {
            "group": GROUP, "version": "v2", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true,
            "service": {"name": "kindex-api", "namespace": "default", "port": server.port()},
        },
    });
    for manifest in [service, api_service] {
        let (content, said) = kubectl(kubeconfig, "admin", "apply -f -", &manifest.to_string());
        assert!(content, "{said}");
    }
    wait_for("the group", || {
        let (content, said) = kubectl(kubeconfig, "admin", "get --raw /apis/archive.michelangelo.api/v2", "");
        content && said.contains("pipelineruns")
    });
}

fn grant(kubeconfig: &Path, user: &str, groups: &[&str]) {
    let rules = json!([{"apiGroups": groups, "resources": ["models"], "verbs": ["get", "list", "watch"]}]);
    let name = format!("{user}-{}", groups.len());
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    for manifest in [role, binding] {
        let (content, said) = kubectl(kubeconfig, "admin", "apply -f -", &manifest.to_string());
        assert!(content, "{said}");
    }
}

/// A certificate for a server whose clients do not look at it.
const CERTIFICATE: &str = include_str!("../../../tests/tests/api/tls/first.crt");
const KEY: &str = include_str!("../../../tests/tests/api/tls/first.key");

#[test]
fn archived_objects_are_found_at_the_usual_server_with_the_usual_rights() {
    let Some(site) = Site::real().filter(|_| kubectl_is_there()) else {
        return;
    };
    let kubeconfig = site.kubeconfig().expect("a real cluster has one");
    let run = Running::start_on(&site, &["--samples"]);
    let (certificate, key) = (run.data_dir().join("tls.crt"), run.data_dir().join("tls.key"));
    std::fs::write(&certificate, CERTIFICATE).expect("writable");
    std::fs::write(&key, KEY).expect("writable");
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    let flags = [
        "--rights",
        "caller",
        "--aggregated",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let role = Role::start(&run, kubeconfig, &flags);
    register(kubeconfig, role.api);

    let model = "ingester-test-model -n ingester-test";
    let evict = format!("annotate models.michelangelo.api {model} michelangelo/Immutable=true");
    let (content, said) = kubectl(kubeconfig, "admin", &evict, "");
    assert!(content, "{said}");
    let get = format!("get models.michelangelo.api {model}");
    wait_for("its way out of the cluster", || {
        !kubectl(kubeconfig, "admin", &get, "").0
    });

    let archived = format!("get models.{GROUP}");
    for line in [
        format!("{archived} {model}"),
        format!("{archived} -A"),
        format!("{archived} -A -o name"),
    ] {
        let (content, said) = kubectl(kubeconfig, "admin", &line, "");
        assert!(content && said.contains("ingester-test-model"), "{line}: {said}");
    }
    let (_, said) = kubectl(kubeconfig, "admin", &format!("{archived} {model} -o yaml"), "");
    assert!(
        said.contains("apiVersion: michelangelo.api/v2"),
        "it can be applied: {said}"
    );

    refuse(kubeconfig, &archived);
    change(kubeconfig, model);
}

/// Both servers have to agree: kube-apiserver on the group that is asked for, ours on the kind's own.
fn refuse(kubeconfig: &Path, archived: &str) {
    let all = format!("{archived} -A");
    let (content, said) = kubectl(kubeconfig, "alice", &all, "");
    assert!(!content && said.contains("orbidden"), "nothing is granted: {said}");
    grant(kubeconfig, "alice", &[GROUP]);
    wait_for("the word of ours", || {
        kubectl(kubeconfig, "alice", &all, "")
            .1
            .contains("API group \"michelangelo.api\"")
    });
    grant(kubeconfig, "alice", &[GROUP, "michelangelo.api"]);
    wait_for("her rights", || {
        kubectl(kubeconfig, "alice", &all, "").1.contains("ingester-test-model")
    });
    let (content, said) = kubectl(kubeconfig, "admin", &format!("{all} --as bob"), "");
    assert!(!content && said.contains("User \"bob\""), "{said}");
}

fn change(kubeconfig: &Path, model: &str) {
    let label = format!("label models.{GROUP} {model} team=x");
    let (content, said) = kubectl(kubeconfig, "admin", &label, "");
    assert!(content, "{said}");
    let found = format!("get models.{GROUP} -A -l team=x -o name");
    let (_, said) = kubectl(kubeconfig, "admin", &found, "");
    assert!(said.contains("ingester-test-model"), "{said}");
    let create = json!({
        "apiVersion": format!("{GROUP}/v2"), "kind": "Model", "metadata": {"name": "a", "namespace": "default"},
    });
    let (content, said) = kubectl(kubeconfig, "admin", "create --validate=false -f -", &create.to_string());
    assert!(!content && said.contains("does not allow this method"), "{said}");
    let delete = format!("delete models.{GROUP} {model} --timeout=20s");
    let (content, said) = kubectl(kubeconfig, "admin", &delete, "");
    assert!(content && said.contains("deleted"), "{said}");
}
