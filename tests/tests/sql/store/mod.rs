//! The SQL stores: one set of scenarios over SQLite in memory, SQLite in a file, MariaDB as
//! shipped, MariaDB with snapshot isolation and MySQL; then what is particular to a server, and to a cluster of them.

pub(crate) mod backend;
mod shelf;
pub(crate) mod widget;

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
mod agreement;
mod archived_holders;
mod archived_meanwhile;
mod backfill;
mod broken_json;
mod changes;
mod checks;
mod cleaned_up;
mod collection;
mod concurrent;
mod conditions;
mod convert;
mod cut_off;
mod cycles;
mod denied_holders;
mod direct;
mod encrypted;
mod expressions;
mod extremes;
mod faults;
mod fidelity;
mod fill;
mod follower;
mod foreign_transactions;
mod former_targets;
mod galera;
mod gone;
mod history;
mod large;
mod left_behind;
mod many;
mod migrate;
mod moved_holders;
mod names;
mod outbox;
mod outbox_histories;
mod outlast;
mod owners;
mod page_bytes;
mod pages;
mod past_list;
mod prepare;
mod purge;
mod purge_by_deletion;
mod quarantine;
mod questions;
mod reads;
mod reference_races;
mod references;
mod region;
mod restore;
mod restored_holders;
mod restored_meanwhile;
mod restored_twice;
mod rewound_meanwhile;
mod selectors;
mod sql_only;
mod stalls;
mod statements;
mod statistics;
mod swept;
mod tombstone_ends;
mod tombstones;
mod unchanged;
mod unsigned;
mod verify;
mod verify_elsewhere;
mod version_checks;
mod version_counts;
