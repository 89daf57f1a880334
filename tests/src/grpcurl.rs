//! The published grpcurl, made by `tests/grpcurl/build`. Knows no call.

use std::path::{Path, PathBuf};

/// Whether `tests/grpcurl/build` was run.
pub fn installed() -> bool {
    directory().join("grpcurl").is_file()
}

/// Where it is, for a PATH.
pub fn directory() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = package.parent().expect("a member of the workspace");
    workspace.join("target/tools")
}
