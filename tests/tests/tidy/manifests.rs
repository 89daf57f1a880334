//! Rules about Cargo.toml files: every crate follows the workspace, and the generator and the macros depend neither on
//! each other nor on the crates that run kinds.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use toml::{Table, Value};

use super::expect_none;
use super::files::{File, all, root};

/// Who may not depend on what. The generator and the macros depend neither on each other nor on crates that run kinds:
/// those build on the macros through `kindex-model` only, and `generated` runs the generator in its build script.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "codegen",
        &[
            "kube",
            "k8s-openapi",
            "sqlx",
            "tokio",
            "kindex-macros",
            "kindex-model",
            "kindex-generated",
        ],
    ),
    (
        "macros",
        &["kindex-codegen", "kindex-model", "kindex-generated", "kube"],
    ),
    ("crates/kube-api", &["hyper", "kube", "sqlx", "tokio"]),
    ("crates/serve", &["axum", "k8s-openapi", "kube", "sqlx", "tonic"]),
    ("crates/decide", &["kube", "sqlx", "tokio"]),
    ("generated", &["kindex-macros", "kindex-store", "sqlx"]),
    ("services/cluster", &["kindex-model"]),
];

/// What no crate of a service may depend on: it works on any kind, and is started by `kindex`.
const FORBIDDEN_IN_SERVICES: &[&str] = &["kindex", "kindex-codegen", "kindex-macros", "kindex-generated"];

/// What crates of services may build on, where `BUILT_ON` says nothing narrower: on none of one another.
const BUILT_ON_BY_SERVICES: &[&str] = &[
    "kindex-convert",
    "kindex-decide",
    "kindex-events",
    "kindex-kube-api",
    "kindex-kube-client",
    "kindex-model",
    "kindex-query",
    "kindex-serve",
    "kindex-series",
    "kindex-store",
];

/// Of the crates that run kinds, which ones each may build on, without those of the tests: arrows run one way.
const BUILT_ON: &[(&str, &[&str])] = &[
    ("crates/model", &["kindex-macros"]),
    ("crates/convert", &["kindex-model"]),
    ("crates/query", &["kindex-kube-api", "kindex-model"]),
    ("crates/store", &["kindex-convert", "kindex-model", "kindex-query"]),
    ("crates/kube-api", &[]),
    (
        "crates/events",
        &["kindex-kube-api", "kindex-kube-client", "kindex-model"],
    ),
    ("crates/nats", &["kindex-events", "kindex-model", "kindex-store"]),
    ("crates/decide", &["kindex-model", "kindex-query"]),
    ("crates/kube-client", &["kindex-kube-api", "kindex-model"]),
    (
        "crates/maintenance",
        &[
            "kindex-convert",
            "kindex-decide",
            "kindex-kube-client",
            "kindex-model",
            "kindex-query",
            "kindex-store",
        ],
    ),
    (
        "crates/commands",
        &[
            "kindex-api",
            "kindex-cluster",
            "kindex-codegen",
            "kindex-convert",
            "kindex-deletion",
            "kindex-events",
            "kindex-kube-api",
            "kindex-kube-client",
            "kindex-maintenance",
            "kindex-migrator",
            "kindex-model",
            "kindex-nats",
            "kindex-query",
            "kindex-store",
        ],
    ),
    ("crates/serve", &[]),
    ("crates/series", &[]),
    (
        "runtime",
        &[
            "kindex-decide",
            "kindex-kube-client",
            "kindex-model",
            "kindex-query",
            "kindex-store",
        ],
    ),
    ("generated", &["kindex-model", "kindex-query"]),
    ("services/cluster", &["kindex-kube-api", "kindex-serve"]),
    ("services/runs", &["kindex-series", "kindex-serve"]),
];

/// What cargo makes of the manifests. Where they have a value from is in their texts alone.
static WORKSPACE: LazyLock<Metadata> = LazyLock::new(|| {
    let mut command = MetadataCommand::new();
    command.cargo_path(env!("CARGO")).current_dir(root()).no_deps();
    command.other_options(["--locked", "--offline"].map(str::to_owned));
    command.exec().expect("cargo tells of the workspace")
});

