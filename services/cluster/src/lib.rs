//! A Kubernetes API server in process, persisted in SQLite, for kubectl and Kubernetes clients that work with custom
//! resources. It knows nothing of Kindex's kinds: they arrive as CustomResourceDefinitions, over HTTP, like everything
//! else.
//!
//! How requests are read, what selectors find, how tables are written and what looks like a page of a browser
//! (`request`, `selector`, `table`, `browser`) is of use to any server of this API, and public.
//!
//! The modules below are in reading order; each imports only those above it.

mod size;

mod schema;

mod fields;
mod jsonpath;
mod openapi;

pub mod browser;
pub mod private;
pub mod table;

mod status;

mod decode;
mod meta;
mod names;

pub mod selector;

mod store;

pub mod request;
mod turns;

mod access;

mod resource;

mod definition;

mod builtin;

mod namespaces;
mod registry;

mod admit;

pub mod patch;

mod api;

mod mutate;

mod discovery;
mod housekeeping;
mod openapi_index;
mod rest;

mod door;

mod server;

mod cluster;

#[cfg(test)]
mod bounds;

pub use access::{Token, kubeconfig};
pub use api::Clock;
pub use cluster::{Cluster, ClusterError, ClusterOptions};
pub use door::Limits;
pub use store::StoreError;
