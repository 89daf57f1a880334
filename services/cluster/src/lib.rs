//! A Kubernetes API server in process, persisted in SQLite, for kubectl and Kubernetes clients that work with custom
//! resources. It knows nothing of Kindex's kinds: they arrive as CustomResourceDefinitions, over HTTP, like everything
//! else.
//!
//! How requests are read, what selectors find and how objects are checked and changed is Kubernetes' own and in
//! `kindex_kube_api`, for any server of this API.
//!
//! The modules below are in reading order; each imports only those above it.

mod openapi;

pub mod private;

mod store;

mod object_locks;

mod access;

mod resource;

mod definition;

mod builtin;

mod namespaces;
mod registry;

mod admit;

mod api;

mod mutate;

mod discovery;
mod housekeeping;
mod openapi_index;
mod rest;

mod limits;

mod server;

mod in_process;

mod cluster;

mod fixed;

pub use access::{Token, kubeconfig};
pub use api::Clock;
pub use cluster::{Cluster, ClusterError, ClusterOptions};
pub use fixed::{FixedApi, FixedOptions, NotServed};
pub use in_process::InProcess;
pub use limits::Limits;
pub use resource::Convert;
pub use store::{
    Change, Intent, Mutation, ObjectKey, Page, PageRequest, Precondition, Revision, StorageBackend, StoreError,
    WriteError,
};
