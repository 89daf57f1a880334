//! The chart as helm renders it: what it says agrees with the program, with the emitted files and with itself, and
//! values that cannot work are refused in words.

use kindex::config::{Config, MetadataStorageChoice};
use kindex_harness::helm;
use kindex_harness::require::require;
use kindex_store::TlsMode;
use serde_json::{Value, json};

use super::manifest::documents;
use super::read;

/// Every option on.
pub(super) const EVERYTHING: &[&str] = &[
    "--set=api.enabled=true",
    "--set=api.tls.secretName=kindex-tls",
    "--set=migrator.tls.secretName=kindex-migrator-tls",
    "--set=migrator.from[0].ipBlock.cidr=10.0.0.1/32",
    "--set=runs.tls.secretName=kindex-runs-tls",
    "--set=runs.from[0].podSelector.matchLabels.trains=yes",
    "--set=runs.options.corsOrigins={https://runs.example.com}",
    "--set=retention.enabled=true",
    "--set=retention.kinds={pipelineruns,models}",
    "--set=serviceMonitor.enabled=true",
    "--set=schema.bundledSql.enabled=true",
    "--set=database.tls.mode=verify-identity",
    "--set=database.tls.caSecret=kindex-mysql-ca",
    "--set=database.tls.clientSecret=kindex-mysql-client",
    "--set=ingester.mode=shards",
    "--set=ingester.followCluster=b08cbbdd-6a0b-4d51-8a3c-0a2f1f6f5d11",
    "--set=ingester.nodeSelector.disk=fast",
    "--set=ingester.priorityClassName=system-cluster-critical",
    "--set=image.pullSecrets={registry}",
    "--set=serviceAccount.annotations.a=b",
    "--set=tracing.otlpEndpoint=http://collector:4318",
    "--set=networkPolicy.kubernetes.to[0].ipBlock.cidr=10.0.0.1/32",
    "--set=networkPolicy.databaseTo[0].podSelector.matchLabels.app=mysql",
    "--set=networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring",
    "--set=networkPolicy.apiFrom[0].namespaceSelector.matchLabels.name=people",
    "--set=networkPolicy.egress[0].ports[0].port=4318",
];

pub(super) fn helm_is_there() -> bool {
    require("helm", helm::installed())
}

pub(super) fn rendered(values: &[&str]) -> Vec<Value> {
    helm::template(values).unwrap_or_else(|error| panic!("{error}"))
}

/// The services of the values, each with its block.
pub(super) fn services() -> Vec<(String, Value)> {
    let values = documents("deploy/helm/kindex/values.yaml").remove(0);
    let blocks = values.as_object().expect("blocks").iter();
    let services = blocks.filter(|(_, block)| block["run"].is_object());
    services.map(|(name, block)| (name.clone(), block.clone())).collect()
}

/// Every option on, and every service.
pub(super) fn everything() -> Vec<Value> {
    let enabled: Vec<String> = services()
        .iter()
        .map(|(name, _)| format!("--set={name}.enabled=true"))
        .collect();
    let enabled = enabled.iter().map(String::as_str);
    rendered(&EVERYTHING.iter().copied().chain(enabled).collect::<Vec<_>>())
}

/// The one of a kind and a name.
pub(super) fn one<'a>(manifests: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = manifests
        .iter()
        .filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    let [found] = found.collect::<Vec<_>>()[..] else {
        panic!("not one {kind} {name}");
    };
    found
}

/// The Deployment or StatefulSet of a name.
pub(super) fn workload<'a>(manifests: &'a [Value], name: &str) -> &'a Value {
    let kept = manifests
        .iter()
        .any(|it| it["kind"] == "StatefulSet" && it["metadata"]["name"] == name);
    one(manifests, if kept { "StatefulSet" } else { "Deployment" }, name)
}

pub(super) fn refused(values: &[&str]) -> String {
    helm::template(values).expect_err("refused")
}

