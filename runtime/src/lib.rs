//! The ingester: keeps SQL equal to the cluster, and removes no object from the cluster before SQL holds it. One
//! controller runs for each kind.
//!
//! Events of the cluster enter a [`controller`], a state machine without I/O; [`kindex_decide`] decides on each object;
//! the [`driver`] carries out the outputs. Modules are in reading order: each imports only those above it.

pub mod metrics;

pub mod message;

mod marks;

pub mod settings;

pub mod status;

mod gauges;

pub mod controller;

pub mod driver;

pub mod replicas;

pub use driver::{Ingester, Sharding, Storage};

use kindex_model::kind::Kind;

/// The controller's name, as in logs: `ingester_pipelinerun`.
fn controller_name(kind: &Kind) -> String {
    format!("ingester_{}", kind.name.to_ascii_lowercase())
}
