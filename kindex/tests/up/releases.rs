//! The way of examples/storage-versions: a kind gets a version and loses the old one, release by release, on the
//! objects of the release before. Takes minutes, and runs where `KINDEX_REQUIRE` names `walk`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;
use super::workspace::{Example, checkout, shown, walk_is_required, write};

const OBJECTS: usize = 1_000;
/// Those of them that leave the cluster for SQL.
const ARCHIVED: usize = 20;

const DEFINITION: &str = "models.zoo.example.com";

/// The example, release by release.
struct Releases(Example);

impl Releases {
    fn copy() -> Self {
        Self(Example::copy("storage-versions", &[]))
    }

    fn lock(&self) -> PathBuf {
        self.0.path().join("schema/crds.lock")
    }

    /// The program of a release, or why it does not build.
    fn build(&self, release: u32) -> Result<PathBuf, String> {
        let declared = checkout().join(format!("examples/storage-versions/releases/{release}.toml"));
        let declared = fs::read_to_string(declared).expect("in the checkout");
        write(self.0.path(), "crds.toml", &declared);
        let built = self.0.build("zoo-kindex")?;
        let program = self.0.path().join(format!("release-{release}"));
        fs::copy(built, &program).expect("built");
        Ok(program)
    }
}

fn models() -> String {
    let mut text = String::new();
    for number in 0..OBJECTS {
        let object = format!(
            "---\napiVersion: zoo.example.com/v1\nkind: Model\nmetadata: {{name: m{number}, namespace: default}}\n\
             spec: {{owner: ada, framework: torch, size_mb: {number}}}\n"
        );
        write!(text, "{object}").expect("a text grows");
    }
    text
}

fn stored_versions(run: &Running) -> String {
    run.kubectl(&["get", "crd", DEFINITION, "-o=jsonpath={.status.storedVersions}"], "")
}

fn spec(run: &Running, version: &str, name: &str) -> String {
    let resource = format!("models.{version}.zoo.example.com");
    run.kubectl(&["get", &resource, name, "-o=jsonpath={.spec}"], "")
}

/// `kindex versions`: its exit code, and what it says.
fn versions(run: &Running, words: &[&str]) -> (Option<i32>, String) {
    let output = run.command(&[&["versions"][..], words].concat());
    (output.status.code(), text_of(&output.stdout) + &text_of(&output.stderr))
}

fn verdict(run: &Running) -> (Option<i32>, String) {
    versions(run, &["--kind", "models", "--exit-code"])
}

#[test]
fn a_version_comes_and_goes_release_by_release() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let example = Releases::copy();
    let mut run = Running::start_binary(&example.build(1).expect("builds"), &[]);
    the_first_release_stores_objects(&run);

    let too_early = example.build(3).expect_err("v1 may be stored");
    assert!(too_early.contains("dropped Model"), "{too_early}");

    run.restart_as(&example.build(2).expect("builds"), &["--no-trigger"]);
    the_second_release_stores_what_is_left_in_v1(&run);
    the_second_release_migrates(&run);
    the_second_release_drops_v1(&run, &example.lock());

    run.restart_as(&example.build(3).expect("v1 was dropped"), &[]);
    the_third_release_has_every_object(&run);
}

fn the_first_release_stores_objects(run: &Running) {
    run.kubectl(&["create", "-f", "-"], &models());
    for number in 0..ARCHIVED {
        let name = format!("m{number}");
        run.kubectl(&["annotate", "model", &name, "zoo.example.com/immutable=true"], "");
    }
    wait_for("all rows", || {
        run.get(&["models", "-o", "name", "--limit", "2000"]).lines().count() == OBJECTS
    });
    wait_for("the archived ones have left the cluster", || {
        run.kubectl(&["get", "models", "-o", "name"], "").lines().count() == OBJECTS - ARCHIVED
    });
    assert_eq!(stored_versions(run), r#"["v1"]"#);
}

fn the_second_release_stores_what_is_left_in_v1(run: &Running) {
    wait_for("v2", || stored_versions(run) == r#"["v1","v2"]"#);
    let old = r#"{"framework":"torch","owner":"ada","size_mb":500}"#;
    assert_eq!(spec(run, "v1", "m500"), old);
    let new = r#"{"owner":"ada","runtime":{"framework":"torch","precision":"fp32"},"size_mb":500}"#;
    assert_eq!(spec(run, "v2", "m500"), new);
    let (code, output) = verdict(run);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("no, because"), "{output}");
    let (code, output) = versions(run, &["drop", "models", "v1"]);
    assert_eq!(code, Some(1), "{output}");
    assert_eq!(stored_versions(run), r#"["v1","v2"]"#, "nothing changed");
}

fn the_second_release_migrates(run: &Running) {
    let (code, output) = versions(run, &["start", "models", "--wait", "--timeout", "240"]);
    assert_eq!(code, Some(0), "{output}");
    let (code, output) = verdict(run);
    assert_eq!(code, Some(1), "archived objects are in v1: {output}");
    let (code, output) = versions(run, &["convert", "--kind", "models"]);
    assert_eq!(code, Some(0), "{output}");
    wait_for("all rows follow", || verdict(run).0 == Some(0));
    assert!(verdict(run).1.contains("yes"), "{}", verdict(run).1);
}

fn the_second_release_drops_v1(run: &Running, lock: &Path) {
    let (code, output) = versions(run, &["drop", "models", "v1", "--lock", shown(lock)]);
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(stored_versions(run), r#"["v2"]"#);
    let noted = fs::read_to_string(lock).expect("the lock");
    assert!(noted.contains("dropped Model zoo.example.com/v1"), "{noted}");
}

fn the_third_release_has_every_object(run: &Running) {
    wait_for("v1 is not served any more", || {
        let path = "-o=jsonpath={.spec.versions[*].name}";
        run.kubectl(&["get", "crd", DEFINITION, path], "") == "v2"
    });
    let listed = run.kubectl(&["get", "models", "-o", "name"], "");
    assert_eq!(listed.lines().count(), OBJECTS - ARCHIVED);
    let everything = run.get(&["models", "-o", "name", "--limit", "2000"]);
    assert_eq!(everything.lines().count(), OBJECTS);
    let archived = run.get(&["models", "m3", "-o", "json"]);
    assert!(
        archived.contains("zoo.example.com/v2") && archived.contains("fp32"),
        "{archived}"
    );
    run.until_verified();
}
