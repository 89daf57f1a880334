//! Whether an API server can answer: what `/readyz` says of one that runs alone.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kindex_api::operations::Operations;
use kindex_commands::database::OpenedStorage;

use crate::health::Health;

/// How often cluster and database are asked whether they answer.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Whether the server can answer, as it was found a moment ago.
pub(super) struct Readiness {
    reasons: RwLock<Vec<String>>,
    storage: OpenedStorage,
}

impl Readiness {
    /// Not ready until both were asked.
    pub(super) fn of(storage: &OpenedStorage) -> Self {
        Self {
            reasons: RwLock::new(vec!["cluster and database were not asked yet".to_owned()]),
            storage: storage.clone(),
        }
    }

    /// Asks cluster and database from time to time.
    pub(super) async fn follow(self: Arc<Self>, operations: Arc<Operations>) {
        loop {
            let found = operations.not_ready().await;
            *self.reasons.write().unwrap_or_else(PoisonError::into_inner) = found;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }
}

impl Health for Readiness {
    fn not_ready(&self) -> Vec<String> {
        let stalled = match &self.storage {
            OpenedStorage::On(store) => store.calls().stalled(),
            OpenedStorage::Off(_) => None,
        };
        let found = self.reasons.read().unwrap_or_else(PoisonError::into_inner);
        let stalled = stalled.map(|stalled| stalled.to_string());
        stalled.into_iter().chain(found.iter().cloned()).collect()
    }

    fn notes(&self) -> Vec<String> {
        match &self.storage {
            OpenedStorage::On(_) => Vec::new(),
            OpenedStorage::Off(reason) => vec![format!("metadata storage is off: {reason}")],
        }
    }
}
