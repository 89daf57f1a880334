//! A service touches few files outside of its crate: those of the table in CONTRIBUTING.md, and what only it has.

use std::collections::BTreeSet;
use std::fs;

use super::expect_none;
use super::files::{File, hand_written, root};
use super::rust::Rust;
use super::sources::{RUST_FILES, is_test};

/// Where services have what is their own, beside what starts them: keys of the chart's that no other has, commands, and
/// what is emitted for them.
const OF_THEIR_OWN: [&str; 4] = [
    "deploy/helm/kindex/templates/",
    "crates/commands/",
    "kindex/src/",
    "codegen/src/emit/",
];

/// A service of which only the chart has something that no other has.
const LEANEST: &str = "runs";

/// The files of the table.
fn listed() -> Vec<String> {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page is readable");
    let (_, section) = page.split_once("\n## Add a service\n").expect("the section");
    let (table, _) = section
        .split_once("\nThese five are all")
        .expect("the end of the table");
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
    let crate_name = format!("kindex-{service}");
    // All members of the workspace are dependencies of the workspace.
    let manifests = hand_written(&["Cargo.toml"]).into_iter();
    let manifests = manifests.filter(|file| file.path != "Cargo.toml" && is_outside(&file.path));
    let depends = |file: &File| {
        file.text
            .lines()
            .any(|line| line.split([' ', '.']).next() == Some(crate_name.as_str()))
    };
    naming.extend(manifests.filter(depends).map(|file| file.path));
    let templates = hand_written(&[".tpl", ".yaml", ".txt"]).into_iter();
    let templates = templates.filter(|file| file.path.starts_with("deploy/helm/kindex/templates/"));
    let values = format!(".Values.{service}");
    let reads = |file: &File| {
        let mut after = file.text.split(values.as_str()).skip(1);
        after.any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
    };
    naming.extend(templates.filter(reads).map(|file| file.path));
    naming
}

#[test]
fn a_service_is_named_by_the_listed_files_and_where_it_has_something_of_its_own() {
    let listed = listed();
    assert_eq!(listed.len(), 5, "as the page says: {listed:?}");
    let services = services();
    assert!(services.contains(LEANEST), "{services:?}");
    let mut findings = Vec::new();
    for service in services {
        let own = match service == LEANEST {
            true => &OF_THEIR_OWN[..1],
            false => &OF_THEIR_OWN[..],
        };
        let folder = format!("kindex/src/services/{service}/");
        let is_listed =
            |path: &str| path.starts_with(&folder) || listed.iter().any(|one| one.replace("<name>", &service) == path);
        let naming = naming(&service).into_iter();
        let more = naming.filter(|path| !is_listed(path) && !own.iter().any(|part| path.starts_with(part)));
        findings
            .extend(more.map(|path| format!("{path}: names the service {service}; CONTRIBUTING.md does not list it")));
    }
    expect_none(findings);
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
