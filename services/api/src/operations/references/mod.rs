//! References on objects: by them an object, the *target*, stays as long as another one, the *holder*, uses it. On a
//! live object a reference is a finalizer, and a row where its holder is archived.

mod answer;

mod decide;

mod parse;

mod object;

mod archived;

mod holder;

mod tree;

mod forecast;

pub(super) mod named_object;

mod naming;

mod silent;

mod question;

mod peers;

mod look;

mod resolve;

pub(super) mod fields;

pub(super) mod picked;

pub(super) mod on_named;

mod checks;

mod live;

#[cfg(test)]
mod race;

use kindex_kube_api::request::Verb;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Stored;

use super::cluster::Call;
use super::rights::RequiredPermission;
use super::{Answer, Caller, ObjectKey, Operations, Reason, Refusal, refusal};

pub use answer::{Held, Holder, References, State, Target};
use archived::ArchivedObject;
pub(super) use checks::{may_name_in, waiting_paths};
use decide::{Change, Decision, RefusalReason, Seen, Standing, decide};
pub use named_object::NamedObject;
pub(super) use object::{LiveObject, references_among};
use parse::{named, named_in_lower_case};
pub use peers::Peers;
pub use question::Question;
pub use tree::{Bounds, Field, NamingField, Node};

/// How often a request is decided anew because somebody else was faster.
pub(super) const TRIES: usize = 16;

impl Operations {
    /// Puts a reference on an object, for its holder to use the object from then on.
    ///
    /// # Guarantees
    /// Once this has succeeded, the object does not go before the reference is released.
    ///
    /// # Errors
    /// 400 where the uid of the holder is not in lower case, 404 where there is no object, 409 where it is being
    /// deleted and does not have the reference, 422 where it would hold itself, 403 where the caller may not speak for
    /// the holder.
    pub async fn put_reference(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &str,
    ) -> Result<References, Refusal> {
        let reference = self.allowed(caller, key, named_in_lower_case(reference)?).await?;
        self.change_reference(caller, key, &reference, Change::Put, None).await
    }

    /// Releases a reference, once its holder uses the object no more. Success as well where the object or the reference
    /// is not there. With a version, it loses the reference only in that version; an archived one has none.
    ///
    /// # Errors
    /// 403 where the caller may not speak for the holder, 409 where the object has another version.
    pub async fn delete_reference(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &str,
        at: Option<ResourceVersion>,
    ) -> Result<References, Refusal> {
        let reference = self.allowed(caller, key, named(reference)?).await?;
        self.change_reference(caller, key, &reference, Change::Delete, at).await
    }

    /// The references on an object; one of them where it is named.
    ///
    /// # Errors
    /// 404 where there is no object, or it does not have the reference that is named.
    pub async fn references(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: Option<&str>,
    ) -> Result<References, Refusal> {
        let wanted = reference.map(named).transpose()?;
        self.allow(caller, RequiredPermission::at(Verb::Get, key)).await?;
        let found = self.look(caller, key).await?.ok_or_else(|| Refusal::not_found(key))?;
        let mut references = self.references_on(key, &found).await?;
        if let Some(wanted) = &wanted {
            references.retain(|known| known == wanted);
            if references.is_empty() {
                return Err(Refusal {
                    message: format!("{} {:?} has no reference {wanted}", key.resource.kind.plural, key.name),
                    ..Refusal::not_found(key)
                });
            }
        }
        Ok(References {
            target: found.shown(key),
            references: self.held(caller, references).await?,
        })
    }

    /// At most so many of the references on an object, the first ones, and nothing is read of the others. With a limit
    /// of 0, the answer says how far the object is.
    ///
    /// # Errors
    /// 404 where there is no object.
    pub async fn first_references(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        limit: u32,
    ) -> Result<References, Refusal> {
        self.allow(caller, RequiredPermission::at(Verb::Get, key)).await?;
        let found = self.location(caller, key).await?;
        let found = found.ok_or_else(|| Refusal::not_found(key))?;
        let ObjectState { uid, state } = self.object_state_at(key, &found).await?;
        let (target, borne) = match &found {
            Location::Cluster(found) => (found.shown(key), found.references()),
            Location::Sql(_) => (Target::archived(key, &uid.0, state), Vec::new()),
        };
        let references = self.first_of(key.resource.kind, &uid, borne, limit).await?;
        Ok(References {
            target,
            references: self.held(caller, references).await?,
        })
    }

    /// The references on an object that was found. One in the cluster has rows of archived holders, too.
    async fn references_on(&self, key: &ObjectKey<'_>, found: &FoundObject) -> Result<Vec<ReferenceName>, Refusal> {
        let mut references = found.references();
        if let FoundObject::Cluster(live) = found {
            let stored = self.stored_references(key.resource.kind, live.uid()).await?;
            let own = references.clone();
            references.extend(stored.into_iter().filter(|name| !own.contains(name)));
        }
        Ok(references)
    }

    /// The reference, if the caller may change it on the object.
    async fn allowed(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: ReferenceName,
    ) -> Result<ReferenceName, Refusal> {
        self.allow(caller, RequiredPermission::at(Verb::Get, key)).await?;
        self.allow_to_speak(caller, &reference).await?;
        Ok(reference)
    }

    async fn change_reference(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &ReferenceName,
        change: Change,
        at: Option<ResourceVersion>,
    ) -> Result<References, Refusal> {
        for _ in 0..TRIES {
            if let Some(done) = self.try_to_change(caller, key, reference, change, at).await? {
                return Ok(done);
            }
        }
        Err(Refusal {
            message: format!(
                "Operation cannot be fulfilled on {} {:?}: others change it all the time; try again",
                key.resource.kind.plural, key.name
            ),
            ..Refusal::try_again(Reason::Conflict, "")
        })
    }

