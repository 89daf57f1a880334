//! Takes the finalizer off all objects, so that they can be deleted while no ingester runs. SQL
//! is brought up to date around it: no object is released before SQL holds it.
//!
//! `part` decides and is pure, `run` lists, `page` stores and releases.

mod part;

mod page;

mod run;

pub use page::Released;
pub use run::{Options, Place, ReleaseError, release};
