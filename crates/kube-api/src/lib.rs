//! Kubernetes' own words, for whoever serves its API and whoever asks it: structural schemas, managed fields, tables,
//! selectors, requests, lists and watches, Status, bodies and patches. Everything is pure: values in, values out.
//! Refuses to know where objects are kept, who listens, and Kindex's kinds.
//!
//! The modules below are in reading order; each imports only those above it.

pub mod size;

pub mod schema;

pub mod fields;

mod jsonpath;

pub mod table;

pub mod names;

pub mod selector;

pub mod request;

pub mod list;

pub mod watch;

pub mod status;

pub mod decode;

pub mod meta;

pub mod patch;

#[cfg(test)]
mod bounds;
