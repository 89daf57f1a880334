//! What the integration tests and the load programs share: the real servers that they
//! start, and the rule for servers that are absent.

pub mod require;

pub mod patience;

pub mod ports;

pub mod sql_server;

pub mod mariadb;

pub mod mysql;

pub mod galera;

pub mod controlplane;

pub mod embedded;

pub mod helm;

pub mod grpcurl;

pub mod grpc_call;

pub mod witness;

pub mod reference;

pub mod scrape;

pub mod proxy;

// The fixture `fixtures/traps`: what is generated from it, compiled like any platform's crate.
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/kinds/mod.rs"]
pub mod kinds;
#[rustfmt::skip]
#[path = "../fixtures/traps/generated/src/types/mod.rs"]
pub mod types;

pub use kindex_model::wire;
