//! What `cargo build` makes of `crds.toml` in Rust: for each kind its types, its table for the runtime and its typed
//! queries, and the registry of all kinds. Everything below this file is emitted; this file only names it.
//!
//! ```text
//! use kindex_generated::kinds::pipeline_run::{self, PipelineRunState};
//!
//! let failed = pipeline_run::query().state().eq(PipelineRunState::Failed).live().limit(50);
//! ```

// Emitted files are laid out by the generator, which wraps a few lines otherwise than rustfmt.
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
