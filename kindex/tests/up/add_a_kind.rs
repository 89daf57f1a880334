//! The walk of docs/src/tutorial/add-a-kind.md, done as it is written: the page's own blocks are what is edited and
//! applied. Builds a copy of the workspace, which takes minutes, and therefore runs only where `KINDEX_REQUIRE` names
//! `walk`. By its name it begins first, so that other tests run beside the build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::{Running, kubectl_is_there, wait_for};
use super::workspace::{binary, build, checkout, share_features, shown, walk_is_required, write};

const PAGE: &str = include_str!("../../../docs/src/tutorial/add-a-kind.md");

#[test]
fn adding_a_kind_is_one_edit() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let source = checkout();
    let copy = tempfile::tempdir().expect("a temporary directory");
    let files = copy_workspace(&source, copy.path());
    leave_others_at(&source, copy.path());
    share_features(copy.path());
    let text = |file: &Path| fs::read(copy.path().join(file)).ok();
    let untouched: Vec<_> = files.iter().map(|file| text(file)).collect();
    let crds = copy.path().join("crds.toml");
    let before = fs::read_to_string(&crds).expect("copied");
    fs::write(&crds, format!("{before}\n{}", block("```toml\n", "```"))).expect("writable");

    let built = build(copy.path());
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let binary = binary("kindex");
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
    let locks = [lock, Path::new("Cargo.lock")];
    for (file, was) in files
        .iter()
        .zip(untouched)
        .filter(|(file, _)| !locks.contains(&&***file))
    {
        assert!(
            text(file) == was,
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

/// The crates that a kind has nothing to do with are those of the checkout: all such workspaces share them.
fn leave_others_at(checkout: &Path, copy: &Path) {
    const OWN: [&str; 2] = ["generated", "kindex"];
    let manifest = fs::read_to_string(copy.join("Cargo.toml")).expect("copied");
    let mut lines = Vec::new();
    for line in manifest.lines() {
        lines.push(match (line.starts_with("members = "), line.split_once("path = \"")) {
            (true, _) => format!("members = {OWN:?}"),
            (_, Some((name, path))) if !OWN.iter().any(|own| path.starts_with(&format!("{own}\""))) => {
                format!("{name}path = \"{}/{path}", shown(checkout))
            }
            _ => line.to_owned(),
        });
    }
    write(copy, "Cargo.toml", &lines.join("\n"));
    let manifest = fs::read_to_string(copy.join("kindex/Cargo.toml")).expect("copied");
    let (manifest, _) = manifest.split_once("[dev-dependencies]").expect("kindex has tests");
    write(copy, "kindex/Cargo.toml", manifest);
}
