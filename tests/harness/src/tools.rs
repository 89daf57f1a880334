//! Where the programs are that were built or unpacked for the tests alone.

use std::path::{Path, PathBuf};

/// The workspace.
///
/// # Panics
/// Where this crate lies outside of one.
pub fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("two folders below the workspace")
}

/// The folder of these programs.
pub fn tools() -> PathBuf {
    workspace().join("target/tools")
}
