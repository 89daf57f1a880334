//! `kindex plan` and `kindex lint` as they are typed, on a declaration of their own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::text_of;

pub(crate) const KINDS: &str = r#"
[platform]
group     = "fixture.example"
version   = "v1"
finalizer = "fixture.example/Ingester"
deleting  = "fixture.example/Deleting"
immutable = "fixture.example/Immutable"

[kinds.Trial]
fields = { spec = { owner = "string", size = "int64" } }
[kinds.Trial.columns]
owner = "spec.owner"
"#;

fn kindex(root: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kindex"));
    command.args(args).current_dir(root).env_remove("KINDEX_LOG");
    command.output().expect("kindex runs")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

pub(crate) fn declare(root: &Path, more: &str) {
    fs::write(root.join("crds.toml"), format!("{KINDS}{more}")).expect("writable");
}

#[test]
fn a_dry_run_shows_the_steps_and_writes_nothing() {
    let root = TempDir::new().expect("a temporary directory");
    declare(root.path(), "");
    let output = kindex(root.path(), &["plan", "--dry-run", "--exit-code"]);
    assert_eq!(code(&output), Some(2), "{}", text_of(&output.stderr));
    let text = text_of(&output.stdout);
    assert!(text.starts_with("STEP "), "{text}");
    assert!(text.contains("0001_initial would be planned"), "{text}");
    assert!(!root.path().join("schema").exists());
}

#[test]
fn a_plan_is_written_once() {
    let root = TempDir::new().expect("a temporary directory");
    declare(root.path(), "");
    assert_eq!(code(&kindex(root.path(), &["plan"])), Some(0));
    assert_eq!(code(&kindex(root.path(), &["plan", "--exit-code"])), Some(0));
    declare(root.path(), "size = \"spec.size\"\n");
    let output = kindex(root.path(), &["plan", "--name", "trial_size", "-o", "json"]);
    assert_eq!(code(&output), Some(0), "{}", text_of(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["migration"]["name"], "trial_size");
    assert_eq!(document["migration"]["compatible"], 1);
    assert_eq!(document["steps"][0]["step"], "add-column");
    for file in document["migration"]["files"].as_array().expect("a list") {
        assert!(root.path().join(file.as_str().expect("a path")).is_file(), "{file}");
    }
    let again = kindex(root.path(), &["plan"]);
    assert!(text_of(&again.stdout).starts_with("nothing to plan"));
}

#[test]
fn a_broken_chain_is_refused_and_mended_on_demand() {
    let root = TempDir::new().expect("a temporary directory");
    declare(root.path(), "");
    kindex(root.path(), &["plan"]);
    let file = root.path().join("schema/migrations/0001_initial.mysql.sql");
    let text = fs::read_to_string(&file).expect("planned");
    fs::write(&file, text + "\n-- a remark\n").expect("writable");
    for command in [["plan", "--exit-code"].as_slice(), &["lint"]] {
        let output = kindex(root.path(), command);
        assert_eq!(code(&output), Some(1), "{command:?}");
        assert!(text_of(&output.stderr).contains("kindex plan --rehash"), "{command:?}");
    }
    assert_eq!(code(&kindex(root.path(), &["plan", "--rehash"])), Some(0));
    assert_eq!(code(&kindex(root.path(), &["plan", "--exit-code"])), Some(0));
}

#[test]
fn what_is_let_pass_needs_a_code_and_a_reason() {
    let root = TempDir::new().expect("a temporary directory");
    declare(root.path(), "size = \"spec.size\"\n");
    kindex(root.path(), &["plan"]);
    declare(root.path(), "");
    for wrong in ["K103", "K103=", "K999=because"] {
        let output = kindex(root.path(), &["plan", "--allow", wrong]);
        assert_eq!(code(&output), Some(2), "{wrong}");
    }
    assert_eq!(
        code(&kindex(root.path(), &["plan", "--allow", "K103=nobody reads it"])),
        Some(0)
    );
    let output = kindex(root.path(), &["lint"]);
    assert_eq!(code(&output), Some(0), "{}", text_of(&output.stdout));
    assert_eq!(text_of(&output.stdout), "no findings; 1 allowed\n");
}

#[test]
fn findings_are_printed_for_people_programs_and_github() {
    let root = TempDir::new().expect("a temporary directory");
    declare(root.path(), "size = \"spec.size\"\n");
    kindex(root.path(), &["plan"]);
    declare(root.path(), "");
    kindex(root.path(), &["plan"]);
    let path = "schema/migrations/0002_drop_column_trial_size.mysql.sql";
    let text = kindex(root.path(), &["lint"]);
    assert_eq!(code(&text), Some(1));
    assert!(text_of(&text.stdout).starts_with(&format!("{path}:6:1: K103: dropping `trial`.`size`")));
    let json = kindex(root.path(), &["lint", "--output", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(document["findings"][0]["code"], "K103");
    assert_eq!(document["findings"][0]["file"], path);
    let github = kindex(root.path(), &["lint", "--output", "github"]);
    assert!(text_of(&github.stdout).starts_with(&format!("::error file={path},line=6,col=1,title=K103::")));
}
