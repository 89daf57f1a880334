//! The commands of `kindex` that start no service, but for those of `kindex runs`, with their flags, and what they
//! share with services: an edit of the ingester builds none of them anew. Knows no kind. Modules are in reading order:
//! each imports only those above it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod error;

pub mod platform;

pub mod config;

pub mod moment;

pub mod color;

pub mod say;

pub mod form;

pub mod output;

pub mod data_dir;

pub mod config_file;

pub mod client;

pub mod sql_only;

pub mod install;

pub mod database;

pub mod interrupt;

mod url;

#[cfg(test)]
mod fixture;

mod service_flag;

pub mod addresses;

pub mod nats;

pub mod one_cluster;

pub mod cli;

mod target;

mod own_version;

mod show;

mod enums;

mod listing;

pub mod get;

pub mod query_command;

mod changes;

pub mod history;

pub mod diff;

pub mod generate;

pub mod plan;

pub mod graph;

mod drift;

pub mod lint;

mod progress;

pub mod sides;

mod unserved;

pub mod against;

pub mod status;

mod peers;

mod verify_references;

pub mod verify;

pub mod versions;

pub mod backfill;

pub mod release;

pub mod quarantine;

pub mod restore;

pub mod purge;

mod last_event;

pub mod why;

pub mod references;

pub mod events;

pub mod move_command;

pub mod migrate;
