//! Recorded outputs: each belongs to a test that still exists, none waits for review.

use std::path::Path;

use super::expect_none;
use super::files::{all, hand_written, root};

#[test]
fn no_snapshot_waits_for_review() {
    let pending = all(&[".snap.new", ".pending-snap"]);
    expect_none(
        pending
            .iter()
            .map(|file| file.finding(0, "accept or reject this snapshot"))
            .collect(),
    );
}

/// A snapshot is asserted, by its name, in a file beside its directory. Emitted files
/// are named by their path, which the snapshot's file name writes with dots. A golden case refuses snapshots of files
/// that its `files.txt` does not name.
#[test]
fn every_snapshot_has_its_assertion() {
    let sources = hand_written(&[".rs"]);
    let mut findings = Vec::new();
    for snapshot in all(&[".snap"]) {
        let path = Path::new(&snapshot.path);
        let file = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = file.rsplit("__").next().unwrap_or(&file);
        let area = path.parent().and_then(Path::parent).unwrap_or(path);
        let is_of_a_case = root().join(&snapshot.path).with_file_name("files.txt").exists();
        let asserted = sources.iter().any(|source| {
            Path::new(&source.path).starts_with(area) && source.text.contains("snapshot!") && names(&source.text, name)
        });
        if !asserted && !is_of_a_case {
            findings.push(snapshot.finding(0, "no test asserts this snapshot any more"));
        }
    }
    expect_none(findings);
}

fn names(source: &str, name: &str) -> bool {
    source.contains(name) || source.replace('/', ".").contains(name)
}

#[test]
fn every_error_has_its_text_and_every_text_its_error() {
    let exists = |path: &str| root().join(path).exists();
    let errors = hand_written(&[".rs", ".stderr"]);
    let in_ui = errors
        .iter()
        .filter(|file| file.path.starts_with("tests/ui/tests/ui/errors/"));
    let mut findings = Vec::new();
    for file in in_ui {
        let path = Path::new(&file.path);
        let other = if path.extension().is_some_and(|ending| ending == "rs") {
            "stderr"
        } else {
            "rs"
        };
        if !exists(&path.with_extension(other).to_string_lossy()) {
            findings.push(file.finding(0, &format!("the {other} file beside it is missing")));
        }
    }
    expect_none(findings);
}
