//! A service touches few files outside of its crate: those of the table in CONTRIBUTING.md, and what only it has.

use std::collections::BTreeSet;
use std::fs;

use super::expect_none;
use super::files::{File, hand_written, root};
use super::rust::Rust;
use super::sources::{RUST_FILES, is_test};

/// What a service has of its own beside the files of the table: the service, what is its own, and exactly the files
/// that name it for that.
const OF_ITS_OWN: &[(&str, &str, &[&str])] = &[
    (
        "api",
        "commands that run its operations, without a server",
        &[
            "crates/commands/Cargo.toml",
            "crates/commands/src/client.rs",
            "crates/commands/src/last_event.rs",
            "crates/commands/src/move_command.rs",
            "crates/commands/src/peers.rs",
            "crates/commands/src/references.rs",
            "crates/commands/src/references/event.rs",
            "crates/commands/src/references/holder.rs",
            "crates/commands/src/show.rs",
            "crates/commands/src/sides.rs",
            "crates/commands/src/sql_only/mod.rs",
            "crates/commands/src/verify_references.rs",
            "crates/commands/src/why.rs",
        ],
    ),
    (
        "api",
        "the Service to which kube-apiserver passes requests on",
        &[
            "codegen/src/emit/api_service.rs",
            "deploy/helm/kindex/templates/aggregation.yaml",
        ],
    ),
    ("api", "its certificate", &["deploy/helm/kindex/templates/_check.tpl"]),
    (
        "api",
        "how to reach it after an installation",
        &["deploy/helm/kindex/templates/NOTES.txt"],
    ),
    (
        "api",
        "its account may take references off",
        &[
            "codegen/src/emit/reference_policy.rs",
            "deploy/helm/kindex/templates/references.yaml",
        ],
    ),
    (
        "cluster",
        "the cluster of `kindex up`, and the API of SQL-only kinds",
        &[
            "crates/commands/Cargo.toml",
            "crates/commands/src/client.rs",
            "crates/commands/src/data_dir.rs",
            "crates/commands/src/sql_only/mod.rs",
            "crates/commands/src/sql_only/rows.rs",
            "kindex/src/up/mod.rs",
        ],
    ),
    (
        "deletion",
        "commands that ask other services as it does",
        &["crates/commands/Cargo.toml", "crates/commands/src/peers.rs"],
    ),
    (
        "deletion",
        "cleanups that a program brings along",
        &["crates/commands/src/platform.rs", "kindex/src/lib.rs"],
    ),
    (
        "deletion",
        "its account may take references off",
        &[
            "codegen/src/emit/reference_policy.rs",
            "deploy/helm/kindex/templates/references.yaml",
        ],
    ),
    (
        "deletion",
        "what needs the deletion graph",
        &[
            "deploy/helm/kindex/templates/NOTES.txt",
            "deploy/helm/kindex/templates/_check.tpl",
        ],
    ),
    (
        "migrator",
        "`kindex versions`",
        &[
            "crates/commands/Cargo.toml",
            "crates/commands/src/versions/check.rs",
            "crates/commands/src/versions/drop.rs",
            "crates/commands/src/versions/migration.rs",
            "crates/commands/src/versions/show.rs",
            "crates/commands/src/versions/sources.rs",
        ],
    ),
    (
        "migrator",
        "which versions a program has to know",
        &["kindex/src/unknown_versions.rs"],
    ),
    (
        "migrator",
        "the webhook that CRDs name, and its certificate",
        &[
            "codegen/src/emit/crd/conversion.rs",
            "deploy/helm/kindex/templates/_check.tpl",
        ],
    ),
    (
        "runs",
        "its keys and its addresses",
        &[
            "deploy/helm/kindex/templates/NOTES.txt",
            "deploy/helm/kindex/templates/_check.tpl",
            "deploy/helm/kindex/templates/_helpers.tpl",
        ],
    ),
];

/// The files of the table.
fn listed() -> Vec<String> {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page is readable");
    let (_, section) = page.split_once("\n## Add a service\n").expect("the section");
    let (table, _) = section.split_once("\nThese six are all").expect("the end of the table");
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(path, _)| path.to_owned()).collect()
}

