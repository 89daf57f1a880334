//! What the tests share beyond the harness: an embedded cluster in this process, databases on shared servers, limits,
//! and the emitted fixture with what converts its objects.

pub mod databases;

pub mod limits;

pub mod conversions;

// The fixture `fixtures/traps`: what is generated from it, compiled like any platform's crate.
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/kinds/mod.rs"]
pub mod kinds;
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/types/mod.rs"]
pub mod types;
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/migrations.rs"]
pub mod migrations;
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/registry.rs"]
pub mod registry;

pub mod trials;

pub use kindex_embedded as embedded;
pub use kindex_model::wire;
