//! The statistics of a SQLite file, on which whoever reads it by another program relies: they are there while the store
//! writes, and once it is closed.

use kindex_store::MetadataStorage;
use kindex_tests::databases::patient;

use super::backend::{Backend, rows};
use super::widget::{REGISTRY, WIDGET, at, widget};

async fn write(store: &dyn MetadataStorage, times: u64) {
    for version in 1..=times {
        let object = widget("u1", "a", version).label("l", &version.to_string());
        let written = store.write(&WIDGET, &[object.live()], at(0)).await;
        written.expect("written");
    }
}

/// The tables of the kind of which something is known.
async fn known(backend: &Backend) -> Vec<String> {
    let of_all = "SELECT name FROM sqlite_master WHERE name = 'sqlite_stat1'";
    if rows(&backend.address, of_all).await.expect("a file").is_empty() {
        return Vec::new();
    }
    let of_each = "SELECT DISTINCT tbl FROM sqlite_stat1 WHERE tbl LIKE 'widget%' ORDER BY tbl";
    let found = rows(&backend.address, of_each).await.expect("a file");
    found.into_iter().filter_map(|mut row| row.swap_remove(0)).collect()
}

#[tokio::test]
async fn a_file_that_is_written_has_statistics() {
    let backend = Backend::file().await;
    // So many as made the tables. The last waits until the one before has given its connection back.
    write(&*backend.store, 101).await;
    assert_eq!(known(&backend).await, ["widget", "widget_labels"]);
}

#[tokio::test]
async fn a_file_that_was_closed_has_statistics() {
    let backend = Backend::file().await;
    backend.store.close().await;
    assert_eq!(known(&backend).await, [""; 0], "nothing is known of empty tables");
    let last = kindex_store::open(&backend.address, REGISTRY, &patient()).expect("an address");
    write(&*last, 1).await;
    assert_eq!(known(&backend).await, [""; 0], "one write does not matter");
    last.close().await;
    assert_eq!(known(&backend).await, ["widget", "widget_labels"]);
}