#[test]
fn lint_finds_nothing() {
    if !helm_is_there() {
        return;
    }
    let chart = helm::chart();
    for values in [&[][..], EVERYTHING] {
        let args = [&["lint", "--strict", chart.to_str().expect("letters")], values].concat();
        let output = helm::helm(&args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The configuration that a ConfigMap holds, as the program reads it.
fn configuration(manifests: &[Value], name: &str) -> Config {
    let text = &one(manifests, "ConfigMap", name)["data"]["config.yaml"];
    let text = text.as_str().expect("a text");
    Config::parse(text, &kindex_generated::registry()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_config_maps_hold_the_configuration_that_the_program_reads() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(&[
        "--set=config.ingester.maxOrphans=1000000",
        "--set=config.ingester.concurrentReconcilesMap.PipelineRun=10",
    ]);
    for name in ["kindex", "kindex-schema"] {
        let config = configuration(&manifests, name);
        assert_eq!(config.ingester.max_orphans, 1_000_000);
        assert_eq!(config.ingester.concurrent_reconciles, 2);
        assert_eq!(config.ingester.concurrent_reconciles_map["PipelineRun"], 10);
        let MetadataStorageChoice::On { address, .. } = config.metadata_storage_choice() else {
            panic!("{name}: the ingester is off");
        };
        assert!(address.to_string().ends_with("@mysql:3306/michelangelo"), "{address}");
        assert_eq!(config.mysql.password_file, Some("/etc/kindex/mysql/password".into()));
    }
}

#[test]
fn the_encryption_of_the_database_is_what_the_values_say() {
    if !helm_is_there() {
        return;
    }
    let config = |values: &[&str]| configuration(&rendered(values), "kindex").mysql.fields.tls;
    assert_eq!(config(&[]).mode, TlsMode::Preferred);
    let tls = config(EVERYTHING);
    assert_eq!(tls.mode, TlsMode::VerifyIdentity);
    let files = ["ca.crt", "tls.crt", "tls.key"].map(|file| Some(format!("/etc/kindex/mysql/{file}").into()));
    assert_eq!([tls.ca, tls.cert, tls.key], files);
    let message = refused(&["--set=database.tls.caSecret=a", "--set=config.mysql.tlsMode=required"]);
    assert!(message.contains("Set mode verify-ca or verify-identity"), "{message}");
    assert!(message.contains("Use database.tls instead"), "{message}");
}

/// Disabling as operators know it: the stanza goes, and rows stay.
#[test]
fn without_the_stanza_of_the_database_nothing_runs_that_needs_one() {
    if !helm_is_there() {
        return;
    }
    for closed in [
        "database.enabled=false",
        "config.mysql=null",
        "config.metadataStorage.enableMetadataStorage=false",
    ] {
        let manifests = rendered(&["--set", closed]);
        let config = configuration(&manifests, "kindex");
        let choice = config.metadata_storage_choice();
        assert!(matches!(choice, MetadataStorageChoice::Off { .. }), "{closed}");
        assert_eq!(one(&manifests, "Deployment", "kindex-ingester")["spec"]["replicas"], 0);
        assert!(manifests.iter().all(|it| it["kind"] != "Job"), "{closed}");
    }
}

/// As if an installation took over whatever database it finds.
#[test]
fn the_ingester_lets_a_database_follow_only_the_cluster_that_a_value_names() {
    if !helm_is_there() {
        return;
    }
    let followed = |values: &[&str]| -> Vec<String> {
        let manifests = rendered(values);
        let pod = &workload(&manifests, "kindex-ingester")["spec"]["template"]["spec"];
        let args = pod["containers"][0]["args"].as_array().expect("arguments").iter();
        let args = args.filter_map(Value::as_str).map(str::to_owned);
        args.filter(|arg| arg.contains("follow")).collect()
    };
    assert_eq!(followed(&[]), Vec::<String>::new());
    assert_eq!(
        followed(&["--set=ingester.followCluster=b08cbbdd"]),
        ["--follow-cluster=b08cbbdd"]
    );
}

/// Beside everything: a cluster without the server behind it would say so at each question for what there is.
pub(super) const AGGREGATED: &[&str] = &[
    "--set=api.enabled=true",
    "--set=api.tls.secretName=kindex-tls",
    "--set=api.aggregation.enabled=true",
    "--set=api.aggregation.caBundle=QUJD",
];

#[test]
fn kube_apiserver_is_led_to_the_api_server_by_the_emitted_manifests() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(AGGREGATED);
    for emitted in documents("schema/aggregation.yaml")[0]["items"]
        .as_array()
        .expect("items")
    {
        let name = emitted["metadata"]["name"].as_str().expect("a name");
        let mut spec = one(&manifests, "APIService", name)["spec"].clone();
        assert_eq!(spec["caBundle"].take(), "QUJD");
        let without = spec.as_object_mut().expect("an object");
        without.remove("caBundle");
        assert_eq!(spec, emitted["spec"], "{name}");
        let service = one(&manifests, "Service", "kindex-api");
        assert_eq!(service["spec"]["ports"][0]["port"], spec["service"]["port"]);
    }
    for role in ["api-aggregated", "view-archive", "edit-archive"] {
        let emitted = &documents(&format!("schema/rbac/{role}.yaml"))[0];
        let bound = one(&manifests, "ClusterRole", &format!("kindex-kindex-{role}"));
        assert_eq!(bound["rules"], emitted["rules"], "{role}");
    }
    let api = &one(&manifests, "Deployment", "kindex-api")["spec"]["template"]["spec"]["containers"][0];
    let args = api["args"].as_array().expect("arguments");
    assert!(args.iter().any(|arg| arg == "--aggregated"), "{args:?}");
    let why = refused(&["--set=api.aggregation.enabled=true"]);
    assert!(
        why.contains("without api.enabled") && why.contains("api.aggregation.caBundle"),
        "{why}"
    );
}

/// A version, a copy and a name that are written twice.
#[test]
fn the_chart_is_of_the_version_of_the_program() {
    let chart = &documents("deploy/helm/kindex/Chart.yaml")[0];
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_roles_are_the_emitted_ones() {
    if !helm_is_there() {
        return;
    }
    let manifests = everything();
    let rules = |kind: &str, name: &str| &one(&manifests, kind, name)["rules"];
    let emitted = |role: &str| documents(&format!("schema/rbac/{role}.yaml"))[0]["rules"].clone();
    for (name, block) in services() {
        if block["run"]["role"].is_string() {
            let bound = rules("ClusterRole", &format!("kindex-kindex-{name}"));
            assert_eq!(*bound, emitted(&name), "{name}");
        }
    }
    for role in ["view", "edit"] {
        assert_eq!(*rules("ClusterRole", &format!("kindex-kindex-{role}")), emitted(role));
    }
    for service in ["deletion", "ingester", "migrator"] {
        let leases = format!("{service}-leases");
        assert_eq!(*rules("Role", &format!("kindex-{leases}")), emitted(&leases));
    }
    for role in ["view", "edit"] {
        let role = one(&manifests, "ClusterRole", &format!("kindex-kindex-{role}"));
        let labels = role["metadata"]["labels"].as_object().expect("labels");
        assert!(
            labels.keys().any(|label| label.contains("/aggregate-to-")),
            "{labels:?}"
        );
    }
}

#[test]
fn the_bundled_schema_is_mounted_to_the_byte() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(EVERYTHING);
    let data = &one(&manifests, "ConfigMap", "kindex-schema")["data"];
    assert_eq!(
        data["mysql-init-schema.sql"],
        read("schema/ingester_schema.sql").as_str()
    );
    assert_eq!(data["init_db.sh"], read("deploy/schema/init_db.sh").as_str());
}

/// All containers, each with its pod.
pub(super) fn containers(manifests: &[Value]) -> Vec<(&Value, &Value)> {
    let jobs = manifests.iter().map(|it| match it["kind"].as_str() {
        Some("CronJob") => &it["spec"]["jobTemplate"],
        _ => it,
    });
    let pods = jobs.map(|it| &it["spec"]["template"]["spec"]);
    let of_pod = |pod: &'_ Value| ["initContainers", "containers"].map(|field| pod[field].as_array().cloned());
    let pods = pods.filter(|pod| of_pod(pod).iter().any(Option::is_some));
    let all = pods.flat_map(|pod| {
        let lists = ["initContainers", "containers"].into_iter();
        lists.flat_map(move |field| pod[field].as_array().into_iter().flatten().map(move |it| (pod, it)))
    });
    all.collect()
}

#[test]
fn every_container_is_confined() {
    if !helm_is_there() {
        return;
    }
    let manifests = everything();
    // With the two of the schema Job, and that of the retention.
    assert_eq!(containers(&manifests).len(), services().len() + 3);
    for (pod, container) in containers(&manifests) {
        let name = &container["name"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        assert_eq!(
            pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault",
            "{name}"
        );
        let confined = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}});
        assert_eq!(container["securityContext"], confined, "{name}");
        assert!(container["resources"]["limits"]["memory"].is_string(), "{name}");
        for mount in container["volumeMounts"].as_array().expect("mounts") {
            let mut volumes = pod["volumes"].as_array().expect("volumes").iter();
            assert!(volumes.any(|volume| volume["name"] == mount["name"]), "{name}: {mount}");
        }
    }
}

/// Whether all labels of a selector are among these.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let mut wanted = selector.as_object().expect("a selector").iter();
    wanted.all(|(label, value)| labels[label] == *value)
}

