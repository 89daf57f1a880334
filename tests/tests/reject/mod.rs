//! One directory per error in a declaration: `crds.toml`, whatever else the error needs, and the whole report that
//! a person gets. The messages in `proto/` are shared by all cases.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use insta::Settings;
use tempfile::TempDir;

/// The directory beside the cases that is no case.
const SHARED: &str = "proto";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reject")
}

/// A test for each case.
mod case {
    include!(concat!(env!("OUT_DIR"), "/reject.rs"));
}

/// The case and the shared messages, put together as a platform's repository has them.
fn assemble(case: &str) -> TempDir {
    let root = TempDir::new().expect("the temporary directory is writable");
    copy(&directory().join(SHARED), &root.path().join("proto"));
    copy(&directory().join(case), root.path());
    root
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("writable");
        }
    }
}

/// What a person sees, or `None` if nothing was wrong.
fn report(case: &str) -> Option<kindex_codegen::diag::Diagnostics> {
    let root = assemble(case);
    kindex_codegen::lower(root.path()).err()
}

/// Compares the report with the snapshot of the case.
fn check(case: &str) {
    let errors = report(case).expect("the declaration is refused");
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(directory().join(case));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("report", errors.to_string()));
}

#[test]
fn twenty_errors_are_reported_in_one_run_and_in_order() {
    let errors = report("twenty_errors_at_once").expect("there are some");
    let titles: Vec<String> = errors.titles().collect();
    let positions: Vec<(u32, u32)> = titles.iter().map(|title| position(title)).collect();
    assert!(positions.is_sorted(), "{titles:#?}");
    let distinct: BTreeSet<&str> = titles.iter().filter_map(|title| title.splitn(4, ':').nth(3)).collect();
    assert!(distinct.len() >= 20, "{} distinct: {titles:#?}", distinct.len());
}

/// Its objects can form trees. Whether some of them form a cycle, only the objects say.
#[test]
fn a_kind_that_names_itself_is_accepted_whatever_its_deletion_waits_for() {
    for effect in ["on_delete = \"cascade\"", "on_delete = \"block\"", "owned = true"] {
        let declared = format!(
            "[platform]\n\
             group = \"fixture.example\"\n\
             version = \"v1\"\n\
             finalizer = \"fixture.example/Ingester\"\n\
             deleting = \"fixture.example/Deleting\"\n\
             immutable = \"fixture.example/Immutable\"\n\
             [kinds.Folder]\n\
             fields = {{ spec = {{ parent = \"optional string\" }} }}\n\
             references = {{ parent = {{ kind = \"Folder\", path = \"spec.parent\", {effect} }} }}\n"
        );
        let root = TempDir::new().expect("the temporary directory is writable");
        copy(&directory().join(SHARED), &root.path().join("proto"));
        fs::write(root.path().join("crds.toml"), declared).expect("writable");
        let errors = kindex_codegen::lower(root.path()).err();
        assert_eq!(errors.map(|errors| errors.to_string()), None, "{effect}");
    }
}

/// Line and column of `crds.toml:12:8: …`.
fn position(title: &str) -> (u32, u32) {
    let mut parts = title.split(':').skip(1).map(|part| part.parse().expect("a number"));
    let line = parts.next().expect("a line");
    (line, parts.next().expect("a column"))
}