/// The folders of `services/`.
fn services() -> BTreeSet<String> {
    let manifests = hand_written(&["Cargo.toml"]).into_iter();
    let paths = manifests.filter_map(|file| Some(file.path.strip_prefix("services/")?.split_once('/')?.0.to_owned()));
    paths.collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let parts = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_-".contains(letter));
    parts.into_iter().any(|part| part == word)
}

/// Whether a source names the crate of a service in its code, or its account in a text. Tests may.
fn names(file: &File, rust: &Rust, service: &str) -> bool {
    let (code, account) = (format!("kindex_{service}"), format!("kindex-{service}"));
    let mut lines = rust.code.lines().enumerate();
    let mut texts = rust.texts.iter();
    lines.any(|(line, text)| has_word(text, &code) && !is_test(file, rust, line))
        || texts.any(|(line, text)| has_word(text, &account) && !is_test(file, rust, *line))
}

/// The files outside of a service's crate that name it. Which services know each other is a rule of its own.
fn naming(service: &str) -> BTreeSet<String> {
    let is_outside = |path: &str| {
        !["services/", "tests/", "benches/", "sdk/"]
            .iter()
            .any(|part| path.starts_with(part))
    };
    let sources = RUST_FILES
        .iter()
        .filter(|(file, rust)| is_outside(&file.path) && names(file, rust, service));
    let mut naming: BTreeSet<String> = sources.map(|(file, _)| file.path.clone()).collect();
    let dependents = dependents(service).into_iter();
    naming.extend(dependents.filter(|path| is_outside(path)));
    let templates = hand_written(&[".tpl", ".yaml", ".txt"]).into_iter();
    let templates = templates.filter(|file| file.path.starts_with("deploy/helm/kindex/templates/"));
    let named = templates.filter(|file| is_named_in_template(&file.text, service));
    naming.extend(named.map(|file| file.path));
    naming
}

/// The manifests that have the crate of a service as a dependency. That of the workspace only says where it lies.
fn dependents(service: &str) -> Vec<String> {
    let crate_name = format!("kindex-{service}");
    let depends = |file: &File| {
        let mut lines = file.text.lines();
        lines.any(|line| line.split([' ', '.']).next() == Some(crate_name.as_str()))
    };
    let manifests = hand_written(&["Cargo.toml"]).into_iter();
    let dependents = manifests.filter(|file| file.path != "Cargo.toml" && depends(file));
    dependents.map(|file| file.path).collect()
}

/// Whether a template of the chart reads the values of a service, or has its name as a text.
fn is_named_in_template(template: &str, service: &str) -> bool {
    let values = format!(".Values.{service}");
    let mut after = template.split(values.as_str()).skip(1);
    after.any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
        || template.contains(&format!("\"{service}\""))
}

/// The files that name a service and are listed nowhere, and those that are listed for it and do not name it.
fn findings_of(service: &str, naming: &BTreeSet<String>, table: &[String], own: &BTreeSet<&str>) -> Vec<String> {
    let folder = format!("kindex/src/services/{service}/");
    let is_listed =
        |path: &str| path.starts_with(&folder) || table.iter().any(|one| one.replace("<name>", service) == path);
    let more = naming
        .iter()
        .filter(|path| !is_listed(path) && !own.contains(path.as_str()));
    let more = more.map(|path| format!("{path}: names the service {service}; CONTRIBUTING.md does not list it"));
    let fewer = own.iter().filter(|path| !naming.contains(**path));
    let fewer = fewer.map(|path| format!("{path}: does not name the service {service}; this test lists it"));
    more.chain(fewer).collect()
}