/// The crates of the workspace by their folders.
fn members() -> BTreeMap<&'static str, &'static Package> {
    let packages = WORKSPACE.workspace_packages().into_iter();
    let members = packages.map(|package| {
        let folder = package.manifest_path.parent().expect("a manifest lies in a folder");
        let folder = folder.strip_prefix(&WORKSPACE.workspace_root);
        (folder.expect("below the root").as_str(), package)
    });
    members.collect()
}

/// The files with which the compiler begins, with forward slashes.
static ROOTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let targets = members().into_values().flat_map(|package| &package.targets);
    let paths = targets.map(|target| target.src_path.strip_prefix(&WORKSPACE.workspace_root));
    let paths = paths.map(|path| path.expect("below the root").as_str().replace('\\', "/"));
    paths.collect()
});

/// One for each library, program, test, benchmark, example and build script.
pub(super) fn roots() -> Vec<&'static str> {
    ROOTS.iter().map(String::as_str).collect()
}

fn manifest(member: &str) -> Table {
    let text = fs::read_to_string(root().join(member).join("Cargo.toml")).expect("the manifest is readable");
    text.parse().expect("the manifest is TOML")
}

fn names(packages: impl IntoIterator<Item = &'static Package>) -> Vec<&'static str> {
    packages.into_iter().map(|package| package.name.as_str()).collect()
}

#[test]
fn cargo_run_starts_kindex() {
    let started = members().into_values().filter(|package| package.default_run.is_some());
    assert_eq!(names(started), ["kindex"], "the README's first command");
}

/// Without a word more, cargo builds what it runs: not the tests, the simulation and the loads.
#[test]
fn cargo_build_makes_what_a_user_runs() {
    assert_eq!(names(WORKSPACE.workspace_default_packages()), ["kindex"]);
}

#[test]
fn every_crate_follows_the_workspace() {
    let mut findings = Vec::new();
    for member in members().into_keys() {
        let manifest = manifest(member);
        let follows = |table: &str, key: &str| {
            let value = manifest.get(table).and_then(|table| table.get(key));
            value.is_some_and(|value| {
                value.as_bool() == Some(true) || value.get("workspace") == Some(&Value::Boolean(true))
            })
        };
        let keys = [("lints", "workspace"), ("package", "version"), ("package", "edition")];
        let more = [
            ("package", "rust-version"),
            ("package", "license"),
            ("package", "publish"),
        ];
        for (table, key) in keys.into_iter().chain(more) {
            if !follows(table, key) {
                findings.push(format!("{member}/Cargo.toml: `{table}.{key}` is not the workspace's"));
            }
        }
    }
    expect_none(findings);
}

/// One place for versions: a crate that names its own can drift.
#[test]
fn every_version_is_the_workspaces() {
    let mut findings = Vec::new();
    for member in members().into_keys() {
        let manifest = manifest(member);
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = manifest.get(section).and_then(Value::as_table);
            for (name, value) in dependencies.into_iter().flatten() {
                if value.is_str() || value.get("version").is_some() {
                    findings.push(format!("{member}/Cargo.toml: `{name}` is not `workspace = true`"));
                }
            }
        }
    }
    expect_none(findings);
}

/// Tests in the folders of libraries of which cargo builds none. Libraries without any say so: a second build of each,
/// that of all emitted types above all, would only take time.
fn never_run(folders: &[&str], files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files {
        let is_below = |folder: &&str| file.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        if folders.iter().any(is_below) {
            let lines = file.text.lines().enumerate();
            let tests = lines.filter(|(_, line)| {
                ["#[test]", "#[tokio::test", "#[cfg(test)]"]
                    .iter()
                    .any(|test| line.contains(test))
            });
            findings
                .extend(tests.map(|(line, _)| file.finding(line, "its library says `test = false`: no test is run")));
        }
    }
    findings
}

#[test]
fn no_library_has_tests_that_are_never_run() {
    let targets = members().into_values().flat_map(|package| &package.targets);
    let silent = targets.filter(|target| target.is_lib() && !target.test);
    let folders = silent.map(|target| target.src_path.parent().expect("a file lies in a folder"));
    let folders = folders.map(|folder| {
        folder
            .strip_prefix(&WORKSPACE.workspace_root)
            .expect("below the root")
            .as_str()
    });
    let folders: Vec<&str> = folders.collect();
    assert!(folders.contains(&"generated/src"), "{folders:?}");
    expect_none(never_run(&folders, &all(&[".rs"])));
}