/// Flags, probes, Services, policies and budgets: all name the same ports and the same pods.
#[test]
fn every_port_that_is_named_is_one_of_a_container() {
    if !helm_is_there() {
        return;
    }
    let manifests = everything();
    for (service, block) in services() {
        let name = format!("kindex-{service}");
        let ports = block["run"]["ports"].as_array().expect("ports").iter();
        let ports: Vec<&str> = ports.filter_map(|port| port["name"].as_str()).collect();
        assert!(ports.contains(&"metrics"), "{service}");
        let pod = &workload(&manifests, &name)["spec"]["template"];
        let container = &pod["spec"]["containers"][0];
        let policy = &one(&manifests, "NetworkPolicy", &name)["spec"];
        for (index, port) in ports.iter().enumerate() {
            let known = &container["ports"][index];
            assert_eq!(known["name"], *port);
            let flags = container["args"].as_array().expect("args").iter();
            let taken = format!("=0.0.0.0:{}", known["containerPort"]);
            assert!(
                flags.filter_map(Value::as_str).any(|flag| flag.ends_with(&taken)),
                "{service}"
            );
            assert_eq!(policy["ingress"][index]["ports"][0]["port"], *port);
            let service = match *port {
                "metrics" => format!("{name}-metrics"),
                _ => name.clone(),
            };
            let service = &one(&manifests, "Service", &service)["spec"];
            let mut known = service["ports"].as_array().expect("ports").iter();
            assert!(known.any(|known| known["targetPort"] == *port), "{service}");
            assert!(selects(&service["selector"], &pod["metadata"]["labels"]), "{service}");
        }
        for probe in ["livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe]["httpGet"]["port"], "metrics");
        }
        let budget = &one(&manifests, "PodDisruptionBudget", &name)["spec"]["selector"]["matchLabels"];
        for selector in [budget, &policy["podSelector"]["matchLabels"]] {
            assert!(selects(selector, &pod["metadata"]["labels"]), "{selector}");
        }
    }
    let monitor = &one(&manifests, "ServiceMonitor", "kindex")["spec"];
    for (service, _) in services() {
        let service = one(&manifests, "Service", &format!("kindex-{service}-metrics"));
        assert_eq!(monitor["endpoints"][0]["port"], service["spec"]["ports"][0]["name"]);
        assert!(selects(
            &monitor["selector"]["matchLabels"],
            &service["metadata"]["labels"]
        ));
    }
}
