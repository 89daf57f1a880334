//! Sweeps over holders of which one is restored between two reads.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use axum::Router;
use kindex_model::kind::Registry;
use kindex_model::object::{Object as Text, ResourceVersion};
use kindex_model::reference::OnDelete;
use kube::Client;

use super::*;
use crate::archive::{ArchiveError, HolderPosition, Left, Page};
use crate::fixture::{GROUP, key};
use crate::kinds::Kinds;
use crate::object::{Edge, KindName};

const SCOPES: [HolderScope; 3] = [HolderScope::Rows, HolderScope::Archived, HolderScope::All];

/// An archive in which the rows on an object are these, one answer after the other.
#[derive(Default)]
struct Rows {
    answers: Mutex<VecDeque<Vec<Holder>>>,
    /// What names the object.
    naming: Vec<Holder>,
}

impl Rows {
    fn of(answers: impl IntoIterator<Item = Vec<Holder>>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        }
    }

    fn unread(&self) -> usize {
        self.answers.lock().expect("nobody panics").len()
    }
}

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
            return Ok(Page {
                holders: self.naming.clone(),
                next: None,
            });
        }
        let mut answers = self.answers.lock().expect("nobody panics");
        Ok(Page {
            holders: answers.pop_front().expect("they are read no more often"),
            next: (scope != HolderScope::Rows).then_some(HolderPosition::Naming(0, None)),
        })
    }

    async fn keep(&self, _: &Seen, _: &[ReferenceName], _: Timestamp) -> Result<Vec<HolderState>, ArchiveError> {
        unasked()
    }

    async fn hold(&self, _: &Key, _: &ReferenceName, _: Timestamp) -> Result<PlacementOutcome, ArchiveError> {
        unasked()
    }

    async fn has_reference(&self, _: &Key, _: &ReferenceName) -> Result<bool, ArchiveError> {
        unasked()
    }

    async fn names(&self, _: &Object, _: &Key) -> Result<Option<bool>, ArchiveError> {
        unasked()
    }

    async fn left(&self, _: &Object, _: &[ReferenceName]) -> Result<Left, ArchiveError> {
        unasked()
    }

    async fn detach(&self, _: &Holder, _: &str, _: Timestamp) -> Result<bool, ArchiveError> {
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
        // Nobody waits for the object.
        Ok(Vec::new())
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

/// A holder that has a row since it was restored.
fn restored() -> Holder {
    Holder {
        key: Some(key("Cluster", "h")),
        uid: "new".to_owned(),
        reference: ReferenceName::new("Cluster", GROUP, "new").ok(),
        version: None,
        edges: Vec::new(),
    }
}

/// What a sweep finds for the network `n`, which has begun to be deleted.
async fn sweep(archive: &Rows, scope: HolderScope) -> Swept {
    let client = Client::new(Router::<()>::new(), "default");
    let cluster = Cluster::new(client, Kinds::of(&Registry::EMPTY));
    let holders = HolderSweep {
        target: Seen {
            key: key("Network", "n"),
            uid: "n".to_owned(),
        },
        phase: Some(Phase::Deleting),
        scope,
        follower: None,
    };
    let swept = holders.sweep(&cluster, archive, Timestamp::UNIX_EPOCH).await;
    swept.expect("readable").expect("an answer")
}

fn left(plain: &[Holder], owned: &[Holder], goes_on: bool) -> Swept {
    let names = |holders: &[Holder]| holders.iter().map(ToString::to_string).collect();
    Swept {
        phase: Some(Phase::Deleting),
        archived: Archived::Remaining {
            plain: names(plain),
            owned: names(owned),
        },
        goes_on,
        refused: None,
    }
}

/// As if an object were free because its only holder had no row yet when these were read, and was not archived any more
/// when what names the object was read. Or as if a row that was missed once held it for ever.
#[tokio::test]
async fn a_holder_that_is_restored_between_two_reads_of_a_sweep_is_left() {
    for scope in SCOPES {
        // It is missed, then met, and then somebody has released its row.
        let sweeps = [
            (vec![Vec::new(), vec![restored()]], vec![restored()], true),
            (vec![vec![restored()]], vec![restored()], false),
            (vec![Vec::new(), Vec::new()], Vec::new(), false),
        ];
        for (rows, plain, goes_on) in sweeps {
            let archive = Rows::of(rows);
            assert_eq!(sweep(&archive, scope).await, left(&plain, &[], goes_on), "{scope:?}");
            assert_eq!(archive.unread(), 0, "{scope:?}");
        }
    }
}

/// As if what an object owns hid whoever else holds it: the object would drain, and delete what it owns, too early.
#[tokio::test]
async fn a_holder_that_is_missed_is_left_beside_what_the_object_owns() {
    let part = Holder {
        key: Some(key("Cluster", "part")),
        uid: "part".to_owned(),
        reference: None,
        version: Some(ResourceVersion(7)),
        edges: vec![Edge {
            reference: "network",
            target: key("Network", "n"),
            owned: true,
            on_delete: OnDelete::Block,
        }],
    };
    for scope in [HolderScope::Archived, HolderScope::All] {
        let archive = Rows {
            naming: vec![part.clone()],
            ..Rows::of([Vec::new(), vec![restored()]])
        };
        let expected = left(&[restored()], std::slice::from_ref(&part), true);
        assert_eq!(sweep(&archive, scope).await, expected, "{scope:?}");
    }
}
