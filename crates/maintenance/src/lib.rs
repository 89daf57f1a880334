//! What heals, fills and empties: compares SQL with the cluster, fills SQL from it, lets objects go for
//! good, restores them, and looks after those that the database refused. Knows no kind by name, and
//! nothing of the ingester that may run beside it. Modules are in reading order: each imports only those
//! above it.

pub mod retries;

pub mod sides;

mod pages;

pub mod verify;

pub mod backfill;

pub mod release;

pub mod quarantine;

pub mod restore;

pub mod purge;
