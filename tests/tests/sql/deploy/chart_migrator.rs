//! The migrator's block of the chart: its flags, and its role where it has one.

use serde_json::Value;

use super::chart::{helm_is_there, one, rendered};

#[test]
fn a_webhook_alone_has_no_role_and_options_become_flags() {
    if !helm_is_there() {
        return;
    }
    let enabled = ["--set=migrator.enabled=true", "--set=migrator.tls.secretName=keys"];
    let manifests = rendered(&[&enabled[..], &["--set=migrator.options.webhookOnly=true"]].concat());
    let named = manifests
        .iter()
        .filter_map(|manifest| manifest["metadata"]["name"].as_str());
    let roles = manifests.iter().filter(|manifest| {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        kind.contains("Role")
            && manifest["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.contains("migrator"))
    });
    assert_eq!(roles.count(), 0, "{:?}", named.collect::<Vec<_>>());
    let options = [
        "--set=migrator.options.resources={pods,models.michelangelo.api}",
        "--set=migrator.options.rate=50",
    ];
    let manifests = rendered(&[&enabled[..], &options].concat());
    let args = args(&manifests);
    for arg in ["--resource=pods,models.michelangelo.api", "--rate=50", "--period=600"] {
        assert!(args.iter().any(|one| one == arg), "{args:?}");
    }
    for absent in ["--webhook-only", "--no-trigger", "--in-tree"] {
        assert!(!args.iter().any(|one| one == absent), "{args:?}");
    }
}

#[test]
fn without_a_certificate_of_others_it_keeps_one_in_a_secret_of_its_own() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(&["--set=migrator.enabled=true", "--set=migrator.options.inTree=true"]);
    let args = args(&manifests);
    let namespace = one(&manifests, "Deployment", "kindex-migrator")["metadata"]["namespace"].clone();
    let namespace = namespace.as_str().expect("a namespace");
    for arg in [
        &format!("--tls-secret={namespace}/kindex-migrator-webhook"),
        &format!("--webhook-address={namespace}/kindex-migrator:443"),
        "--in-tree",
    ] {
        assert!(args.iter().any(|one| one == arg), "{args:?}");
    }
    assert!(!args.iter().any(|one| one.starts_with("--tls-cert")), "{args:?}");
    let role = one(&manifests, "Role", "kindex-migrator-webhook");
    let named = &role["rules"][0];
    assert_eq!(named["resourceNames"][0], "kindex-migrator-webhook");
    assert_eq!(named["verbs"], serde_json::json!(["get", "update"]));
}

/// The emitted CRDs name the Service of a release called kindex in the namespace kindex. The address that the migrator
/// writes over it follows release, namespace and port, and the role allows that.
#[test]
fn the_address_that_crds_get_is_the_service_of_this_release() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(&[
        "--set=migrator.enabled=true",
        "--set=fullnameOverride=fleet",
        "--namespace=data",
        "--set=migrator.service.port=9443",
    ]);
    let service = one(&manifests, "Service", "fleet-migrator");
    assert_eq!(service["metadata"]["namespace"], "data");
    assert_eq!(service["spec"]["ports"][0]["port"], 9443);
    let args = args_of(&manifests, "fleet-migrator");
    let address = "--webhook-address=data/fleet-migrator:9443";
    assert!(args.iter().any(|one| one == address), "{args:?}");
    let role = one(&manifests, "ClusterRole", "fleet-data-migrator");
    let rules = role["rules"].as_array().expect("rules");
    let patch = rules.iter().filter(|rule| {
        let lists = |key: &str, value: &str| {
            rule[key]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == value))
        };
        lists("resources", "customresourcedefinitions") && lists("verbs", "patch")
    });
    let patch: Vec<_> = patch.collect();
    assert_eq!(patch.len(), 1, "{patch:?}");
    let names = patch[0]["resourceNames"].as_array().expect("names");
    for name in ["models.michelangelo.api", "storagestates.migration.k8s.io"] {
        assert!(names.iter().any(|one| one == name), "{name}");
    }
}

/// Flags of the migrator's container.
fn args(manifests: &[Value]) -> Vec<String> {
    args_of(manifests, "kindex-migrator")
}

fn args_of(manifests: &[Value], name: &str) -> Vec<String> {
    let deployment = one(manifests, "Deployment", name);
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let args = args.as_array().expect("a list").iter();
    args.filter_map(Value::as_str).map(str::to_owned).collect()
}
