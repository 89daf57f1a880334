//! The real servers and programs that tests and load programs start, and the rule for those that are absent. Knows no
//! crate of Kindex.

pub mod require;

pub mod wait;

pub mod tools;

pub mod ports;

mod process;

pub mod sql_server;

pub mod mariadb;

pub mod mysql;

pub mod galera;

pub mod controlplane;

pub mod definition;

pub mod kubectl;

pub mod helm;

pub mod grpcurl;

pub mod nats;

pub mod grpc_call;

pub mod witness;

pub mod reference;

pub mod scrape;

pub mod proxy;
