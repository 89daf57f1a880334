//! Storage versions: which versions the stored objects of a resource may be encoded in, how all of them come to the
//! current one, and how objects become those of another version on the way.
//!
//! [`trigger`] decides when to migrate, [`run`] how a migration goes on; both are pure. [`cluster`] has their effects,
//! and [`service`] keeps both at work. The objects `StorageState` and
//! `StorageVersionMigration` of `migration.k8s.io/v1alpha1` are those of the Kubernetes enhancement proposal on
//! automated storage version migration. The conversion webhook works on the registry alone: it asks no cluster, keeps
//! nothing, and answers whoever asks.
//!
//! Modules are in reading order: each imports only those above it.

mod causes;

pub mod hash;

pub mod state;

pub mod migration;

pub mod discovery;

pub mod trigger;

pub mod run;

pub mod metrics;

pub mod in_tree;

pub mod verdict;

pub mod wire;

pub mod cluster;

pub mod certificate;

pub mod service;

mod review;

mod webhook;

pub use review::{Reviewed, review};
pub use webhook::{serve, serve_counted};
