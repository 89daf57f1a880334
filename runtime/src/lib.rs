//! The ingester: keeps SQL equal to the cluster and lets nothing leave the cluster
//! before SQL holds it. Knows no kind by name; one controller runs for each.
//!
//! A thing flows downward: the cluster's events enter a [`controller`], which is a machine
//! without I/O; [`kindex_decide`] says what an object needs; the [`driver`] carries it out. Modules are
//! in reading order: each imports only those above it.

pub mod metrics;

pub mod message;

mod marks;

pub mod settings;

pub mod status;

mod gauges;

pub mod controller;

pub mod driver;

pub mod replicas;

pub use driver::{Division, Ingester, Storage};

use kindex_model::kind::Kind;

/// The controller's name, as in logs: `ingester_pipelinerun`.
pub fn controller_name(kind: &Kind) -> String {
    format!("ingester_{}", kind.name.to_ascii_lowercase())
}

/// Says that the ingester stays off, and why; everything else runs.
pub fn announce_off(reason: &str) {
    tracing::info!(reason, "Metadata storage not configured, skipping ingester setup");
}
