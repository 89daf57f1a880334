//! What test areas share. Each module is one component; none knows an area.

pub(crate) mod require;

pub(crate) mod database;

pub(crate) mod mariadb;

pub(crate) mod mysql;
