//! A field that names another object from now on: the new target gets the reference before that is written, on
//! condition of the version that was read, and the old one loses its own after it. Who is being deleted takes no part
//! in it.
//!
//! Of a live holder, `kindex deletion` releases the old target, as of every field that changes; before, it writes to
//! the holder. So whoever is about to let that holder name the same target again finds another version, and tries
//! anew.
//!
//! Of an archived holder, whoever moves it releases the old target. Two moves at once may take that for each other's
//! new one. So whoever has placed or released a reference reads the holder again, and is through with a target once
//! what was written last is still what the holder names.

use kindex_kube_api::patch::{PatchType, merge};
use kindex_model::reference::Reference;
use kindex_model::reference_name::ReferenceName;
use kindex_model::settling::{Naming, SettlingStep, settling_step};
use serde::Serialize;
use serde_json::Value;

use super::get::GetOptions;
use super::references::TRIES;
use super::references::fields::{choose, patch};
use super::references::named_object::named;
use super::references::on_named::{FailurePolicy, not_there};
use super::{Caller, NamedObject, ObjectKey, Operations, Part, Reason, Refusal, State, WriteOptions};

/// What a move has done, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    /// The object whose field names another one now: `cluster/default/a`.
    pub holder: String,
    /// How far that object is.
    pub state: State,
    /// The reference of its kind.
    pub reference: String,
    /// The field.
    pub path: String,
    /// What the field named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it names now.
    pub to: String,
    /// Whether it named that before, so that the field was not written.
    pub unchanged: bool,
}

/// What is known of the holder of a move.
struct Holder {
    text: Value,
    state: State,
    name: Option<ReferenceName>,
}

impl Operations {
    /// Lets a field of an object name another one: by one write, on condition of the version that was read.
    ///
    /// # Guarantees
    /// The new target has the reference before the field names it, and the old one until then at least.
    ///
    /// # Errors
    /// 400 where it is not clear which field is meant, or it cannot name the target; 404 where one of the objects is
    /// not there; 409 where one of them is being deleted; 503 where the service of one of them does not answer; what
    /// the cluster says to the change of the field, before anything was written.
    pub async fn move_holder(
        &self,
        caller: &Caller,
        holder: &ObjectKey<'_>,
        reference: Option<&str>,
        to: &NamedObject,
        dry_run: bool,
    ) -> Result<Moved, Refusal> {
        let reference = choose(holder.resource.kind, reference, to)?;
        let mut placed = None;
        let mut tries = 0..TRIES;
        let refusal = loop {
            if tries.next().is_none() {
                break Refusal::conflict(holder, "others change it all the time; try again");
            }
            let tried = self.try_to_move(caller, holder, reference, to, dry_run, &mut placed);
            match tried.await {
                Ok(Some(moved)) => return Ok(moved),
                Ok(None) => {}
                Err(refusal) => break refusal,
            }
        };
        if let Some(name) = &placed {
            self.take_back(caller, holder, to, name).await;
        }
        Err(refusal)
    }

    /// Takes a reference off again that no field backs. Of a live holder, `kindex deletion` does so where the object is
    /// of its own service.
    async fn take_back(&self, caller: &Caller, key: &ObjectKey<'_>, to: &NamedObject, name: &ReferenceName) {
        let holder = match self.holder_of_move(caller, key).await {
            Ok(holder) => Some(holder).filter(|holder| holder.name.as_ref() == Some(name)),
            Err(refusal) if refusal.is_of_absent_object() => None,
            // It may have been written all the same.
            Err(error) => {
                tracing::warn!(%error, reference = %name, object = %to, "A move may leave a reference behind");
                return;
            }
        };
        let is_followed = |holder: &Holder| holder.state == State::Live && to.key().is_some();
        let stays = |holder: &Holder| is_followed(holder) || self.is_backed(key, &holder.text, to);
        if holder.as_ref().is_some_and(stays) {
            return;
        }
        if let Err(error) = self.settle(caller, key, to, name).await {
            tracing::warn!(%error, reference = %name, object = %to, "A move leaves a reference behind");
        }
    }

    /// Whether a reference of the holder that delays deletions names the object.
    fn is_backed(&self, holder: &ObjectKey<'_>, text: &Value, object: &NamedObject) -> bool {
        let kind = holder.resource.kind;
        let mut references = kind.references.iter().filter(|reference| reference.waits());
        references.any(|reference| {
            let named = named(self.registry(), kind, reference, text);
            named.is_some_and(|named| named.is(object))
        })
    }

