//! The `kindex` command, as a library: another workspace with its own crds.toml
//! calls [`run`] with its own registry. Knows no kind.

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Kinds, values and objects: what the derive of a hand-written kind names.
pub use kindex_model as model;
/// Typed queries, and queries as text.
pub use kindex_query as query;
/// The SQL stores.
pub use kindex_store as store;

pub mod error;

pub mod platform;

pub mod config;

pub mod moment;

pub mod cli;

mod colour;

mod say;

mod output;

mod data_dir;

mod client;

mod install;

mod samples;

mod exposition;

mod health;

mod database;

mod interrupt;

mod target;

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

mod drift;

mod lint;

mod orphans;

mod replicas;

mod ingester;

mod front_proxy;

mod api;

mod progress;

mod sides;

mod unserved;

mod against;

mod status;

mod settled;

mod verify;

mod backfill;

mod release;

mod quarantine;

mod restore;

mod purge;

mod migrate;

mod up;

mod telemetry;

mod run;

pub use platform::Platform;
pub use run::run;
