//! The shipped schema on real engines: what is emitted is executed, read back from the engine's own catalog, and
//! compared with the model and with what operators know.

pub mod catalog;
mod expected;
mod rows;
mod work;

pub mod server;

mod crds;
mod joins;
mod model;
mod patterns;
mod plans;
mod protos;
mod queries;
pub mod sqlite;

use std::path::PathBuf;
use std::sync::OnceLock;

use kindex_codegen::artifact::{Artifacts, RelativePath};
use kindex_codegen::model::Model;

/// The workspace, with the shipped crds.toml.
fn root() -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let parent = PathBuf::from(package).parent().map(PathBuf::from);
    parent.expect("the tests are a member of the workspace")
}

pub fn shipped_model() -> Model {
    let lowered = kindex_codegen::lower(&root());
    lowered.unwrap_or_else(|errors| panic!("{errors}")).model
}

/// Emitted once for all tests.
fn shipped() -> &'static Artifacts {
    static SHIPPED: OnceLock<Artifacts> = OnceLock::new();
    SHIPPED.get_or_init(|| {
        let generated = kindex_codegen::generate(&root());
        generated.unwrap_or_else(|errors| panic!("{errors}")).artifacts
    })
}

fn text(artifacts: &Artifacts, path: &str) -> String {
    artifacts[&RelativePath::new(path)].clone()
}