    /// Nothing where somebody else was faster.
    async fn try_to_move(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &'static Reference,
        to: &NamedObject,
        dry_run: bool,
        placed: &mut Option<ReferenceName>,
    ) -> Result<Option<Moved>, Refusal> {
        let kind = key.resource.kind;
        let holder = self.holder_of_move(caller, key).await?;
        let from = named(self.registry(), kind, reference, &holder.text);
        let mut moved = Moved {
            holder: NamedObject::of(key).to_string(),
            state: holder.state,
            reference: reference.name.to_owned(),
            path: reference.path.join("."),
            from: from.as_ref().map(ToString::to_string),
            to: to.to_string(),
            unchanged: false,
        };
        if from.as_ref().is_some_and(|from| from.is(to)) {
            moved.unchanged = true;
            // Whoever made this move may have ended before the target was settled.
            if let (false, true, State::Archived, Some(name)) = (dry_run, reference.waits(), holder.state, &holder.name)
            {
                self.place_on(caller, to, name).await?;
                self.settle(caller, key, to, name).await?;
            }
            return Ok(Some(moved));
        }
        if self.named_objects().state_of(caller, to).await?.is_none() {
            return Err(not_there(to));
        }
        let patch = patch(kind, reference, &holder.text, to)?;
        let part = match reference.path {
            ["status", ..] => Part::Status,
            _ => Part::Main,
        };
        // What stands against it is known before the first write.
        let mut new = holder.text.clone();
        merge(&mut new, &patch);
        self.named_objects()
            .refuse_moves_or(caller, key, &holder.text, &new, FailurePolicy::Refuses)
            .await?;
        match self.write_field(caller, key, part, &patch, true).await {
            Err(refusal) if refusal.outcome().is_conflict() => return Ok(None),
            tried => tried?,
        }
        if dry_run {
            return Ok(Some(moved));
        }
        if let (true, Some(name)) = (reference.waits(), &holder.name) {
            // An answer that does not come says nothing.
            *placed = Some(name.clone());
            self.place_on(caller, to, name).await?;
        }
        match self.write_field(caller, key, part, &patch, false).await {
            Err(refusal) if refusal.outcome().is_conflict() => return Ok(None),
            written => written?,
        }
        let was_placed = placed.take().is_some();
        self.settle_archived(caller, key, &holder, from.as_ref(), Some(to).filter(|_| was_placed))
            .await
            .map_err(|refusal| refusal.after(&format!("{} names {to} now", moved.path)))?;
        Ok(Some(moved))
    }

    async fn holder_of_move(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Holder, Refusal> {
        let answer = self.get(caller, key, &GetOptions::default()).await?;
        let text: Value = serde_json::from_slice(&answer.text).map_err(|error| {
            let message = format!("Internal error occurred: the object cannot be read: {error}");
            Refusal::new(Reason::InternalError, message)
        })?;
        let uid = text["metadata"]["uid"].as_str().unwrap_or_default();
        let found = self.backends.object_state(caller, key).await?;
        let found = found.filter(|found| *found.uid.0 == *uid);
        let kind = key.resource.kind;
        Ok(Holder {
            state: found.ok_or_else(|| Refusal::not_found(key))?.state,
            name: ReferenceName::new(kind.name, kind.group, uid).ok(),
            text,
        })
    }

    async fn write_field(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        part: Part,
        patch: &Value,
        dry_run: bool,
    ) -> Result<(), Refusal> {
        let options = WriteOptions {
            dry_run,
            field_manager: Some("kindex-move".to_owned()),
            ..WriteOptions::default()
        };
        let body = patch.to_string().into();
        let written = self.patch(caller, key, part, PatchType::Merge, body, &options).await;
        written.map(drop)
    }

    /// Sees to the references of an archived holder after a move that found it in this state: on the new target, if one
    /// was placed there, and on the old one. Of a live one, `kindex deletion` does that, and the deletion of one
    /// releases what it names by then.
    ///
    /// # Errors
    /// Where the old target is not released, for all that is known.
    async fn settle_archived(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        found: &Holder,
        from: Option<&NamedObject>,
        to: Option<&NamedObject>,
    ) -> Result<(), Refusal> {
        let Some(name) = &found.name else {
            return Ok(());
        };
        let state = match self.holder_of_move(caller, key).await {
            Ok(now) => Some(now.state),
            Err(refusal) if refusal.is_of_absent_object() => None,
            Err(_) => Some(found.state),
        };
        let is_archived = state == Some(State::Archived);
        if let Some(to) = to.filter(|_| is_archived)
            && let Err(error) = self.settle(caller, key, to, name).await
        {
            tracing::warn!(%error, reference = %name, object = %to, "A move may leave a reference behind");
        }
        let Some(from) = from.filter(|_| is_archived || found.state == State::Archived) else {
            return Ok(());
        };
        let settled = self.settle(caller, key, from, name).await;
        settled.map_err(|refusal| refusal.after(&format!("{from} keeps the reference")))
    }

    /// Places or releases the reference of a holder on an object, as its fields say, until they still say so after the
    /// write. A release depends on the version that the object had before the fields were read, and a placement writes
    /// in any case: one that was decided on before another move takes nothing after it.
    ///
    /// # Errors
    /// Where one of the two does not answer, or others keep changing them.
    async fn settle(
        &self,
        caller: &Caller,
        holder: &ObjectKey<'_>,
        object: &NamedObject,
        name: &ReferenceName,
    ) -> Result<(), Refusal> {
        let mut done = None;
        for _ in 0..TRIES {
            let at = self.named_objects().version_of(caller, object).await?;
            let naming = match self.holder_of_move(caller, holder).await {
                Ok(now) if self.is_backed_by(&now, holder, object, name) => match now.state == State::Deleting {
                    true => Naming::NamedByLeaving,
                    false => Naming::Named,
                },
                Ok(_) => Naming::Unnamed,
                Err(refusal) if refusal.is_of_absent_object() => Naming::Unnamed,
                Err(refusal) => return Err(refusal),
            };
            let step = settling_step(naming, done);
            match step {
                SettlingStep::Finish => return Ok(()),
                SettlingStep::Place => {
                    if let Err(error) = self.place_on(caller, object, name).await {
                        let what = "A move may have released what is named again";
                        tracing::warn!(%error, reference = %name, %object, "{what}");
                        return Ok(());
                    }
                }
                SettlingStep::Release => match self.release_on(caller, object, name, at).await {
                    Err(refusal) if at.is_some() && refusal.outcome().is_conflict() => continue,
                    released => released?,
                },
            }
            done = Some(step);
        }
        Err(Refusal::conflict(holder, "others change it all the time; try again"))
    }

    /// Whether this is the holder of that reference, and names the object.
    fn is_backed_by(&self, now: &Holder, holder: &ObjectKey<'_>, object: &NamedObject, name: &ReferenceName) -> bool {
        now.name.as_ref() == Some(name) && self.is_backed(holder, &now.text, object)
    }
}
