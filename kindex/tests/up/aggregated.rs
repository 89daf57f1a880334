//! Archived objects through kube-apiserver itself, by its aggregation layer: the users' own kubeconfig, their own
//! rights, and no other server to know of.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kindex_harness::kubectl;
use serde_json::{Value, json};

use super::api::Role;
use super::process::{Running, kubectl_is_there, wait_for};
use super::site::Site;

const GROUP: &str = "archive.michelangelo.api";

/// What kubectl says to kube-apiserver as one of its users, and whether it is content.
fn kubectl(kubeconfig: &Path, user: &str, line: &str, input: &str) -> (bool, String) {
    let mut command = kubectl::command(kubeconfig.parent().expect("a file lies in a folder"));
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--context", user])
        .args(line.split(' '));
    let output = kubectl::run(command, input);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn emitted(file: &str) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a member");
    std::fs::read_to_string(workspace.join("schema").join(file)).expect("an emitted file")
}

/// Leads the group to a server on loopback, by the emitted manifest: with a service of that name, since no addresses of
/// pods lead here.
fn register(kubeconfig: &Path, server: SocketAddr) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kindex-api", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": server.port()}]},
    });
    let mut api_services: Value = serde_saphyr::from_str(&emitted("aggregation.yaml")).expect("YAML");
    for api_service in api_services["items"].as_array_mut().expect("items") {
        let spec = &mut api_service["spec"];
        spec["insecureSkipTLSVerify"] = json!(true);
        spec["service"]["namespace"] = json!("default");
        spec["service"]["port"] = json!(server.port());
    }
    for manifest in [service, api_services] {
        done(kubeconfig, "admin", "apply -f -", &manifest.to_string());
    }
    wait_for("the group", || {
        let (content, output) = kubectl(kubeconfig, "admin", "get --raw /apis/archive.michelangelo.api/v2", "");
        content && output.contains("pipelineruns")
    });
    // Which groups there are kube-apiserver tells from a copy that is renewed later.
    wait_for("the group in the discovery", || {
        kubectl(kubeconfig, "admin", &format!("get models.{GROUP} -A"), "").0
    });
}

/// A kubeconfig of a user who has the emitted roles of the server, and no other rights.
fn of_the_server(kubeconfig: &Path, directory: &Path) -> PathBuf {
    for (role, name) in [("api", "kindex-api"), ("api-aggregated", "kindex-api-aggregated")] {
        done(
            kubeconfig,
            "admin",
            "apply -f -",
            &emitted(&format!("rbac/{role}.yaml")),
        );
        done(
            kubeconfig,
            "admin",
            &format!("create clusterrolebinding {name} --clusterrole={name} --user=carol"),
            "",
        );
    }
    let reader = "extension-apiserver-authentication-reader";
    let bind = format!("create rolebinding kindex-api -n kube-system --role={reader} --user=carol");
    done(kubeconfig, "admin", &bind, "");
    // Rights are granted a moment after they are written down, and so is the front proxy named.
    wait_for("the front proxy", || {
        let map = "get configmap extension-apiserver-authentication -n kube-system -o yaml";
        kubectl(kubeconfig, "carol", map, "")
            .1
            .contains("requestheader-client-ca-file")
    });
    for right in [
        "create subjectaccessreviews.authorization.k8s.io",
        "list models.michelangelo.api -A",
    ] {
        wait_for("the rights of the server", || {
            kubectl(kubeconfig, "carol", &format!("auth can-i {right}"), "").0
        });
    }
    let text = std::fs::read_to_string(kubeconfig).expect("a file");
    let path = directory.join("server.kubeconfig");
    std::fs::write(&path, text.replace("current-context: admin", "current-context: carol")).expect("writable");
    path
}

/// What kubectl says, which is content.
fn done(kubeconfig: &Path, user: &str, line: &str, input: &str) -> String {
    let (content, output) = kubectl(kubeconfig, user, line, input);
    assert!(content, "{line}: {output}");
    output
}

fn grant(kubeconfig: &Path, user: &str, group: &str) {
    let role = format!("{user}-{}", group.replace('.', "-"));
    let rule = format!("create clusterrole {role} --verb=get,list,watch --resource=models.{group}");
    done(kubeconfig, "admin", &rule, "");
    done(
        kubeconfig,
        "admin",
        &format!("create clusterrolebinding {role} --clusterrole={role} --user={user}"),
        "",
    );
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
        "--deletion=false",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let role = Role::start(&run, &of_the_server(kubeconfig, &run.data_dir()), &flags);
    register(kubeconfig, role.api);

    let model = "ingester-test-model -n ingester-test";
    let evict = format!("annotate models.michelangelo.api {model} michelangelo/Immutable=true");
    done(kubeconfig, "admin", &evict, "");
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
        let output = done(kubeconfig, "admin", &line, "");
        assert!(output.contains("ingester-test-model"), "{line}: {output}");
    }
    let (_, output) = kubectl(kubeconfig, "admin", &format!("{archived} {model} -o yaml"), "");
    assert!(
        output.contains("apiVersion: michelangelo.api/v2"),
        "it can be applied: {output}"
    );

    refuse(kubeconfig, &archived);
    change(kubeconfig, model);
}

/// Both servers have to agree: kube-apiserver on the group that is asked for, ours on the kind's own.
fn refuse(kubeconfig: &Path, archived: &str) {
    let all = format!("{archived} -A");
    let (content, output) = kubectl(kubeconfig, "alice", &all, "");
    assert!(!content && output.contains("orbidden"), "nothing is granted: {output}");
    grant(kubeconfig, "alice", GROUP);
    wait_for("the word of ours", || {
        kubectl(kubeconfig, "alice", &all, "")
            .1
            .contains("API group \"michelangelo.api\"")
    });
    grant(kubeconfig, "alice", "michelangelo.api");
    wait_for("her rights", || {
        kubectl(kubeconfig, "alice", &all, "").1.contains("ingester-test-model")
    });
    let (content, output) = kubectl(kubeconfig, "admin", &format!("{all} --as bob"), "");
    assert!(!content && output.contains("User \"bob\""), "{output}");
}

fn change(kubeconfig: &Path, model: &str) {
    let label = format!("label models.{GROUP} {model} team=x");
    done(kubeconfig, "admin", &label, "");
    let found = format!("get models.{GROUP} -A -l team=x -o name");
    let (_, output) = kubectl(kubeconfig, "admin", &found, "");
    assert!(output.contains("ingester-test-model"), "{output}");
    let create = json!({
        "apiVersion": format!("{GROUP}/v2"), "kind": "Model", "metadata": {"name": "a", "namespace": "default"},
    });
    let (content, output) = kubectl(kubeconfig, "admin", "create --validate=false -f -", &create.to_string());
    assert!(!content && output.contains("does not allow this method"), "{output}");
    let delete = format!("delete models.{GROUP} {model} --timeout=240s");
    let output = done(kubeconfig, "admin", &delete, "");
    assert!(output.contains("deleted"), "{output}");
}
