//! The block of the chart for runs: one pod, with a volume that outlives it and without rights in the cluster.

use clap::Parser as _;
use kindex::cli::Cli;
use serde_json::{Value, json};

use super::chart::{helm_is_there, one, rendered};

const ON: [&str; 2] = ["--set=runs.enabled=true", "--set=runs.tls.secretName=keys"];

fn with(values: &[&str]) -> Vec<Value> {
    rendered(&[&ON[..], values].concat())
}

fn stateful_set(manifests: &[Value]) -> &Value {
    &one(manifests, "StatefulSet", "kindex-runs")["spec"]
}

fn pod(manifests: &[Value]) -> &Value {
    &stateful_set(manifests)["template"]["spec"]
}

fn args(manifests: &[Value]) -> Vec<String> {
    let args = pod(manifests)["containers"][0]["args"]
        .as_array()
        .expect("arguments")
        .iter();
    args.map(|arg| arg.as_str().expect("a text").to_owned()).collect()
}

/// A second pod could not lock the file; a Deployment would start one beside a pod whose node does not respond.
#[test]
fn one_pod_has_the_file_and_no_other_is_ever_started_beside_it() {
    if !helm_is_there() {
        return;
    }
    let manifests = with(&[]);
    assert_eq!(stateful_set(&manifests)["replicas"], 1);
    assert!(
        manifests
            .iter()
            .all(|it| it["kind"] != "Deployment" || it["metadata"]["name"] != "kindex-runs")
    );
    let headless = stateful_set(&manifests)["serviceName"].as_str().expect("a name");
    assert_eq!(one(&manifests, "Service", headless)["spec"]["clusterIP"], "None");
}

#[test]
fn the_volume_outlives_pod_and_release_and_can_be_ones_own() {
    if !helm_is_there() {
        return;
    }
    let volume = |manifests: &[Value]| {
        let volumes = pod(manifests)["volumes"].as_array().expect("volumes").clone();
        let found = volumes.into_iter().find(|volume| volume["name"] == "data");
        found.expect("a volume")["persistentVolumeClaim"]["claimName"].clone()
    };
    let manifests = with(&[
        "--set=runs.storage.size=1Ti",
        "--set=runs.storage.storageClassName=fast",
    ]);
    let claim = one(&manifests, "PersistentVolumeClaim", "kindex-runs");
    assert_eq!(volume(&manifests), claim["metadata"]["name"]);
    assert_eq!(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "1Ti");
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    let container = &pod(&manifests)["containers"][0];
    let place = |name: &str| {
        let mut all = container["env"].as_array().expect("variables").iter();
        let found = all.find(|variable| variable["name"] == name).expect("a variable");
        found["value"].as_str().expect("a text").to_owned()
    };
    let mounts = container["volumeMounts"].as_array().expect("mounts").iter();
    let mut writable = mounts.filter(|mount| mount["readOnly"] != true);
    let mounted = writable.next().expect("a mount")["mountPath"].as_str().expect("a path");
    assert!(writable.next().is_none(), "nothing else can be written");
    assert!(place("KINDEX_RUNS_DATA_DIR").starts_with(mounted) && place("SQLITE_TMPDIR").starts_with(mounted));

    let manifests = with(&["--set=runs.storage.existingClaim=mine"]);
    assert_eq!(volume(&manifests), "mine");
    assert!(manifests.iter().all(|it| it["kind"] != "PersistentVolumeClaim"));
}

