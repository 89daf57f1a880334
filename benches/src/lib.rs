//! What the load programs share: objects of a fixed shape, the patterns that Kindex's
//! writer is measured against, and how figures are taken and shown.

// The tests' own launcher, without their dependencies.
#[path = "../../tests/src/require.rs"]
pub mod require;

#[path = "../../tests/src/patience.rs"]
pub mod patience;

#[path = "../../tests/src/ports.rs"]
pub mod ports;

#[path = "../../tests/src/sql_server.rs"]
pub mod sql_server;

#[path = "../../tests/src/mariadb.rs"]
pub mod mariadb;

#[path = "../../tests/src/mysql.rs"]
pub mod mysql;

#[path = "../../tests/src/controlplane.rs"]
pub mod controlplane;

#[path = "../../tests/src/proxy.rs"]
pub mod proxy;

pub mod figures;

pub mod objects;

pub mod many;

pub mod load_data;

pub mod reference;

pub mod load_server;

pub mod child;

pub mod clients;

pub mod grpc;
