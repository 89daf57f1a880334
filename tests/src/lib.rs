//! What the tests share beyond the harness: an embedded cluster in this process, databases on shared servers, limits,
//! and the emitted fixture.

pub mod embedded;

pub mod databases;

pub mod limits;

// The fixture `fixtures/traps`: what is generated from it, compiled like any platform's crate.
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/kinds/mod.rs"]
pub mod kinds;
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/types/mod.rs"]
pub mod types;

pub use kindex_model::wire;
