//! Workspaces beside this checkout, with a kindex of kinds of their own.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Whether such workspaces are built: it takes minutes.
pub(crate) fn walk_is_required() -> bool {
    let required = std::env::var("KINDEX_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|component| component == "walk");
    if !required {
        println!("not run: KINDEX_REQUIRE does not name `walk`");
    }
    required
}

/// This repository.
pub(crate) fn checkout() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("kindex/ lies in the workspace").to_owned()
}

pub(crate) fn shown(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

pub(crate) fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
    fs::write(path, text).expect("writable");
}

/// A program of examples/, copied to a place of its own.
pub(crate) struct Example {
    directory: TempDir,
}

impl Example {
    /// Its sources, and these files.
    pub(crate) fn copy(example: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (checkout, example) = (checkout(), checkout().join("examples").join(example));
        let sources = [
            "Cargo.toml",
            "generated/Cargo.toml",
            "generated/src/lib.rs",
            "src/main.rs",
        ];
        for name in sources.iter().chain(more) {
            let text = fs::read_to_string(example.join(name)).expect("in the checkout");
            write(directory.path(), name, &from_checkout(&text, shown(&checkout)));
        }
        let lock = fs::read_to_string(checkout.join("Cargo.lock")).expect("in the checkout");
        write(directory.path(), "Cargo.lock", &lock);
        share_features(directory.path());
        Self { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Its program, built or why it does not build.
    pub(crate) fn build(&self, name: &str) -> Result<PathBuf, String> {
        let output = build(self.path());
        match output.status.success() {
            true => Ok(binary(name)),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

/// The paths that leave the example lead to the checkout.
fn from_checkout(text: &str, checkout: &str) -> String {
    let mut parts = text.split("\"../../");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str(&format!("\"{checkout}/{}", part.trim_start_matches("../")));
    }
    all
}

/// What only tests of the checkout need, and what gives crates of the registry more features there. In a workspace that
/// needs it too, they are those that are built already: without it, a hundred of them are built once more.
const OF_TESTS: &str = r#"[package]
name = "of-tests"
version = "0.1.0"
edition = "2024"
publish = false

[dependencies]
cargo_metadata = "*"
insta = { version = "*", default-features = false }
jsonschema = { version = "*", default-features = false }
tempfile = "*"
tonic = { version = "*", default-features = false, features = ["channel", "tls-ring"] }
"#;

/// Gives crates of the registry the features in this workspace that they have in the checkout.
pub(crate) fn share_features(workspace: &Path) {
    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).expect("written");
    let members = manifest.replacen("members = [", "members = [\"of-tests\", ", 1);
    assert_ne!(members, manifest, "it has members");
    write(workspace, "Cargo.toml", &members);
    write(workspace, "of-tests/Cargo.toml", OF_TESTS);
    write(workspace, "of-tests/src/lib.rs", "");
}

/// How its build ended. With the profile of this workspace, no crate is built for two of them.
pub(crate) fn build(workspace: &Path) -> Output {
    let target = target();
    let profile = target.join("profile.toml");
    let mut command = Command::new(env!("CARGO"));
    // Where a build script asks for these, which cargo sets for tests, its crate would be built once more.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text == "OUT_DIR" || text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            command.env_remove(&name);
        }
    }
    command
        .args([
            "build",
            "--workspace",
            "--offline",
            "--target-dir",
            shown(target),
            "--config",
            shown(&profile),
        ])
        .current_dir(workspace)
        // Nothing is emitted yet.
        .env_remove("KINDEX_CODEGEN")
        // Other compilers have built nothing of what is there.
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    command.output().expect("cargo runs")
}

/// Where its program is.
pub(crate) fn binary(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

/// The directory of all these builds. Crates of the registry are there already, as this workspace has built them.
fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let target = checkout().join("target/walk");
        let built = Path::new(env!("CARGO_BIN_EXE_kindex"))
            .parent()
            .expect("in a directory");
        if !target.join("debug").exists() {
            share(built, &target.join("debug")).expect("readable and writable");
        }
        let manifest = fs::read_to_string(checkout().join("Cargo.toml")).expect("in the checkout");
        let (_, profiles) = manifest
            .split_once("\n[profile.dev]")
            .expect("the workspace has profiles");
        write(&target, "profile.toml", &format!("[profile.dev]{profiles}"));
        target
    })
}

/// What cargo keeps of a crate: what it is made of, what its build script said, what came of it.
const KEPT: [&str; 3] = [".fingerprint", "build", "deps"];

/// Lets another target directory have the crates of the registry of this one.
fn share(built: &Path, target: &Path) -> io::Result<()> {
    for kept in KEPT {
        let (from, to) = (built.join(kept), target.join(kept));
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let is_own = name.to_str().is_none_or(|name| name.contains("kindex"));
            let is_program = path.is_file() && path.extension().is_none();
            if !is_own && !is_program {
                take(&path, &to.join(name))?;
            }
        }
    }
    Ok(())
}

/// Files that cargo may write again are small: they are copied, with the time by which it sees what is newer.
fn take(from: &Path, to: &Path) -> io::Result<()> {
    const COPIED_MAX: u64 = 256 << 10;
    let metadata = fs::metadata(from)?;
    if metadata.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            take(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if metadata.len() > COPIED_MAX {
        return fs::hard_link(from, to);
    }
    fs::copy(from, to)?;
    File::options()
        .append(true)
        .open(to)?
        .set_modified(metadata.modified()?)
}
