//! Emitted text, feature by feature: each directory is a case, found by itself, with a small declaration, the paths of
//! the emitted files that it is about, and those as snapshots. That the text also runs, compiles and is accepted is
//! tested elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use kindex_codegen::artifact::{Artifacts, RelativePath};

fn directory(case: &str) -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    [&package, "tests", "golden", case].iter().collect()
}

fn emit(case: &str) -> Artifacts {
    let generated = kindex_codegen::generate(&directory(case));
    generated.unwrap_or_else(|errors| panic!("{errors}")).artifacts
}

fn text<'a>(artifacts: &'a Artifacts, path: &str) -> &'a str {
    let path = RelativePath::new(path);
    artifacts.get(&path).unwrap_or_else(|| panic!("{path} is not emitted"))
}

/// A test for each case.
mod case {
    include!(concat!(env!("OUT_DIR"), "/golden.rs"));
}

/// Compares the files that the case names in `files.txt` with its snapshots, which are of no other files, and one run
/// with others.
fn check(case: &str) {
    let directory = directory(case);
    let run = || kindex_codegen::generate(&directory).unwrap_or_else(|errors| panic!("{errors}"));
    let generated = run();
    assert!(!generated.descriptors.is_empty());
    assert!((0..3).all(|_| run() == generated), "every run emits the same bytes");

    let listed = fs::read_to_string(directory.join("files.txt")).expect("files.txt says what is compared");
    let names: BTreeSet<String> = listed.lines().map(|path| path.replace('/', ".")).collect();
    for entry in fs::read_dir(&directory).expect("the case is readable") {
        let file = entry.expect("the case is readable").file_name();
        let snapshot = file.to_str().and_then(|name| name.strip_suffix(".snap"));
        let orphan = snapshot.filter(|name| !names.contains(*name));
        assert_eq!(orphan, None, "a snapshot of a file that files.txt does not name");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&directory);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in listed.lines() {
            insta::assert_snapshot!(path.replace('/', "."), text(&generated.artifacts, path));
        }
    });
}

/// Kubernetes selects by texts, integers and bools alone, and by eight fields of a version. An int64 may be a text, as
/// in the JSON of protobuf.
#[test]
fn the_first_eight_scalars_of_keys_are_selectable() {
    let artifacts = emit("selectable");
    let manifest = text(&artifacts, "schema/crds/jobs.yaml");
    let (_, after) = manifest.split_once("selectableFields:\n").expect("selectable fields");
    let paths = after.lines().map_while(|line| line.trim().strip_prefix("- jsonPath: "));
    let expected = ["owner", "urgent", "priority"].map(|field| format!(".spec.{field}"));
    let expected = expected.into_iter().chain([".status.phase".to_owned()]);
    let expected = expected.chain(["a", "b", "c", "d"].map(|field| format!(".spec.{field}")));
    assert_eq!(paths.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn the_chart_has_the_same_manifests_to_the_byte() {
    let artifacts = emit("schema");
    let (ours, charts) = ("schema/rbac/", "deploy/helm/kindex/files/rbac/");
    let below = |directory| {
        let files = artifacts.iter();
        files.filter_map(move |(path, text)| Some((path.as_str().strip_prefix(directory)?, text)))
    };
    assert_eq!(below(ours).count(), 15);
    assert!(below(ours).eq(below(charts)));
    let aggregation = |directory: &str| text(&artifacts, &format!("{directory}/aggregation.yaml"));
    assert_eq!(aggregation("schema"), aggregation("deploy/helm/kindex/files"));
    let policy = |file: &str| text(&artifacts, file);
    assert_eq!(
        policy("schema/admission/references.yaml"),
        policy("deploy/helm/kindex/files/references.yaml")
    );
}

#[test]
fn the_roles_name_kinds_whose_crds_are_of_others() {
    let artifacts = emit("foreign_crd");
    for role in ["api", "edit", "ingester", "migrator", "view"] {
        let role = text(&artifacts, &format!("schema/rbac/{role}.yaml"));
        assert!(role.contains("- guests\n"), "{role}");
    }
}

#[test]
fn a_crd_of_others_is_never_emitted() {
    let artifacts = emit("foreign_crd");
    let registry = text(&artifacts, "generated/src/registry.rs");
    assert!(registry.contains("include_str!(\"../../guest.yaml\")"), "{registry}");
    let crds = emit("foreign_crd")
        .into_keys()
        .filter(|path| path.as_str().starts_with("schema/crds/"));
    assert_eq!(crds.count(), 0);
}

#[test]
fn the_scripts_that_operators_know_are_the_same_to_the_byte() {
    let artifacts = emit("columns");
    let authoritative = text(&artifacts, "schema/ingester_schema.sql");
    for copy in [
        "schema/complete_ingester_schema.sql",
        "deploy/helm/kindex/files/schema/mysql-init-schema.sql",
    ] {
        assert_eq!(text(&artifacts, copy), authoritative, "{copy}");
    }
}
