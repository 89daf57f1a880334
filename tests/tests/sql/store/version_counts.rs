//! Counting rows by the version of their objects, on every engine.

use jiff::Timestamp;
use kindex_query::{Life, Revive};
use kindex_store::{RowWrite, VersionRows};

use super::backend::Backend;
use super::widget::{KEEPSAKE, WIDGET, project, widget};

scenarios!(
    rows_are_counted_by_version_and_life,
    the_outermost_rows_show_their_versions_and_no_other,
);

fn row(uid: &str, version: &str, life: Life) -> RowWrite {
    let text = widget(uid, uid, 1).text();
    let old = "\"apiVersion\":\"test.kindex/v1\"";
    assert!(text.contains(old), "{text}");
    let text = text.replace(old, &format!("\"apiVersion\":\"test.kindex/{version}\""));
    RowWrite::Store {
        version: project(&text),
        life,
        revive: Revive::FromAny,
    }
}

async fn rows_are_counted_by_version_and_life(backend: Backend) {
    assert!(backend.store.version_counts(&WIDGET).await.expect("counted").is_empty());
    let rows = [
        ("a", "v1", Life::Live),
        ("b", "v1", Life::Archived),
        ("c", "v1", Life::Archived),
        ("d", "v1", Life::Deleted),
        ("e", "v2", Life::Live),
        ("f", "v1", Life::Archived),
    ];
    let writes: Vec<RowWrite> = rows
        .iter()
        .map(|(uid, version, life)| row(uid, version, *life))
        .collect();
    backend.write_all(&writes, Timestamp::now()).await;
    // Archived before it was deleted: it counts once.
    backend
        .write_all(&[row("f", "v1", Life::Deleted)], Timestamp::now())
        .await;
    let counts = backend.store.version_counts(&WIDGET).await.expect("counted");
    let rows = |live, archived, deleted| VersionRows {
        live,
        archived,
        deleted,
    };
    let expected = [("test.kindex/v1", rows(1, 2, 2)), ("test.kindex/v2", rows(1, 0, 0))];
    assert_eq!(
        counts,
        expected.map(|(version, rows)| (version.to_owned(), rows)).into()
    );
    assert_eq!(backend.store.history_entries(&WIDGET).await.expect("counted"), 0);
    assert_eq!(backend.store.history_entries(&KEEPSAKE).await.expect("counted"), 0);
}

async fn the_outermost_rows_show_their_versions_and_no_other(backend: Backend) {
    assert_eq!(backend.store.outermost_versions(&WIDGET).await.expect("read"), [""; 0]);
    let write = async |from: usize, to: usize, version: &str| {
        let rows: Vec<RowWrite> = (from..to)
            .map(|at| row(&format!("u{at:05}"), version, Life::Live))
            .collect();
        for part in rows.chunks(500) {
            backend.write_all(part, Timestamp::now()).await;
        }
    };
    write(0, 1_000, "v1").await;
    write(1_000, 1_001, "v2").await;
    write(1_001, 2_001, "v3").await;
    let mut versions = backend.store.outermost_versions(&WIDGET).await.expect("read");
    versions.sort();
    assert_eq!(versions, ["test.kindex/v1", "test.kindex/v3"]);
    let counts = backend.store.version_counts(&WIDGET).await.expect("counted");
    assert_eq!(counts["test.kindex/v2"].total(), 1);
}
