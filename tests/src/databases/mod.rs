//! Databases of single tests, in files, in memory, and on servers that all tests which run at a time share.

mod database;

pub mod mariadb;

pub mod mysql;

pub mod sqlite;

mod engine;

pub use database::{Database, Shared, patient, server_options};
pub use engine::{Engine, engines};
