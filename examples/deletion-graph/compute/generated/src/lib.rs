//! What `cargo build` makes of `crds.toml`.

#[rustfmt::skip]
pub mod types;

#[rustfmt::skip]
pub mod kinds;

#[rustfmt::skip]
pub mod migrations;

#[rustfmt::skip]
pub mod registry;

pub use kindex_model::wire;

pub use self::registry::registry;
