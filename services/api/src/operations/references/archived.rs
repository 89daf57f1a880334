//! References on archived objects: rows, which the store changes under the lock of the object's own row.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Stored;
use kindex_store::{DirectError, StoreError};

use super::answer::{State, Target};
use super::decide::{Decision, Presence, Seen, is_of};
use crate::operations::{Backends, ObjectKey, Refusal, Storage, refusal};

/// An archived object with its references.
pub(in super::super) struct ArchivedObject {
    pub(in super::super) uid: Uid,
    pub(in super::super) references: Vec<ReferenceName>,
    pub(in super::super) state: State,
    /// Since when: its archiving, or its deletion.
    pub(in super::super) since: Option<Timestamp>,
}

impl ArchivedObject {
    /// What is said of it.
    pub(in super::super) fn shown(&self, key: &ObjectKey<'_>) -> Target {
        Target::archived(key, &self.uid.0, self.state)
    }

    /// What a decision on one reference depends on.
    pub(in super::super) fn seen(&self, key: &ObjectKey<'_>, reference: &ReferenceName) -> Seen {
        Seen {
            presence: match self.state {
                State::Deleting => Presence::Leaving,
                State::Live | State::Archived | State::Deleted | State::Unknown => Presence::Staying,
            },
            held: self.references.contains(reference),
            itself: is_of(reference, key.resource.kind, &self.uid.0),
            is_as_read: true,
        }
    }
}

impl Backends {
    /// An archived object with what the store keeps of its references.
    pub(in super::super) async fn with_references(
        &self,
        kind: &'static Kind,
        stored: &Stored,
    ) -> Result<ArchivedObject, Refusal> {
        let store = self.store()?;
        let uid = stored.object.metadata.uid.clone();
        let uids = [uid.clone()];
        let (references, state) = tokio::join!(store.references(kind, &uids), self.archived_state(kind, stored));
        let references = references.map_err(|error| refusal::of_query(&error))?;
        let (state, since) = state?;
        Ok(ArchivedObject {
            uid,
            references: references
                .iter()
                .filter_map(|reference| reference.name.parse().ok())
                .collect(),
            state,
            since,
        })
    }

    /// How far an archived object is, and since when.
    pub(in super::super) async fn archived_state(
        &self,
        kind: &'static Kind,
        stored: &Stored,
    ) -> Result<(State, Option<Timestamp>), Refusal> {
        let uids = [stored.object.metadata.uid.clone()];
        let tombstones = self.store()?.tombstones(kind, &uids).await;
        let tombstones = tombstones.map_err(|error| refusal::of_query(&error))?;
        Ok(match tombstones.first() {
            Some(tombstone) => (State::Deleting, Some(tombstone.requested)),
            None => (State::Archived, stored.evicted_time),
        })
    }

    /// The rows on an object, also on one in the cluster: those of archived holders.
    pub(in super::super) async fn stored_references(
        &self,
        kind: &'static Kind,
        uid: &str,
    ) -> Result<Vec<ReferenceName>, Refusal> {
        let Storage::On { store, .. } = &self.storage else {
            return Ok(Vec::new());
        };
        let rows = store.references(kind, &[Uid::from(uid)]).await;
        let rows = rows.map_err(|error| refusal::of_query(&error))?;
        Ok(rows.iter().filter_map(|row| row.name.parse().ok()).collect())
    }

    /// The first references on an object that has these itself: so many at most, of which no more rows are read.
    pub(in super::super) async fn first_of(
        &self,
        kind: &'static Kind,
        uid: &Uid,
        mut references: Vec<ReferenceName>,
        limit: u32,
    ) -> Result<Vec<ReferenceName>, Refusal> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        // Some of these rows may be of references that it has: there are enough all the same.
        if references.len() < most
            && let Storage::On { store, .. } = &self.storage
        {
            let rows = store.first_references(kind, uid, limit).await;
            let rows = rows.map_err(|error| refusal::of_query(&error))?;
            let names = rows.iter().filter_map(|row| row.name.parse::<ReferenceName>().ok());
            let more: Vec<_> = names.filter(|name| !references.contains(name)).collect();
            references.extend(more);
        }
        references.truncate(most);
        Ok(references)
    }

    /// Releases what an eviction may have stored of a live object's references.
    pub(in super::super) async fn release_stored(
        &self,
        key: &ObjectKey<'_>,
        uid: &str,
        reference: &ReferenceName,
    ) -> Result<(), Refusal> {
        let Storage::On { store, .. } = &self.storage else {
            return Ok(());
        };
        let (kind, now) = (key.resource.kind, self.now());
        let uid = Uid::from(uid);
        let released = match self.needs_tombstone(kind) {
            true => store.drop_reference(kind, &uid, reference).await,
            false => store.release_reference(kind, &uid, reference, now).await.map(drop),
        };
        released.map_err(|error| refusal::of_store(key, error))
    }

    /// Carries out a decision of this user. Whether it is done; if not, the object has moved or changed, and is looked
    /// at again.
    pub(in super::super) async fn change_archived(
        &self,
        user: &str,
        key: &ObjectKey<'_>,
        found: &ArchivedObject,
        reference: &ReferenceName,
        decision: Decision,
    ) -> Result<bool, Refusal> {
        let (store, kind, now) = (self.store()?, key.resource.kind, self.now());
        let changed = match decision {
            Decision::Done | Decision::Refuse(_) => return Ok(true),
            Decision::Add => store
                .place_reference(kind, &found.uid, reference, user, now)
                .await
                .map(drop),
            Decision::Remove if self.needs_tombstone(kind) => store.drop_reference(kind, &found.uid, reference).await,
            Decision::Remove => store
                .release_reference(kind, &found.uid, reference, now)
                .await
                .map(drop),
        };
        match changed {
            Ok(()) => {
                // The last reference may have been all that kept it.
                self.feed()?.nudge();
                Ok(true)
            }
            Err(StoreError::Direct { source, .. }) if is_transient(&source) => Ok(false),
            Err(error) => Err(refusal::of_store(key, error)),
        }
    }
}

/// Whether the object is another one than was seen, or somewhere else, so that a second look helps.
fn is_transient(error: &DirectError) -> bool {
    match error {
        DirectError::Missing | DirectError::Deleted(_) | DirectError::Deleting(_) | DirectError::Live => true,
        DirectError::Conflict { .. } | DirectError::Unchangeable { .. } | DirectError::Exhausted(_) => false,
    }
}