    /// Reads, decides and writes. Nothing where the object changed in between.
    async fn try_to_change(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &ReferenceName,
        change: Change,
        at: Option<ResourceVersion>,
    ) -> Result<Option<References>, Refusal> {
        let found = self.look(caller, key).await?;
        let mut seen = self.seen(key, found.as_ref(), reference, change).await?;
        if let Some(at) = at {
            seen.is_as_read = match &found {
                Some(FoundObject::Cluster(live)) => live.version() == at,
                // It has left the cluster since.
                Some(FoundObject::Sql(_)) => false,
                None => true,
            };
        }
        let decision = decide(change, seen);
        let is_done = match (&found, decision) {
            (_, Decision::Refuse(reason)) => return Err(refused(key, reference, reason)),
            (Some(FoundObject::Cluster(found)), _) => self.change_live(caller, key, found, reference, decision).await?,
            (Some(FoundObject::Sql(found)), _) => self.change_archived(caller, key, found, reference, decision).await?,
            (None, _) => true,
        };
        if !is_done {
            return Ok(None);
        }
        self.changed(caller, key, found.as_ref(), reference, change)
            .await
            .map(Some)
    }

    /// What a decision depends on. Of a live object, a row counts as well; as long as it takes references, it gets one
    /// of its own for the cluster.
    async fn seen(
        &self,
        key: &ObjectKey<'_>,
        found: Option<&FoundObject>,
        reference: &ReferenceName,
        change: Change,
    ) -> Result<Seen, Refusal> {
        let absent = Seen {
            standing: Standing::Absent,
            held: false,
            itself: false,
            is_as_read: true,
        };
        let mut seen = found.map_or(absent, |found| found.seen(key, reference));
        if let (Some(FoundObject::Cluster(live)), false) = (found, seen.held)
            && (change == Change::Delete || seen.standing == Standing::Leaving)
        {
            let stored = self.stored_references(key.resource.kind, live.uid()).await?;
            seen.held = stored.contains(reference);
        }
        Ok(seen)
    }

    /// What is said of a change that is done: the object, and the reference if it has it now.
    async fn changed(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        found: Option<&FoundObject>,
        reference: &ReferenceName,
        change: Change,
    ) -> Result<References, Refusal> {
        let target = match found {
            // What was recorded before this change says nothing of it.
            Some(found) => Target {
                resource_version: String::new(),
                released_reference: String::new(),
                released_references: Vec::new(),
                ..found.shown(key)
            },
            None => Target::of(key, "", None),
        };
        let references = match change {
            Change::Put => vec![reference.clone()],
            Change::Delete => Vec::new(),
        };
        Ok(References {
            target,
            references: self.held(caller, references).await?,
        })
    }

    /// The object with its references, wherever it is.
    async fn look(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Option<FoundObject>, Refusal> {
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
    pub(super) async fn object_state(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
    ) -> Result<Option<ObjectState>, Refusal> {
        match self.location(caller, key).await? {
            Some(found) => self.object_state_at(key, &found).await.map(Some),
            None => Ok(None),
        }
    }

    async fn object_state_at(&self, key: &ObjectKey<'_>, found: &Location) -> Result<ObjectState, Refusal> {
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
    async fn location(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Option<Location>, Refusal> {
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

/// Where an object is.
enum Location {
    /// In the cluster.
    Cluster(LiveObject),
    /// Archived: SQL has it, and the cluster does not.
    Sql(Stored),
}

/// Which object it is, and its state.
pub(super) struct ObjectState {
    pub(super) uid: Uid,
    pub(super) state: State,
}

/// An object where it is, with its references.
enum FoundObject {
    /// Its references are finalizers.
    Cluster(LiveObject),
    /// They are rows.
    Sql(ArchivedObject),
}

impl FoundObject {
    /// What is said of it.
    fn shown(&self, key: &ObjectKey<'_>) -> Target {
        match self {
            Self::Cluster(found) => found.shown(key),
            Self::Sql(found) => found.shown(key),
        }
    }

    fn references(&self) -> Vec<ReferenceName> {
        match self {
            Self::Cluster(found) => found.references(),
            Self::Sql(found) => found.references.clone(),
        }
    }

    fn seen(&self, key: &ObjectKey<'_>, reference: &ReferenceName) -> Seen {
        match self {
            Self::Cluster(found) => found.seen(key.resource.kind, reference),
            Self::Sql(found) => found.seen(key, reference),
        }
    }
}

impl References {
    /// As an answer to whoever asked.
    pub fn into_answer(self) -> Answer {
        self.answer()
    }
}

fn refused(key: &ObjectKey<'_>, reference: &ReferenceName, reason: RefusalReason) -> Refusal {
    let object = format!(
        "{}.{} {:?}",
        key.resource.kind.plural, key.resource.kind.group, key.name
    );
    let details = refusal::named(key.resource.kind).details(key.name);
    match reason {
        RefusalReason::Absent => Refusal::not_found(key),
        RefusalReason::Itself => Refusal::new(
            Reason::Invalid,
            format!("{object} is invalid: {reference} is the object itself, which would never be deleted"),
        )
        .with(details),
        RefusalReason::Leaving => Refusal::conflict(
            key,
            &format!("it is being deleted and takes no new references; {reference} must not use it"),
        ),
        RefusalReason::Changed => Refusal::conflict(key, "it has changed since the version that was read"),
    }
}
