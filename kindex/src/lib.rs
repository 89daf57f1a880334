//! The `kindex` command, as a library: another workspace with its own crds.toml
//! calls [`run`] with its own registry. Knows no kind.

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// What commands share with programs: errors, the platform, the configuration file, moments, and the API of SQL-only
/// kinds.
pub use kindex_commands::{config, error, moment, platform, sql_only};
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

mod samples;

mod exposition;

mod health;

mod fetch;

mod traces;

mod limits;

mod orphans;

mod replicas;

mod front_proxy;

mod unknown_versions;

mod services;

pub mod cli;

mod settled;

mod up;

mod telemetry;

mod completions;

mod run;

pub use kindex_commands::platform::Platform;
pub use run::run;
