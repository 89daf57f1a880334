//! Where an object is found: in the cluster, where its references are finalizers, or archived, where they are rows.

use kindex_model::object::Uid;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Stored;

use super::answer::{State, Target};
use super::archived::ArchivedObject;
use super::decide::{Change, Presence, Seen};
use super::object::LiveObject;
use crate::operations::cluster::Call;
use crate::operations::{Backends, Caller, ObjectKey, Refusal};

/// Where an object is.
pub(super) enum Location {
    /// In the cluster.
    Cluster(LiveObject),
    /// Archived: SQL has it, and the cluster does not.
    Sql(Stored),
}

/// Which object it is, and its state.
pub(in super::super) struct ObjectState {
    pub(in super::super) uid: Uid,
    pub(in super::super) state: State,
}

/// An object where it is, with its references.
pub(super) enum FoundObject {
    /// Its references are finalizers.
    Cluster(LiveObject),
    /// They are rows.
    Sql(ArchivedObject),
}

impl FoundObject {
    /// What is said of it.
    pub(super) fn shown(&self, key: &ObjectKey<'_>) -> Target {
        match self {
            Self::Cluster(found) => found.shown(key),
            Self::Sql(found) => found.shown(key),
        }
    }

    pub(super) fn references(&self) -> Vec<ReferenceName> {
        match self {
            Self::Cluster(found) => found.references(),
            Self::Sql(found) => found.references.clone(),
        }
    }

    pub(super) fn seen(&self, key: &ObjectKey<'_>, reference: &ReferenceName) -> Seen {
        match self {
            Self::Cluster(found) => found.seen(key.resource.kind, reference),
            Self::Sql(found) => found.seen(key, reference),
        }
    }
}

impl Backends {
    /// The references on an object that was found. One in the cluster has rows of archived holders, too.
    pub(super) async fn references_on(
        &self,
        key: &ObjectKey<'_>,
        found: &FoundObject,
    ) -> Result<Vec<ReferenceName>, Refusal> {
        let mut references = found.references();
        if let FoundObject::Cluster(live) = found {
            let stored = self.stored_references(key.resource.kind, live.uid()).await?;
            let own = references.clone();
            references.extend(stored.into_iter().filter(|name| !own.contains(name)));
        }
        Ok(references)
    }

    /// What a decision depends on. Of a live object, a row counts as well; as long as it takes references, it gets one
    /// of its own for the cluster.
    pub(super) async fn seen(
        &self,
        key: &ObjectKey<'_>,
        found: Option<&FoundObject>,
        reference: &ReferenceName,
        change: Change,
    ) -> Result<Seen, Refusal> {
        let absent = Seen {
            presence: Presence::Absent,
            held: false,
            itself: false,
            is_as_read: true,
        };
        let mut seen = found.map_or(absent, |found| found.seen(key, reference));
        if let (Some(FoundObject::Cluster(live)), false) = (found, seen.held)
            && (change == Change::Delete || seen.presence == Presence::Leaving)
        {
            let stored = self.stored_references(key.resource.kind, live.uid()).await?;
            seen.held = stored.contains(reference);
        }
        Ok(seen)
    }

    /// The object with its references, wherever it is.
    pub(super) async fn look(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Option<FoundObject>, Refusal> {
        Ok(match self.location(caller, key).await? {
            Some(Location::Cluster(found)) => Some(FoundObject::Cluster(found)),
            Some(Location::Sql(stored)) => {
                let archived = self.with_references(key.resource.kind, &stored).await?;
                Some(FoundObject::Sql(archived))
            }
            None => None,
        })
    }

    /// The state of the object, wherever it is. Reads none of the references on it, of which an archived object may
    /// have very many.
    pub(in super::super) async fn object_state(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
    ) -> Result<Option<ObjectState>, Refusal> {
        match self.location(caller, key).await? {
            Some(found) => self.object_state_at(key, &found).await.map(Some),
            None => Ok(None),
        }
    }

    /// The state of an object that was found there.
    pub(super) async fn object_state_at(&self, key: &ObjectKey<'_>, found: &Location) -> Result<ObjectState, Refusal> {
        Ok(match found {
            Location::Cluster(found) => ObjectState {
                uid: Uid::from(found.uid()),
                state: found.state(),
            },
            Location::Sql(stored) => {
                let (state, _) = self.archived_state(key.resource.kind, stored).await?;
                ObjectState {
                    uid: stored.object.metadata.uid.clone(),
                    state,
                }
            }
        })
    }

    /// Where the object is. One that the cluster deletes on its way to the archive is archived: its references were
    /// stored with its row, and nobody has deleted it.
    pub(super) async fn location(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Option<Location>, Refusal> {
        match self.live(caller, key).await? {
            Some(found) if !found.is_tombstone() => Ok(Some(Location::Cluster(found))),
            Some(found) => {
                let archived = self.find_archived(key).await?;
                let same = archived.filter(|archived| *archived.object.metadata.uid.0 == *found.uid());
                Ok(Some(same.map_or(Location::Cluster(found), Location::Sql)))
            }
            None => Ok(self.find_archived_together(key).await?.map(Location::Sql)),
        }
    }

    /// The object as the cluster has it. The caller's right to it has been checked.
    async fn live(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Option<LiveObject>, Refusal> {
        let call = Call::get(key.path(), Vec::new());
        match self
            .upstream_of(key.resource.kind)?
            .call(&caller.on_behalf(), call)
            .await
        {
            Ok(answer) => LiveObject::read(&answer.text, key.resource.kind, &self.registry.platform).map(Some),
            Err(refusal) if refusal.is_of_absent_object() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}
