//! Takes the finalizer off all objects, so that they can be deleted while no ingester runs. SQL
//! is brought up to date around it: no object is released before SQL holds it.
//!
//! `run` walks over the list, `page` stores and releases.

mod options;

mod page;

mod run;

pub use options::{Options, Place};
pub use page::Released;
pub use run::release;
