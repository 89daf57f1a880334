//! What may be built in: licenses, sources and banned crates, by the rules of
//! `deny.toml`. Reads Cargo.lock and asks cargo for licenses; needs no network.

use std::fs;
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};
use toml::{Table, Value};

use super::expect_none;
use super::files::root;
use super::license::is_met;

fn read(path: &str) -> Table {
    let text = fs::read_to_string(root().join(path)).expect("the file is readable");
    text.parse().expect("the file is TOML")
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().expect("a list");
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The packages of Cargo.lock that are not ours.
fn locked() -> Vec<Value> {
    let packages = read("Cargo.lock")["package"].as_array().expect("packages").clone();
    packages
        .into_iter()
        .filter(|package| package.get("source").is_some())
        .collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a package has a name")
}

fn depends_on(package: &Value, other: &str) -> bool {
    let dependencies = package.get("dependencies").map(strings).unwrap_or_default();
    let mut names = dependencies
        .iter()
        .filter_map(|dependency| dependency.split_whitespace().next());
    names.any(|name| name == other)
}

#[test]
fn every_package_comes_from_the_registry_with_a_checksum() {
    let allowed = strings(&read("deny.toml")["sources"]["allow-registry"]);
    let mut findings = Vec::new();
    for package in locked() {
        let source = package["source"].as_str().unwrap_or("");
        let known = source
            .strip_prefix("registry+")
            .is_some_and(|url| allowed.iter().any(|known| known == url));
        if !known || package.get("checksum").is_none() {
            findings.push(format!("Cargo.lock: {} comes from {source}", name(&package)));
        }
    }
    expect_none(findings);
}

#[test]
fn no_banned_crate_is_built_in() {
    let deny = read("deny.toml");
    let bans = deny["bans"]["deny"].as_array().expect("a list of bans");
    assert!(!bans.is_empty(), "deny.toml bans nothing");
    let lock = read("Cargo.lock");
    let packages = lock["package"].as_array().expect("packages");
    let mut findings = Vec::new();
    for ban in bans {
        let (banned, reason) = (&ban["crate"], &ban["reason"]);
        let banned = banned.as_str().expect("a name");
        let wrappers = ban.get("wrappers").map(strings).unwrap_or_default();
        for package in packages.iter().filter(|package| depends_on(package, banned)) {
            if !wrappers.iter().any(|wrapper| wrapper == name(package)) {
                findings.push(format!(
                    "Cargo.lock: {} has {banned}, which is banned: {reason}",
                    name(package)
                ));
            }
        }
    }
    expect_none(findings);
}

/// Types of these crates cross our own interfaces: two versions would not fit.
#[test]
fn crates_whose_types_we_pass_around_have_one_version() {
    let single = [
        "axum",
        "bytes",
        "http",
        "hyper",
        "jiff",
        "k8s-openapi",
        "kube",
        "prost",
        "serde",
        "serde_json",
        "sqlx",
        "tokio",
    ];
    let packages = locked();
    let mut findings = Vec::new();
    for wanted in single {
        let versions = packages.iter().filter(|package| name(package) == wanted).count();
        if versions > 1 {
            findings.push(format!("Cargo.lock: {wanted} is there in {versions} versions"));
        }
    }
    expect_none(findings);
}

#[test]
fn every_license_is_accepted() {
    let accepted = strings(&read("deny.toml")["licenses"]["allow"]);
    let mut findings = Vec::new();
    for package in metadata().packages {
        let license = package.license.unwrap_or_default();
        if !is_met(&license, &accepted) {
            findings.push(format!("{} {}: license {license:?}", package.name, package.version));
        }
    }
    expect_none(findings);
}

fn metadata() -> Metadata {
    let platform = format!("--filter-platform={}", host());
    let mut command = MetadataCommand::new();
    command.cargo_path(env!("CARGO")).current_dir(root());
    command.other_options(["--locked", "--offline", &platform].map(str::to_owned));
    command.exec().expect("cargo tells of the packages")
}

/// Packages of other platforms may not be on this machine.
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc starts");
    let text = String::from_utf8(output.stdout).expect("rustc prints text");
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc names its host").to_owned()
}
