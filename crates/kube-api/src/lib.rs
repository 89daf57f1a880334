//! Kubernetes' concepts for servers and clients of its API: structural schemas, managed fields, tables, selectors,
//! requests and answers, lists and watches, conditions, Status, bodies and patches. Pure functions, independent of
//! storage, servers and kinds.
//!
//! The modules below are in reading order; each imports only those above it.

pub mod size;

pub mod media;

pub mod meta;

pub mod condition;

pub mod scope;

pub mod schema;

pub mod fields;

mod jsonpath;

pub mod list;

pub mod partial;

pub mod table;

pub mod names;

pub mod storage_version;

pub mod conversion;

pub mod selector;

pub mod request;

pub mod watch;

pub mod status;

pub mod identity;

pub mod validation;

pub mod headers;

pub mod decode;

pub mod patch;

#[cfg(test)]
mod bounds;
