//! The workspace of docs/src/how-to/own-repository.md, made of the page's own blocks beside this checkout: it builds a
//! kindex of other kinds, which stores its sample. Takes minutes, and runs where `KINDEX_REQUIRE` names `walk`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/src/how-to/own-repository.md");

/// Those that the page has a block for.
const FILES: [&str; 5] = [
    "Cargo.toml",
    "generated/Cargo.toml",
    "crds.toml",
    "samples/training-job.yaml",
    "src/main.rs",
];

#[test]
fn a_workspace_of_ones_own_builds_a_kindex_of_its_kinds() {
    let required = std::env::var("KINDEX_REQUIRE").unwrap_or_default();
    if !required.split(',').any(|component| component == "walk") {
        println!("not run: KINDEX_REQUIRE does not name `walk`");
        return;
    }
    let checkout = checkout();
    let workspace = tempfile::tempdir().expect("a temporary directory");
    let root = workspace.path();
    for name in FILES {
        write(
            root,
            name,
            &block(name)
                .replace("../../kindex", "../kindex")
                .replace("../kindex", shown(&checkout)),
        );
    }
    for name in ["generated/build.rs", "generated/src/lib.rs", "Cargo.lock"] {
        write(
            root,
            name,
            &fs::read_to_string(checkout.join(name)).expect("in the checkout"),
        );
    }
    let binary = build(root, &checkout.join("target/walk"));
    for emitted in [
        "schema/crds/trainingjobs.yaml",
        "deploy/schema/init_db.sh",
        "docs/reference/sql.md",
    ] {
        assert!(root.join(emitted).is_file(), "{emitted}");
    }
    let any = "127.0.0.1:0";
    let once = ["up", "--samples", "--once", "--timeout", "240", "--data-dir", ".kindex"];
    let addresses = ["--api-addr", any, "--health-addr", any, "--listen", any];
    run(&binary, root, &[&once[..], &addresses].concat());
    assert!(run(&binary, root, &["get", "trainingjobs", "-n", "default"]).contains("ada"));
    run(&binary, root, &["plan"]);
    assert!(root.join("schema/migrations/0001_initial.mysql.sql").is_file());
}

fn checkout() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("kindex/ lies in the workspace").to_owned()
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
    fs::write(path, text).expect("writable");
}

/// The block below the line of the page that begins with the name of a file.
fn block(name: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("\n`{name}`")).expect("the page has the file");
    let (_, rest) = rest.split_once("\n```").expect("a block follows");
    let (_, rest) = rest.split_once('\n').expect("the block has lines");
    rest.split_once("```").expect("the block ends").0
}

/// With the profile of this workspace, so that the crates of the registry are built once for both walks.
fn build(workspace: &Path, target: &Path) -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--target-dir", shown(target)])
        .args(["--config", "profile.dev.debug='line-tables-only'"])
        .args(["--config", "profile.dev.package.'*'.debug=false"])
        .current_dir(workspace)
        // Nothing is emitted yet.
        .env_remove("KINDEX_CODEGEN")
        .status();
    assert!(
        status.expect("cargo runs").success(),
        "the workspace of the page builds"
    );
    target.join("debug/ml-kindex")
}

fn run(binary: &Path, directory: &Path, args: &[&str]) -> String {
    let output = Command::new(binary).args(args).current_dir(directory).output();
    let output = output.expect("kindex runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}
