//! Whether typed messages are faithful: random objects of every kind through JSON, Rust types and message bytes, held
//! against prost-reflect with the real descriptors; and every trap of message types as Kubernetes JSON by name.
//!
//! Differences that are allowed, and therefore not generated at random but tested by name: unknown fields are dropped;
//! explicit zeros of fields without presence are dropped; times and durations come back in canonical text; numbers in
//! free JSON are doubles on the wire; the content of an `Any` that is not base64 is left out of the bytes.
//! Kinds in several versions are converted between all of them.

mod oracle;
mod random;

mod fixture;

mod kinds;
mod oneofs;
mod presence;
mod problems;
mod samples;
mod scalars;
mod versions;
mod well_known;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("tests lie in the repository").to_owned()
}

/// The root of the fixture.
fn traps() -> PathBuf {
    root().join("tests/fixtures/traps")
}
