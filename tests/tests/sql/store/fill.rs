//! A migration that fills a column beside programs that write to the same rows.

use std::time::Duration;

use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_store::progress::{NoProgress, Progress};
use kindex_store::{MigrateOptions, PoolConfig};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::backend::Backend;
use super::migrate::{NEW, expect_filled, migrate, newer_program, open, with_rows};
use super::second_connection::SecondConnection;

scenarios!(
    a_fill_never_overwrites_a_row_that_is_newer_than_what_it_read,
    a_fill_goes_on_once_the_writers_of_its_rows_are_done,
);

/// A writer changes a row, and commits once the fill has read the row as it was before and waits for it.
async fn a_fill_never_overwrites_a_row_that_is_newer_than_what_it_read(backend: Backend) {
    if with_rows(&backend, 3).await.is_none() {
        return;
    }
    let new = open(&backend, newer_program(NEW));
    migrate(&new).await.expect("migrated");
    backend.rows("UPDATE widget SET tint = NULL").await;
    let mut writer = writer(&backend).await;
    writer
        .execute("UPDATE widget SET res_version = 99, tint = 'newer' WHERE uid = 'u0002'")
        .await;
    let refill = MigrateOptions {
        refill: true,
        ..MigrateOptions::default()
    };
    let filling = {
        let new = new.clone();
        tokio::spawn(async move { new.migrate(&refill, &NoProgress).await })
    };
    eventually("a fill that waits, or its end", async || {
        new.calls().oldest() > Duration::from_millis(300) || filling.is_finished()
    })
    .await;
    writer.execute("COMMIT").await;
    filling.await.expect("no panic").expect("filled");
    let tints = backend.rows("SELECT tint FROM widget ORDER BY uid").await;
    let tints = tints.expect("not in memory").concat();
    assert_eq!(
        tints,
        [Some("t1"), Some("newer"), Some("t3")].map(|tint| tint.map(str::to_owned))
    );
}

/// Says when the fill has met a writer.
#[derive(Default)]
struct Noted(Notify);

impl Progress for Noted {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn note(&self, note: &str) {
        assert_eq!(note, "waiting for the writers of the table");
        self.0.notify_one();
    }
    fn end(&self) {}
}

/// A writer holds a row for longer than the fill waits for it at a time.
async fn a_fill_goes_on_once_the_writers_of_its_rows_are_done(backend: Backend) {
    if with_rows(&backend, 3).await.is_none() {
        return;
    }
    migrate(&open(&backend, newer_program(NEW))).await.expect("migrated");
    backend.rows("UPDATE widget SET tint = NULL").await;
    let impatient = PoolConfig {
        call_timeout: Duration::from_secs(4),
        ..PoolConfig::default()
    };
    let new = kindex_store::open(&backend.address, newer_program(NEW), &impatient).expect("the address is right");
    let mut writer = writer(&backend).await;
    writer
        .execute("UPDATE widget SET res_version = res_version WHERE uid = 'u0002'")
        .await;
    let refill = MigrateOptions {
        refill: true,
        ..MigrateOptions::default()
    };
    let noted = Noted::default();
    let wait = async {
        timeout(WAIT_MAX, noted.0.notified()).await.expect("the fill meets it");
        writer.execute("COMMIT").await;
    };
    let (filled, ()) = tokio::join!(new.migrate(&refill, &noted), wait);
    let rows: u64 = filled
        .expect("filled")
        .iter()
        .map(|migrated| migrated.rows_filled)
        .sum();
    assert_eq!(rows, 3);
    expect_filled(&backend, 3).await;
}

/// Another program's transaction.
async fn writer(backend: &Backend) -> SecondConnection {
    let writer = SecondConnection::open(backend).await;
    let mut writer = writer.expect("not in memory");
    writer.begin().await;
    writer
}
