//! Planned migrations: their texts for every sort of change, what they make of real databases, the chain that holds
//! them together, and the lint.

mod random;

mod chain;
mod engines;
mod kinds;
mod lint;
mod online;
mod unsigned;

use std::fs;
use std::path::Path;

use kindex_codegen::artifact::{self, Artifacts, Mode};
use kindex_codegen::plan::MigrationOptions;
use kindex_codegen::{Generated, Planned};
use tempfile::TempDir;

const PLATFORM: &str = r#"
[platform]
group     = "fixture.example"
version   = "v1"
finalizer = "fixture.example/Ingester"
deleting  = "fixture.example/Deleting"
immutable = "fixture.example/Immutable"
"#;

/// A declaration on disk, whose migrations are planned one after the other.
struct Project(TempDir);

impl Project {
    fn new(kinds: &str) -> Self {
        let project = Self(TempDir::new().expect("a temporary directory"));
        let identifier = include_str!("../../../../proto/michelangelo/api/resource.proto");
        project.write("proto/michelangelo/api/resource.proto", identifier);
        project.declare(kinds);
        project
    }

    /// With its first migration.
    fn planned(kinds: &str) -> Self {
        let project = Self::new(kinds);
        project.plan();
        project
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn declare(&self, kinds: &str) {
        self.write("crds.toml", &format!("{PLATFORM}\n{kinds}"));
    }

    /// Plans and writes.
    fn plan(&self) -> Planned {
        let planned = self.look();
        self.sync(&planned.artifacts);
        planned
    }

    /// Plans and writes nothing.
    fn look(&self) -> Planned {
        let planned = kindex_codegen::plan(self.root(), &MigrationOptions::default());
        planned.unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// What a build does.
    fn build(&self) -> Generated {
        let generated = kindex_codegen::generate(self.root()).unwrap_or_else(|errors| panic!("{errors}"));
        self.sync(&generated.artifacts);
        generated
    }

    fn sync(&self, artifacts: &Artifacts) {
        artifact::sync(self.root(), artifacts, Mode::Write).expect("writable");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
        fs::write(path, text).expect("writable");
    }
}

/// The shape of the kind that changes in these tests.
const FIELDS: &str = r#"
[kinds.Trial]
fields = { spec = { owner = "string", holder = "string", size = "int64", done = "bool", target = "ResourceIdentifier" } }
"#;

/// A declaration with these columns of one kind.
fn columns(columns: &str) -> String {
    format!("{FIELDS}\n[kinds.Trial.columns]\n{columns}\n")
}
