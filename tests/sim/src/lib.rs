//! A deterministic simulation of the whole ingester: the production controller, decisions, Kubernetes client and SQL
//! store against a simulated cluster and database. A scheduler draws every history from a seed, so that each can be
//! replayed exactly.
//!
//! ```console
//! $ cargo run -p kindex-sim -- --seeds 20000      # many seeds, and which fault happened in which step
//! $ cargo run -p kindex-sim -- --seed 17          # the log of one
//! $ cargo run -p kindex-sim -- mutate             # which planted bugs it finds, and how soon
//! ```

pub mod thing;

pub mod object;

pub mod owned;

pub mod cluster;

pub mod past;

pub mod database;

pub mod step;

pub mod fault;

pub mod coverage;

pub mod api;

mod http;

mod subscriber;

mod sqlite;

pub mod storage;

pub mod user;

pub mod turn;

mod stored;

mod rows;

pub mod unsaved;

mod marked;

pub mod checks;

pub mod convergence;

pub mod harness;

mod process;

pub mod world;

mod watches;

mod requests;

mod disruptions;

mod play;

mod quiesce;

pub mod draw;

pub mod history;

pub mod run;

pub mod mutations;

pub mod hunt;
