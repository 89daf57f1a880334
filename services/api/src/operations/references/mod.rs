//! References on objects: by them an object, the *target*, stays as long as another one, the *holder*, uses it. On a
//! live object a reference is a finalizer, and a row where its holder is archived.

mod answer;

mod decide;

mod parse;

mod object;

mod archived;

mod found;

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

pub(super) mod on_named;

mod checks;

mod live;

#[cfg(test)]
mod race;

use kindex_kube_api::request::Verb;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;

use super::rights::RequiredPermission;
use super::{Answer, Caller, ObjectKey, Operations, Reason, Refusal, refusal};

pub use answer::{Holder, ListedReference, References, State, Target};
pub(super) use checks::{may_name_in, waiting_paths};
use decide::{Change, Decision, RefusalReason, decide};
use found::{FoundObject, Location, ObjectState};
use holder::{allow_to_speak, held};
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
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Get, key))
            .await?;
        let found = self
            .backends
            .look(caller, key)
            .await?
            .ok_or_else(|| Refusal::not_found(key))?;
        let mut references = self.backends.references_on(key, &found).await?;
        if let Some(wanted) = &wanted {
            references.retain(|known| known == wanted);
            if references.is_empty() {
                let message = format!("{} {:?} has no reference {wanted}", key.resource.kind.plural, key.name);
                return Err(Refusal::not_found(key).with_message(message));
            }
        }
        Ok(References {
            target: found.shown(key),
            references: held(&self.backends, &self.rights, caller, references).await?,
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
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Get, key))
            .await?;
        let found = self.backends.location(caller, key).await?;
        let found = found.ok_or_else(|| Refusal::not_found(key))?;
        let ObjectState { uid, state } = self.backends.object_state_at(key, &found).await?;
        let (target, placed) = match &found {
            Location::Cluster(found) => (found.shown(key), found.references()),
            Location::Sql(_) => (Target::archived(key, &uid.0, state), Vec::new()),
        };
        let references = self.backends.first_of(key.resource.kind, &uid, placed, limit).await?;
        Ok(References {
            target,
            references: held(&self.backends, &self.rights, caller, references).await?,
        })
    }

    /// The reference, if the caller may change it on the object.
    async fn allowed(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: ReferenceName,
    ) -> Result<ReferenceName, Refusal> {
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Get, key))
            .await?;
        allow_to_speak(&self.backends, &self.rights, caller, &reference).await?;
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
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: others change it all the time; try again",
            key.resource.kind.plural, key.name
        );
        Err(Refusal::try_again(Reason::Conflict, message))
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
        let found = self.backends.look(caller, key).await?;
        let mut seen = self.backends.seen(key, found.as_ref(), reference, change).await?;
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
            (Some(found), _) => self.apply_decision(caller, key, found, reference, decision).await?,
            (None, _) => true,
        };
        if !is_done {
            return Ok(None);
        }
        self.changed(caller, key, found.as_ref(), reference, change)
            .await
            .map(Some)
    }

    /// Carries out a decision where the object is. Whether it is done; if not, the object has moved or changed, and is
    /// looked at again.
    async fn apply_decision(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        found: &FoundObject,
        reference: &ReferenceName,
        decision: Decision,
    ) -> Result<bool, Refusal> {
        let backends = &self.backends;
        match found {
            FoundObject::Cluster(found) => backends.change_live(caller, key, found, reference, decision).await,
            FoundObject::Sql(found) => {
                let user = self.rights.known(caller);
                backends.change_archived(&user, key, found, reference, decision).await
            }
        }
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
            references: held(&self.backends, &self.rights, caller, references).await?,
        })
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
    let details = refusal::group_resource(key.resource.kind).details(key.name);
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
