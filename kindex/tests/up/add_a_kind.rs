//! The walk of docs/src/tutorial/add-a-kind.md, done as it is written: the page's own blocks are what is edited and
//! applied. Builds a copy of the workspace, which takes minutes, and therefore runs only where `KINDEX_REQUIRE` names
//! `walk`. By its name it begins first, so that other tests run beside the build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::{Running, kubectl_is_there, wait_for};

const PAGE: &str = include_str!("../../../docs/src/tutorial/add-a-kind.md");

#[test]
fn adding_a_kind_is_one_edit() {
    let required = std::env::var("KINDEX_REQUIRE").unwrap_or_default();
    if !required.split(',').any(|component| component == "walk") {
        println!("not run: KINDEX_REQUIRE does not name `walk`");
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("kindex/ lies in the workspace");
    let copy = tempfile::tempdir().expect("a temporary directory");
    let files = copy_workspace(source, copy.path());
    let crds = copy.path().join("crds.toml");
    let before = fs::read_to_string(&crds).expect("copied");
    fs::write(&crds, format!("{before}\n{}", block("```toml\n", "```"))).expect("writable");

    let binary = build(copy.path(), &source.join("target/walk"));
    let run = Running::start_binary(&binary, &[]);
    run.kubectl(&["apply", "-f", "-"], block("<<'YAML'\n", "YAML"));
    wait_for("the row", || run.get(&["experiments", "-o", "wide"]).contains("ada"));
    assert!(run.get(&["experiments", "-o", "wide"]).contains("250"));
    assert!(run.kubectl(&["explain", "experiment.spec"], "").contains("budget"));

    fs::write(&crds, before).expect("writable");
    let generate = Command::new(&binary)
        .arg("generate")
        .current_dir(copy.path())
        .status()
        .expect("kindex runs");
    assert!(generate.success());
    let lock = Path::new("schema/crds.lock");
    for file in files.iter().filter(|file| *file != lock) {
        let was = fs::read(source.join(file)).expect("in the workspace");
        let is = fs::read(copy.path().join(file)).ok();
        assert!(
            is.as_ref() == Some(&was),
            "{} differs after the kind is taken away",
            file.display()
        );
    }
    assert!(
        !copy.path().join("generated/src/kinds/experiment").exists(),
        "emitted files of the kind are gone"
    );
    let lock = fs::read_to_string(copy.path().join(lock)).expect("emitted");
    assert!(
        lock.contains("Experiment"),
        "the lock remembers field numbers that were in use"
    );
}

/// The text of the page between two marks.
fn block(begin: &str, end: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(begin).expect("the page has the block");
    rest.split_once(end).expect("the block ends").0
}

fn build(workspace: &Path, target: &Path) -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--package", "kindex", "--target-dir"])
        .arg(target)
        .current_dir(workspace)
        // The edit must regenerate, also where everything else only compares.
        .env_remove("KINDEX_CODEGEN")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the workspace builds with the new kind");
    target.join("debug/kindex")
}

/// Copies what git tracks or would; gives back the paths.
fn copy_workspace(from: &Path, to: &Path) -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(from)
        .output()
        .expect("git runs");
    let names = String::from_utf8(listed.stdout).expect("paths are text");
    let files: Vec<PathBuf> = names
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|file| from.join(file).exists())
        .collect();
    for file in &files {
        let target = to.join(file);
        fs::create_dir_all(target.parent().expect("below the copy")).expect("writable");
        fs::copy(from.join(file), target).expect("copied");
    }
    files
}
