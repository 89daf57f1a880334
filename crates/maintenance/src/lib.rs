//! The repair commands: compare SQL with the cluster, fill SQL from it, release finalizers, restore objects, purge
//! rows, convert them to another version, and retry quarantined objects. An ingester may run beside them. Modules are
//! in reading order: each imports only those above it.

pub mod retries;

pub mod sides;

mod pages;

pub mod verify;

pub mod references;

pub mod backfill;

pub mod release;

pub mod quarantine;

pub mod restore;

pub mod purge;

pub mod convert;