#[test]
fn its_pod_has_no_rights_and_reaches_neither_cluster_nor_database() {
    if !helm_is_there() {
        return;
    }
    let manifests = with(&["--set=networkPolicy.egress[0].ports[0].port=4318"]);
    assert_eq!(pod(&manifests)["automountServiceAccountToken"], false);
    let bound = |it: &&Value| it["kind"].as_str().is_some_and(|kind| kind.contains("Role"));
    let names = manifests
        .iter()
        .filter(bound)
        .map(|it| it["metadata"]["name"].to_string());
    assert_eq!(names.filter(|name| name.contains("runs")).count(), 0);
    let policy = &one(&manifests, "NetworkPolicy", "kindex-runs")["spec"];
    let rules = policy["egress"].as_array().expect("rules").iter();
    let ports: Vec<&Value> = rules
        .flat_map(|rule| rule["ports"].as_array().expect("ports"))
        .map(|port| &port["port"])
        .collect();
    assert_eq!(ports, [53, 53, 4318], "name servers, and what the values allow");
    let mounts = &pod(&manifests)["containers"][0]["volumeMounts"];
    let mounted: Vec<&Value> = mounts
        .as_array()
        .expect("mounts")
        .iter()
        .map(|mount| &mount["name"])
        .collect();
    assert_eq!(mounted, ["data", "keys", "tls"]);
}

#[test]
fn its_command_is_one_that_the_program_takes() {
    if !helm_is_there() {
        return;
    }
    for values in [
        &[][..],
        &["--set=runs.options.corsOrigins={https://a.example,https://b.example}"],
        &["--set=runs.tls.secretName=", "--set=runs.options.allowPlaintext=true"],
    ] {
        let args = args(&with(values));
        let cli = Cli::try_parse_from(["kindex".to_owned()].into_iter().chain(args.iter().cloned()));
        assert!(
            cli.is_ok(),
            "{args:?}: {}",
            cli.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }
}

/// A node that is lost takes what its disk has not got.
#[test]
fn answers_survive_the_loss_of_the_node_unless_somebody_chooses_otherwise() {
    if !helm_is_there() {
        return;
    }
    let has = |values: &[&str], arg: &str| args(&with(values)).iter().any(|one| one == arg);
    assert!(has(&[], "--durability=full"));
    assert!(has(&["--set=runs.options.durability=normal"], "--durability=normal"));
}

#[test]
fn addresses_of_artifacts_lead_to_the_service_or_where_the_values_say() {
    if !helm_is_there() {
        return;
    }
    let has = |values: &[&str], arg: &str| {
        let args = args(&with(values));
        assert!(args.iter().any(|one| one == arg), "{args:?}");
    };
    has(&[], "--public-url=https://kindex-runs.kindex.svc:3002");
    let plain = ["--set=runs.tls.secretName=", "--set=runs.options.allowPlaintext=true"];
    has(&plain, "--public-url=http://kindex-runs.kindex.svc:3002");
    has(
        &["--set=runs.options.publicUrl=https://runs.example.com"],
        "--public-url=https://runs.example.com",
    );
    let service = &one(&with(&[]), "Service", "kindex-runs")["spec"]["ports"].clone();
    let ports = service.as_array().expect("ports").iter();
    let ports: Vec<Value> = ports.map(|port| json!([port["name"], port["port"]])).collect();
    assert_eq!(ports, [json!(["grpc", 50051]), json!(["rest", 3002])]);
}

/// The keys are files of a Secret, never words of a command or of the environment.
#[test]
fn keys_are_read_from_files_of_the_secret() {
    if !helm_is_there() {
        return;
    }
    let manifests = with(&["--set=runs.keys.existingSecret=mine", "--set=runs.keys.adminKey=first"]);
    let volumes = pod(&manifests)["volumes"].as_array().expect("volumes").iter();
    let mut keys = volumes.filter(|volume| volume["name"] == "keys");
    let secret = &keys.next().expect("a volume")["secret"];
    assert_eq!(secret["secretName"], "mine");
    let files: Vec<String> = secret["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| format!("/etc/kindex/keys/{}", item["path"].as_str().expect("a path")))
        .collect();
    let args = args(&manifests);
    for (flag, file) in [("--admin-key-file", "first"), ("--secrets-file", "signing-secrets")] {
        let path = format!("/etc/kindex/keys/{file}");
        assert!(
            args.contains(&format!("{flag}={path}")) && files.contains(&path),
            "{args:?} {files:?}"
        );
    }
    assert!(
        !manifests
            .iter()
            .any(|it| it.to_string().contains("secretKeyRef") && it.to_string().contains("mine"))
    );
}
