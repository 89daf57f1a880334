//! Sweeps over holders of which one is restored between two reads.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use axum::Router;
use kindex_model::kind::Registry;
use kindex_model::object::Object as Text;
use kube::Client;

use super::*;
use crate::archive::{ArchiveError, HolderPosition, Page};
use crate::fixture::{GROUP, key};
use crate::kinds::Kinds;
use crate::object::KindName;

const SCOPES: [HolderScope; 3] = [HolderScope::Rows, HolderScope::Archived, HolderScope::All];

/// An archive in which the rows on an object are these, one answer after the other. Nothing else names the object.
struct Rows(Mutex<VecDeque<Vec<Holder>>>);

fn unasked<T>() -> Result<T, ArchiveError> {
    Err(ArchiveError::wrong("a sweep does not ask for this"))
}

#[async_trait]
impl Archive for Rows {
    async fn holders(
        &self,
        _: &Seen,
        scope: HolderScope,
        after: Option<&HolderPosition>,
    ) -> Result<Page, ArchiveError> {
        if after.is_some() {
            return Ok(Page::default());
        }
        let mut rows = self.0.lock().expect("nobody panics");
        Ok(Page {
            holders: rows.pop_front().expect("they are read no more often"),
            next: (scope != HolderScope::Rows).then_some(HolderPosition::Naming(0, None)),
        })
    }

    async fn keep(&self, _: &Seen, _: &[ReferenceName], _: Timestamp) -> Result<Vec<HolderState>, ArchiveError> {
        unasked()
    }

    async fn hold(&self, _: &Key, _: &ReferenceName, _: Timestamp) -> Result<Held, ArchiveError> {
        unasked()
    }

    async fn bears(&self, _: &Key, _: &ReferenceName) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn names(&self, _: &Object, _: &Key) -> Result<Option<bool>, ArchiveError> {
        unasked()
    }

    async fn deleted(&self, _: &Object, _: &[ReferenceName]) -> Result<Vec<ReferenceName>, ArchiveError> {
        unasked()
    }

    async fn delete(&self, _: &Seen, _: &[&Holder], _: Timestamp) -> Result<Vec<String>, ArchiveError> {
        unasked()
    }

    async fn release(&self, _: &Seen, _: &ReferenceName) -> Result<(), ArchiveError> {
        unasked()
    }

    async fn tombstones(&self, _: &KindName, _: &str) -> Result<Vec<String>, ArchiveError> {
        unasked()
    }

    async fn tombstone(&self, _: &KindName, _: &str) -> Result<Option<Object>, ArchiveError> {
        unasked()
    }

    async fn tombstone_text(&self, _: &KindName, _: &str) -> Result<Option<Text>, ArchiveError> {
        unasked()
    }

    async fn waiting_for(&self, _: &Seen) -> Result<Vec<Seen>, ArchiveError> {
        unasked()
    }

    async fn has_its_name(&self, _: &Seen) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn has_former(&self, _: &Object) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn holds(&self, _: &str) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn record(&self, _: &Object, _: Phase, _: Timestamp) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn end(&self, _: &Object, _: Timestamp) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn release_all(&self, _: &ReferenceName, _: Timestamp) -> Result<(), ArchiveError> {
        unasked()
    }
}

/// As if an object were free because its only holder had no row yet when these were read, and was not archived any more
/// when it was read what names the object. Or as if a row that was missed once held it for ever.
#[tokio::test]
async fn a_holder_that_is_restored_between_two_reads_of_a_sweep_is_left() {
    let restored = || Holder {
        key: Some(key("Cluster", "h")),
        uid: "new".to_owned(),
        reference: ReferenceName::new("Cluster", GROUP, "new").ok(),
        version: None,
        edges: Vec::new(),
    };
    let client = Client::new(Router::<()>::new(), "default");
    let cluster = Cluster::new(client, Kinds::of(&Registry::EMPTY));
    for scope in SCOPES {
        // It is missed, then met, and then somebody has released its row.
        let sweeps = [
            (vec![Vec::new(), vec![restored()]], true, true),
            (vec![vec![restored()]], true, false),
            (vec![Vec::new(), Vec::new()], false, false),
        ];
        for (rows, is_left, goes_on) in sweeps {
            let archive = Rows(Mutex::new(VecDeque::from(rows)));
            let holders = HolderSweep {
                target: Seen {
                    key: key("Network", "n"),
                    uid: "n".to_owned(),
                },
                phase: Some(Phase::Deleting),
                scope,
                follower: None,
            };
            let swept = holders.sweep(&cluster, &archive, Timestamp::UNIX_EPOCH).await;
            let expected = Swept {
                phase: Some(Phase::Deleting),
                archived: Archived::Remaining {
                    plain: is_left.then(|| restored().to_string()).into_iter().collect(),
                    owned: Vec::new(),
                },
                goes_on,
                refused: None,
            };
            assert_eq!(swept.expect("an answer"), Some(expected), "{scope:?}");
            assert!(archive.0.lock().expect("nobody panics").is_empty(), "{scope:?}");
        }
    }
}
