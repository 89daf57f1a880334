//! Workspaces beside this checkout, with a kindex of kinds of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// How its build ended, with the profile of this workspace, so that the crates of the registry are built once for all.
pub(crate) fn build(workspace: &Path) -> Output {
    let target = target();
    let command = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--target-dir", shown(&target)])
        .args(["--config", "profile.dev.debug='line-tables-only'"])
        .args(["--config", "profile.dev.package.'*'.debug=false"])
        .current_dir(workspace)
        // Nothing is emitted yet.
        .env_remove("KINDEX_CODEGEN")
        .output();
    command.expect("cargo runs")
}

/// Where its program is.
pub(crate) fn binary(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

fn target() -> PathBuf {
    checkout().join("target/walk")
}