/// A service that is not there has no files either, so that every entry of one is a finding.
#[test]
fn a_service_is_named_by_the_listed_files_and_where_it_has_something_of_its_own() {
    let table = listed();
    assert_eq!(table.len(), 6, "as the page says: {table:?}");
    let mut services = services();
    assert!(services.contains("runs"), "{services:?}");
    services.extend(OF_ITS_OWN.iter().map(|(service, ..)| (*service).to_owned()));
    let mut findings = Vec::new();
    for service in services {
        let own = OF_ITS_OWN.iter().filter(|(owner, ..)| *owner == service);
        let own: BTreeSet<&str> = own.flat_map(|(.., files)| files.iter().copied()).collect();
        findings.extend(findings_of(&service, &naming(&service), &table, &own));
    }
    expect_none(findings);
}

/// A list of folders would find neither.
#[test]
fn a_file_that_is_listed_nowhere_and_one_that_is_listed_for_nothing_are_found() {
    let table = [
        "kindex/Cargo.toml".to_owned(),
        "kindex/src/services/<name>.rs".to_owned(),
    ];
    let own = BTreeSet::from(["crates/commands/src/show.rs", "crates/commands/src/why.rs"]);
    let naming = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
    let as_listed = [
        "crates/commands/src/show.rs",
        "crates/commands/src/why.rs",
        "kindex/Cargo.toml",
        "kindex/src/services/api.rs",
        "kindex/src/services/api/graph.rs",
    ];
    assert_eq!(findings_of("api", &naming(&as_listed), &table, &own), [""; 0]);
    let others = ["crates/commands/src/show.rs", "crates/commands/src/install.rs"];
    assert_eq!(
        findings_of("api", &naming(&others), &table, &own),
        [
            "crates/commands/src/install.rs: names the service api; CONTRIBUTING.md does not list it",
            "crates/commands/src/why.rs: does not name the service api; this test lists it",
        ]
    );
}

#[test]
fn a_name_of_a_service_is_known_in_templates() {
    for text in [
        "{{- if .Values.api.enabled }}",
        "{{- with .Values.api -}}",
        "{{- range tuple \"api\" \"deletion\" }}",
    ] {
        assert!(is_named_in_template(text, "api"), "{text}");
    }
    for text in ["{{- if .Values.apis.enabled }}", "kind: \"apiService\"", "# The api."] {
        assert!(!is_named_in_template(text, "api"), "{text}");
    }
}

/// What is wrong with where the path of a service's crate stands.
fn misplaced_path(workspace: &str, service: &str, dependents: usize) -> Option<String> {
    let is_in_workspace = workspace.contains(&format!("path = \"services/{service}\""));
    match (is_in_workspace, dependents > 1) {
        (true, true) | (false, false) => None,
        (true, false) => Some(format!(
            "Cargo.toml: only kindex depends on kindex-{service}: its path belongs in kindex/Cargo.toml"
        )),
        (false, true) => Some(format!(
            "Cargo.toml: {dependents} crates depend on kindex-{service}: its path belongs here"
        )),
    }
}

/// With a line of the workspace's, a service that only `kindex` depends on would touch one more file.
#[test]
fn the_workspace_has_the_paths_of_services_that_several_crates_depend_on() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest is readable");
    let misplaced = |service: &String| misplaced_path(&workspace, service, dependents(service).len());
    expect_none(services().iter().filter_map(misplaced).collect());
    let planted = "kindex-runs = { path = \"services/runs\" }";
    let is_found = |service, dependents| misplaced_path(planted, service, dependents).is_some();
    assert!(is_found("runs", 1) && !is_found("runs", 2));
    assert!(!is_found("run", 1) && is_found("run", 2));
}

#[test]
fn a_name_of_a_service_is_known_in_code_and_in_texts() {
    let source = |text: &str| {
        let file = File {
            path: "kindex/src/x.rs".to_owned(),
            text: text.to_owned(),
        };
        let rust = Rust::parse(text).expect("it compiles");
        names(&file, &rust, "runs")
    };
    for text in ["use kindex_runs::X;", "const X: &str = \"kindex-runs\";"] {
        assert!(source(text), "{text}");
    }
    for text in [
        "use kindex_runs_client::X;",
        "// kindex_runs\nfn f() {}",
        "#[cfg(test)]\nmod tests {\n    use kindex_runs::X;\n}",
    ] {
        assert!(!source(text), "{text}");
    }
}
