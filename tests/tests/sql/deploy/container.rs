//! The recipe of the image agrees with the chart and with the workspace. No container engine is part of the checks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::chart::services;
use super::read;

/// What follows the words on the line that begins with them.
fn after<'a>(text: &'a str, words: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(words));
    found.unwrap_or_else(|| panic!("no line begins with {words}")).trim()
}

/// The value that a port of a block is a template of, as in `{{ .Values.api.metricsPort }}`.
fn number(service: &str, block: &Value, port: &Value) -> u64 {
    let template = port["port"].as_str().expect("a template");
    let start = format!("{{{{ .Values.{service}.");
    let key = template.strip_prefix(&start).and_then(|rest| rest.strip_suffix(" }}"));
    let number = key.and_then(|key| block[key].as_u64());
    number.unwrap_or_else(|| panic!("{template} is not a number in the block {service}"))
}

/// The ports of all containers of services.
fn ports_of_services() -> BTreeSet<u64> {
    let mut ports = BTreeSet::new();
    for (service, block) in services() {
        let listed = block["run"]["ports"].as_array().into_iter().flatten();
        ports.extend(listed.map(|port| number(&service, &block, port)));
    }
    ports
}

/// As if a service were left out, or a port stayed that no service has any more.
#[test]
fn the_image_exposes_the_ports_of_all_services_and_no_others() {
    let recipe = read("deploy/container/Containerfile");
    let exposed = after(&recipe, "EXPOSE").split(' ');
    let exposed: BTreeSet<u64> = exposed.map(|port| port.parse().expect("a number")).collect();
    assert_eq!(exposed, ports_of_services());
}

#[test]
fn the_image_is_what_the_chart_runs() {
    let recipe = read("deploy/container/Containerfile");
    let helpers = read("deploy/helm/kindex/templates/_helpers.tpl");
    let (user, group) = (after(&helpers, "runAsUser:"), after(&helpers, "runAsGroup:"));
    assert_eq!(after(&recipe, "USER"), format!("{user}:{group}"));
    assert_eq!(after(&recipe, "ENTRYPOINT"), r#"["/usr/bin/kindex"]"#);
}

#[test]
fn the_image_is_built_by_the_toolchain_of_the_workspace() {
    let recipe = read("deploy/container/Containerfile");
    let workspace: toml::Table = read("Cargo.toml").parse().expect("TOML");
    let package = &workspace["workspace"]["package"];
    assert_eq!(
        Some(after(&recipe, "ARG RUST_VERSION=")),
        package["rust-version"].as_str()
    );
    assert_eq!(Some(after(&recipe, "ARG VERSION=")), package["version"].as_str());
}
