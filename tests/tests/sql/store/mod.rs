//! The SQL stores: one set of scenarios over SQLite in memory, SQLite in a file, MariaDB as
//! shipped, MariaDB with snapshot isolation and MySQL; then what is particular to a server, and to a cluster of them.

pub(crate) mod widget;

pub(crate) mod backend;
mod second_connection;
mod shelf;

/// Runs each of the module's scenarios, `async fn(Backend)`, over every backend.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        mod sqlite_memory {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::store::backend::Backend::memory().await).await;
            })*
        }
        mod sqlite_file {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::store::backend::Backend::file().await).await;
            })*
        }
        mod mariadb {
            use kindex_tests::databases::mariadb::Flavor;
            $(#[tokio::test] async fn $name() {
                if let Some(backend) = crate::store::backend::Backend::mariadb(Flavor::Plain).await {
                    super::$name(backend).await;
                }
            })*
        }
        mod mariadb_snapshot_isolation {
            use kindex_tests::databases::mariadb::Flavor;
            $(#[tokio::test] async fn $name() {
                let flavor = Flavor::SnapshotIsolation;
                if let Some(backend) = crate::store::backend::Backend::mariadb(flavor).await {
                    super::$name(backend).await;
                }
            })*
        }
        mod mysql {
            $(#[tokio::test] async fn $name() {
                if let Some(backend) = crate::store::backend::Backend::mysql().await {
                    super::$name(backend).await;
                }
            })*
        }
    };
}

mod absent;
mod conditions;
mod cut_off;
mod direct;
mod follower;
mod migrate;
mod pages;
mod region;
mod restored_holders;

mod outbox;
mod references;
mod rewound_meanwhile;
mod sql_only;
mod tombstones;

mod archived_holders;
mod archived_meanwhile;
mod moved_holders;
mod outbox_histories;
mod owners;
mod reference_races;

mod swept;

mod agreement;
mod backfill;
mod broken_json;
mod changes;
mod checks;
mod cleaned_up;
mod collection;
mod concurrent;
mod convert;
mod cycles;
mod denied_holders;
mod encrypted;
mod expressions;
mod extremes;
mod faults;
mod fidelity;
mod fill;
mod foreign_transactions;
mod former_targets;
mod galera;
mod gone;
mod history;
mod large;
mod left_behind;
mod many;
mod names;
mod outlast;
mod page_bytes;
mod past_list;
mod prepare;
mod purge;
mod purge_by_deletion;
mod quarantine;
mod questions;
mod reads;
mod restore;
mod restored_meanwhile;
mod restored_twice;
mod selectors;
mod stalls;
mod statements;
mod statistics;
mod tombstone_ends;
mod unchanged;
mod unsigned;
mod verify;
mod verify_elsewhere;
mod version_checks;
mod version_counts;
