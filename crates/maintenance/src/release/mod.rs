//! Removes the finalizer from all objects, so that they can be deleted while no ingester runs. No object is released
//! before SQL holds it, and SQL holds the released version afterwards.
//!
//! `run` reads the list, `page` stores and releases.

mod options;

mod page;

mod run;

pub use options::{Options, ReleaseSides};
pub use page::Released;
pub use run::release;
