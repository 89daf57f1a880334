//! An adoption that is killed between any two of its steps, with a statement on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kindex_generated::registry;
use kindex_store::progress::Progress;
use kindex_store::{AdoptOptions, MigrationState};
use tokio::sync::Notify;

use super::fixture::{Reference, STATES};
use crate::schema::server::{Product, on_servers};

on_servers!(a_run_that_is_killed_at_every_step_is_gone_on_with);

/// Says when the second step begins.
#[derive(Default)]
struct UntilTheSecond {
    begun: AtomicUsize,
    reached: Notify,
}

impl Progress for UntilTheSecond {
    fn begin(&self, _: &str, _: Option<u64>) {
        if self.begun.fetch_add(1, Ordering::Relaxed) == 1 {
            self.reached.notify_one();
        }
    }

    fn advance(&self, _: u64) {}

    fn note(&self, _: &str) {}

    fn end(&self) {}
}

async fn a_run_that_is_killed_at_every_step_is_gone_on_with(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    let mut runs = 0;
    loop {
        runs += 1;
        assert!(runs < 100, "every run comes one step further");
        let store = reference.store();
        let progress = Arc::new(UntilTheSecond::default());
        let options = AdoptOptions::default();
        let ended = tokio::select! {
            biased;
            () = progress.reached.notified() => false,
            adopted = store.adopt(&options, progress.as_ref()) => {
                adopted.unwrap_or_else(|error| panic!("run {runs}: {error}"));
                true
            }
        };
        if ended {
            break;
        }
        assert_eq!(store.migration_state().await.expect("read"), MigrationState::Adopting);
        let refused = store.prepare().await.expect_err("nobody writes meanwhile");
        assert!(refused.to_string().contains("--adopt"), "{refused}");
        let refused = store.migrate(&Default::default(), progress.as_ref()).await;
        let refused = refused.expect_err("it is not a migration that is missing").to_string();
        assert!(refused.contains("--adopt"), "{refused}");
    }
    assert!(runs > 13, "it was killed {runs} times");
    let store = reference.store();
    assert_eq!(store.migration_state().await.expect("read"), MigrationState::Current);
    for kind in registry().kinds {
        let counts = store.count(kind).await.expect("counted");
        assert_eq!(
            (counts.live, counts.archived, counts.deleted),
            (1, 1, 1),
            "{}",
            kind.name
        );
    }
    let labels = reference.rows("SELECT COUNT(*) FROM model_labels").await;
    assert_eq!(labels, [[Some((3 * STATES.len()).to_string())]]);
}
