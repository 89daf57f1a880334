//! The recipe of the image agrees with the chart and with the workspace. No container engine is part of the checks.

use serde_json::Value;

use super::chart::services;
use super::read;

/// What follows the words on the line that begins with them.
fn after<'a>(text: &'a str, words: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(words));
    found.unwrap_or_else(|| panic!("no line begins with {words}")).trim()
}

#[test]
fn the_image_is_what_the_chart_runs() {
    let recipe = read("deploy/container/Containerfile");
    let blocks = services();
    let ports = |key: &str| -> Vec<String> {
        let ports = blocks.iter().map(|(_, block)| &block[key]);
        ports.filter(|port| port.is_u64()).map(Value::to_string).collect()
    };
    let known = ["port", "metricsPort", "grpcPort", "restPort"].map(ports).concat();
    for port in after(&recipe, "EXPOSE").split(' ') {
        assert!(known.iter().any(|known| known == port), "no service has port {port}");
    }
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