/// As if a library without tests had got one.
#[test]
fn a_test_that_is_never_run_is_found() {
    let file = |path: &str| File {
        path: path.to_owned(),
        text: "fn plain() {}\n#[test]\nfn planted() {}\n".to_owned(),
    };
    let files = ["silent/src/planted.rs", "silent/tests/run.rs", "other/src/lib.rs"].map(file);
    let finding = "silent/src/planted.rs:2: its library says `test = false`: no test is run";
    assert_eq!(never_run(&["silent/src"], &files), [finding]);
}

fn services(members: &BTreeMap<&'static str, &'static Package>) -> Vec<&'static str> {
    let folders = members.keys().copied();
    folders.filter(|member| member.starts_with("services/")).collect()
}

#[test]
fn the_legs_do_not_know_each_other() {
    let mut findings = Vec::new();
    let members = members();
    let services = services(&members).into_iter();
    let services = services.map(|member| (member, FORBIDDEN_IN_SERVICES));
    for (member, forbidden) in FORBIDDEN.iter().copied().chain(services) {
        for dependency in &members[member].dependencies {
            if forbidden.contains(&dependency.name.as_str()) {
                let name = &dependency.name;
                findings.push(format!("{member}/Cargo.toml: {member} may not depend on `{name}`"));
            }
        }
    }
    expect_none(findings);
}

#[test]
fn crates_build_only_on_those_below_them() {
    let mut findings = Vec::new();
    let members = members();
    let mut services = services(&members);
    services.retain(|member| BUILT_ON.iter().all(|(known, _)| known != member));
    let services = services.into_iter().map(|member| (member, BUILT_ON_BY_SERVICES));
    for (member, allowed) in BUILT_ON.iter().copied().chain(services) {
        let dependencies = members[member].dependencies.iter();
        for dependency in dependencies.filter(|dependency| dependency.kind == DependencyKind::Normal) {
            let name = dependency.name.as_str();
            if name.starts_with("kindex") && !allowed.contains(&name) {
                findings.push(format!("{member}/Cargo.toml: {member} may not build on `{name}`"));
            }
        }
    }
    expect_none(findings);
}

/// The crates of these folders that run kinds, but of which no list says what they may build on. Services have one.
fn unlisted<'m>(members: impl IntoIterator<Item = &'m str>) -> Vec<String> {
    let runs_kinds = |member: &str| member.starts_with("crates/") || ["runtime", "generated"].contains(&member);
    let is_listed = |member: &str| BUILT_ON.iter().any(|(known, _)| *known == member);
    let unlisted = members
        .into_iter()
        .filter(|member| runs_kinds(member) && !is_listed(member));
    let findings =
        unlisted.map(|member| format!("{member}/Cargo.toml: `BUILT_ON` does not say what {member} builds on"));
    findings.collect()
}

#[test]
fn every_crate_that_runs_kinds_says_what_it_builds_on() {
    expect_none(unlisted(members().into_keys()));
}

/// As if only the crates in the list were asked for.
#[test]
fn a_crate_without_a_list_is_found() {
    let members = ["codegen", "crates/model", "crates/planted", "services/planted", "tests"];
    let finding = "crates/planted/Cargo.toml: `BUILT_ON` does not say what crates/planted builds on";
    assert_eq!(unlisted(members), [finding]);
}

/// What is emitted is compiled by everybody who uses a kind, also where no database is.
#[test]
fn the_emitted_crate_builds_without_a_database_driver() {
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(root())
        .args([
            "tree",
            "--offline",
            "--locked",
            "--package",
            "kindex-generated",
            "--edges",
            "normal",
        ])
        .args(["--prefix", "none", "--format", "{lib}"]);
    let tree = tree.output().expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let built = String::from_utf8(tree.stdout).expect("text");
    assert!(built.lines().any(|name| name == "kindex_model"), "{built}");
    assert!(!built.contains("sqlx"), "{built}");
}
