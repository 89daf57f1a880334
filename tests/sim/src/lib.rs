//! The deterministic simulation of the whole ingester: production's controller, decisions,
//! Kubernetes client and SQL store against a simulated cluster and database, under a
//! scheduler that draws every history from a seed. A seed replays to the letter.
//!
//! ```console
//! $ cargo run -p kindex-sim -- --seeds 20000      # many seeds, and what met what
//! $ cargo run -p kindex-sim -- --seed 17          # the story of one
//! $ cargo run -p kindex-sim -- mutate             # which planted bugs it finds, and how soon
//! ```

pub mod thing;

pub mod object;

pub mod cluster;

pub mod past;

pub mod database;

pub mod step;

pub mod fault;

pub mod coverage;

pub mod api;

mod http;

mod sqlite;

pub mod storage;

pub mod user;

pub mod turn;

mod stored;

pub mod memory;

pub mod checks;

pub mod rest;

pub mod ground;

mod process;

pub mod world;

mod requests;

mod watches;

mod accidents;

mod calm;

pub mod draw;

pub mod history;

pub mod run;

pub mod mutations;

pub mod hunt;
