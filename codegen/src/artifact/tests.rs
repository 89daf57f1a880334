//! Synchronization with a real directory: what is written, what is left alone, what is removed.

use std::path::Path;
use std::time::SystemTime;
use std::{env, fs, process};

use super::{Artifacts, Change, HEADER, Mode, RelativePath, SyncError, explain, sync};

/// A directory of its own for each test, removed at the end.
struct Tree(std::path::PathBuf);

impl Tree {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("kindex-artifact-{}-{test}", process::id()));
        fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    fn root(&self) -> &Path {
        &self.0
    }

    fn write(&self, path: &str, text: &str) {
        let full = self.0.join(path);
        fs::create_dir_all(full.parent().expect("below the root")).expect("writable");
        fs::write(full, text).expect("writable");
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn modified(&self, path: &str) -> SystemTime {
        let metadata = fs::metadata(self.0.join(path)).expect("there");
        metadata.modified().expect("the platform keeps times")
    }

    fn sync(&self, artifacts: &Artifacts, mode: Mode) -> Vec<(String, Change)> {
        let differences = sync(self.root(), artifacts, mode).expect("the tree is writable");
        differences
            .into_iter()
            .map(|difference| (difference.path.to_string(), difference.change))
            .collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn artifacts(files: &[(&str, &str)]) -> Artifacts {
    files
        .iter()
        .map(|(path, text)| (RelativePath::new(*path), (*text).to_owned()))
        .collect()
}

#[test]
fn writes_what_is_missing_and_then_nothing_differs() {
    let tree = Tree::new("missing");
    let emitted = artifacts(&[("schema/a/b.sql", "one\n")]);
    let path = "schema/a/b.sql".to_owned();
    assert_eq!(tree.sync(&emitted, Mode::Write), [(path, Change::Missing)]);
    assert_eq!(tree.read("schema/a/b.sql").as_deref(), Some("one\n"));
    assert_eq!(tree.sync(&emitted, Mode::Check), []);
}

#[test]
fn an_equal_file_is_not_touched() {
    let tree = Tree::new("equal");
    tree.write("schema/a.sql", "one\n");
    let before = tree.modified("schema/a.sql");
    tree.sync(&artifacts(&[("schema/a.sql", "one\n")]), Mode::Write);
    assert_eq!(tree.modified("schema/a.sql"), before);
}

#[test]
fn checking_changes_nothing_and_shows_the_difference() {
    let tree = Tree::new("check");
    tree.write("schema/a.sql", "one\nold\n");
    let emitted = artifacts(&[("schema/a.sql", "one\nnew\n")]);
    let differences = sync(tree.root(), &emitted, Mode::Check).expect("readable");
    assert_eq!(tree.read("schema/a.sql").as_deref(), Some("one\nold\n"));
    let text = explain(&differences, "cargo build");
    for line in [
        "stale: schema/a.sql",
        "-old",
        "+new",
        "help: run `cargo build` and commit the result",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn only_marked_files_in_output_directories_are_orphans() {
    let tree = Tree::new("orphans");
    let marked = format!("// {HEADER}\n");
    tree.write("generated/src/gone/types.rs", &marked);
    tree.write("generated/src/by_hand.rs", "//! Written by a person.\n");
    tree.write("elsewhere/marked.rs", &marked);
    let path = "generated/src/gone/types.rs".to_owned();
    assert_eq!(
        tree.sync(&Artifacts::new(), Mode::DryRun),
        [(path.clone(), Change::Orphaned)]
    );
    assert!(tree.read(&path).is_some(), "a dry run removes nothing");
    tree.sync(&Artifacts::new(), Mode::Write);
    assert!(tree.read(&path).is_none());
    assert!(
        !tree.root().join("generated/src/gone").exists(),
        "nor its empty directory"
    );
    assert!(tree.read("generated/src/by_hand.rs").is_some());
    assert!(tree.read("elsewhere/marked.rs").is_some());
}

#[test]
fn no_temporary_file_is_left() {
    let tree = Tree::new("temporary");
    tree.sync(&artifacts(&[("schema/a.sql", "one\n")]), Mode::Write);
    let names = fs::read_dir(tree.root().join("schema")).expect("there");
    let names: Vec<_> = names.map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(names, ["a.sql"]);
}

#[test]
fn a_file_in_the_way_is_named() {
    let tree = Tree::new("in-the-way");
    tree.write("schema", "a file where a directory must be\n");
    let emitted = artifacts(&[("schema/a.sql", "one\n")]);
    let error = sync(tree.root(), &emitted, Mode::Write).expect_err("cannot be written");
    let path = match error {
        SyncError::Read { path, .. } | SyncError::Write { path, .. } => path,
    };
    assert!(path.starts_with(tree.root().join("schema")), "{}", path.display());
}

#[test]
#[should_panic(expected = "leaves the root")]
fn a_path_cannot_leave_the_root() {
    RelativePath::new("schema/../../etc/passwd");
}
