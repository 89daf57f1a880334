//! Databases of single tests, on servers that all tests which run at a time share.

mod database;

pub mod mariadb;

pub mod mysql;

pub use database::{Database, Shared, patient};
