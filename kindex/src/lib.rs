//! The `kindex` command, as a library: another workspace with its own crds.toml
//! calls [`run`] with its own registry. Knows no kind.

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// What removes what objects have outside of the cluster.
pub use kindex_deletion::cleanup;
/// Kinds, values and objects: what the derive of a hand-written kind names.
pub use kindex_model as model;
/// Typed queries, and queries as text.
pub use kindex_query as query;
/// The SQL stores.
pub use kindex_store as store;

#[cfg(feature = "mimalloc")]
mod allocator;

pub mod error;

pub mod platform;

pub mod config;

pub mod moment;

mod colour;

mod say;

mod form;

mod output;

mod fetch;

mod data_dir;

mod config_file;

mod client;

pub mod sql_only;

mod install;

mod samples;

mod exposition;

mod health;

mod database;

mod interrupt;

mod url;

#[cfg(test)]
mod fixture;

mod service_flag;

mod limits;

mod orphans;

mod replicas;

mod front_proxy;

mod nats;

mod unknown_versions;

mod one_cluster;

mod traces;

mod services;

pub mod cli;

mod target;

mod own_version;

mod show;

mod enums;

mod listing;

mod get;

mod query_command;

mod changes;

mod history;

mod diff;

mod generate;

mod plan;

mod graph;

mod drift;

mod lint;

mod progress;

mod sides;

mod unserved;

mod against;

mod status;

mod settled;

mod other_services;

mod verify_references;

mod verify;

mod versions;

mod backfill;

mod release;

mod quarantine;

mod restore;

mod purge;

mod last_event;

mod why;

mod references;

mod events;

mod move_command;

mod migrate;

mod up;

mod telemetry;

mod completions;

mod run;

pub use platform::Platform;
pub use run::run;
