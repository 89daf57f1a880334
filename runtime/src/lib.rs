//! Kindex's runtime: objects, their projection into SQL, the stores and the
//! ingester. Knows no kind; the generated registry brings them. Modules are in
//! reading order: each imports only those above it.

pub mod kind;

pub mod spelling;

pub mod value;

pub mod wire;

pub mod indexed;

pub mod typed;

pub mod object;

pub mod projection;

pub mod progress;

mod pace;

pub mod store;

pub mod query;

pub mod metrics;

pub mod database_gauges;

pub mod cluster;

pub mod seen;

pub mod ingester;

pub mod replicas;

pub mod patience;

pub mod verify;

pub mod backfill;

pub mod release;

pub mod quarantine;

pub mod restore;

pub mod purge;

pub mod config;
