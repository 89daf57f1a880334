//! A field that names another object from now on: the new target gets the reference before that is written, on
//! condition of the version that was read, and the old one loses its own after it. Who is being deleted takes no part
//! in it.
//!
//! Of a live holder, `kindex deletion` releases the old target, as of every field that changes; before, it writes to
//! the holder. So whoever is about to let that holder name the same target again finds another version, and tries
//! anew.

use http::Method;
use kindex_kube_api::patch::PatchType;
use kindex_model::kind::Scope;
use kindex_model::reference::Reference;
use kindex_model::reference_name::ReferenceName;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::cluster::Call;
use super::super::get::GetOptions;
use super::super::{Caller, ObjectKey, Operations, Part, Refusal, WriteOptions};
use super::answer::State;
use super::decide::{Decision, Verb, decide};
use super::fields::{NamedObject, changed, choose, named, patch};
use super::{FoundObject, TRIES, refused};

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
    /// Whether it named that before, so that nothing was written.
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
    /// The new target bears the reference before the field names it, and the old one until then at least.
    ///
    /// # Errors
    /// 400 where it is not clear which field is meant, or it cannot name the target; 404 where one of the objects is
    /// not there; 409 where one of them is being deleted; what the cluster says to the change of the field, before
    /// anything was written.
    pub async fn move_holder(
        &self,
        caller: &Caller,
        holder: &ObjectKey<'_>,
        reference: Option<&str>,
        to: &ObjectKey<'_>,
        dry_run: bool,
    ) -> Result<Moved, Refusal> {
        let reference = choose(holder.resource.kind, reference, to.resource.kind)?;
        let mut placed = None;
        for _ in 0..TRIES {
            match self
                .try_to_move(caller, holder, reference, to, dry_run, &mut placed)
                .await
            {
                Ok(Some(moved)) => return Ok(moved),
                Ok(None) => {}
                Err(refusal) => {
                    if let Some(name) = &placed {
                        self.take_back(caller, holder, to, name).await;
                    }
                    return Err(refusal);
                }
            }
        }
        Err(Refusal::conflict(holder, "others change it all the time; try again"))
    }

    /// Takes a reference off again whose holder went meanwhile, or is archived: of all others, `kindex deletion` sees
    /// that no field names the object.
    async fn take_back(&self, caller: &Caller, holder: &ObjectKey<'_>, to: &ObjectKey<'_>, name: &ReferenceName) {
        let found = self.look(caller, holder).await;
        let is_live = found
            .is_ok_and(|found| found.is_some_and(|found| found.uid() == name.uid() && found.state() == State::Live));
        if is_live {
            return;
        }
        if let Err(error) = self.try_to_change(caller, to, name, Verb::Delete).await {
            tracing::warn!(%error, reference = %name, object = to.name, "A reference is left behind by a move");
        }
    }

    /// Nothing where somebody else was faster.
    async fn try_to_move(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &'static Reference,
        to: &ObjectKey<'_>,
        dry_run: bool,
        placed: &mut Option<ReferenceName>,
    ) -> Result<Option<Moved>, Refusal> {
        let kind = key.resource.kind;
        let holder = self.holder_of_move(caller, key).await?;
        let from = named(&self.registry, kind, reference, &holder.text);
        let target = NamedObject::of(to);
        let mut moved = Moved {
            holder: NamedObject::of(key).to_string(),
            state: holder.state,
            reference: reference.name.to_owned(),
            path: reference.path.join("."),
            from: from.as_ref().map(ToString::to_string),
            to: target.to_string(),
            unchanged: false,
        };
        if from.as_ref().is_some_and(|from| from.is(&target)) {
            moved.unchanged = true;
            return Ok(Some(moved));
        }
        if self.look(caller, to).await?.is_none() {
            return Err(Refusal::not_found(to));
        }
        let patch = patch(kind, reference, &holder.text, &target)?;
        let part = match reference.path {
            ["status", ..] => Part::Status,
            _ => Part::Main,
        };
        // What stands against it is known before the first write.
        let mut new = holder.text.clone();
        json_patch::merge(&mut new, &patch);
        self.refuse_moves(caller, key, &holder.text, &new).await?;
        match self.write_field(caller, key, part, &patch, true).await {
            Err(refusal) if refusal.code == 409 => return Ok(None),
            tried => tried?,
        }
        if dry_run {
            return Ok(Some(moved));
        }
        if let (true, Some(name)) = (reference.waits(), &holder.name) {
            self.place_anew(caller, to, name).await?;
            *placed = Some(name.clone());
        }
        match self.write_field(caller, key, part, &patch, false).await {
            Err(refusal) if refusal.code == 409 => return Ok(None),
            written => written?,
        }
        if let (State::Archived, Some(name), Some(from)) = (holder.state, &holder.name, &from) {
            self.release_former(caller, key, &from.key(), name).await?;
        }
        Ok(Some(moved))
    }

    async fn holder_of_move(&self, caller: &Caller, key: &ObjectKey<'_>) -> Result<Holder, Refusal> {
        let answer = self.get(caller, key, &GetOptions::default()).await?;
        let text: Value = serde_json::from_slice(&answer.text).unwrap_or_default();
        let uid = text["metadata"]["uid"].as_str().unwrap_or_default();
        let place = self.look(caller, key).await?;
        let place = place.filter(|place| place.uid() == uid);
        let kind = key.resource.kind;
        Ok(Holder {
            state: place.ok_or_else(|| Refusal::not_found(key))?.state(),
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

    /// Places a reference by a write in any case: whoever has read that the object bears it, and is about to release
    /// it, is refused by the version.
    async fn place_anew(&self, caller: &Caller, key: &ObjectKey<'_>, name: &ReferenceName) -> Result<(), Refusal> {
        for _ in 0..TRIES {
            let found = self.look(caller, key).await?.ok_or_else(|| Refusal::not_found(key))?;
            let decision = decide(Verb::Put, found.seen(key, name));
            let is_done = match (&found, decision) {
                (_, Decision::Refuse(why)) => return Err(refused(key, name, why)),
                (FoundObject::Cluster(found), Decision::Done) => {
                    let metadata = json!({"metadata": {
                        "uid": found.uid(),
                        "resourceVersion": found.version(),
                        "annotations": {(format!("{}/reference-renewed", self.registry.platform.group)):
                            self.now().to_string()},
                    }});
                    let call = Call {
                        content_type: PatchType::Merge.media_type(),
                        ..Call::json(Method::PATCH, key.path(), Vec::new(), metadata.to_string().into())
                    };
                    match self.upstream.call(&caller.on_behalf(), call).await {
                        Ok(_) => true,
                        Err(refusal) if refusal.code == 409 || refusal.is_of_absent_object() => false,
                        Err(refusal) => return Err(refusal),
                    }
                }
                (FoundObject::Cluster(found), _) => self.change_live(caller, key, found, name, decision).await?,
                (FoundObject::Sql(found), _) => self.change_archived(caller, key, found, name, decision).await?,
            };
            if is_done {
                return Ok(());
            }
        }
        Err(Refusal::conflict(key, "others change it all the time; try again"))
    }

    /// Releases the old target of an archived holder, unless another reference of that one names it as well.
    async fn release_former(
        &self,
        caller: &Caller,
        holder: &ObjectKey<'_>,
        from: &ObjectKey<'_>,
        name: &ReferenceName,
    ) -> Result<(), Refusal> {
        let now = self.holder_of_move(caller, holder).await?;
        let kind = holder.resource.kind;
        let former = NamedObject::of(from);
        let mut references = kind.references.iter().filter(|reference| reference.waits());
        let still = references.any(|reference| {
            let named = named(&self.registry, kind, reference, &now.text);
            named.is_some_and(|named| named.is(&former))
        });
        if still {
            return Ok(());
        }
        for _ in 0..TRIES {
            if self.try_to_change(caller, from, name, Verb::Delete).await?.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Refuses a change by which a field names another object, while one of the three is being deleted.
    ///
    /// # Errors
    /// 409.
    pub(in super::super) async fn refuse_moves(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        old: &Value,
        new: &Value,
    ) -> Result<(), Refusal> {
        let kind = key.resource.kind;
        for (reference, pair) in changed(&self.registry, kind, old, new) {
            let path = reference.path.join(".");
            if self
                .look(caller, key)
                .await?
                .is_some_and(|found| found.state() == State::Deleting)
            {
                let own = NamedObject::of(key);
                return Err(Refusal::conflict(
                    key,
                    &format!(
                        "it is being deleted, so that {path} cannot change; see `kindex why {}`",
                        shown(&own)
                    ),
                ));
            }
            for (word, other) in ["named", "would name"].into_iter().zip(pair) {
                let Some(other) = other else { continue };
                let found = self.look(caller, &other.key()).await?;
                if found.is_some_and(|found| found.state() == State::Deleting) {
                    let why = format!(
                        "{path} {word} {other}, which is being deleted, so that it cannot change; see `kindex why {}`",
                        shown(&other)
                    );
                    return Err(Refusal::conflict(key, &why));
                }
            }
        }
        Ok(())
    }

    /// Refuses a new object whose field names one that is being deleted, which takes no references any more. Its text
    /// may leave the namespace to the path.
    ///
    /// # Errors
    /// 409.
    pub(in super::super) async fn refuse_children(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        mut new: Value,
    ) -> Result<(), Refusal> {
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), key.namespace.into());
        }
        for (reference, [_, named]) in changed(&self.registry, key.resource.kind, &Value::Null, &new) {
            let Some(named) = named else { continue };
            let found = match self.look(caller, &named.key()).await {
                // The cluster may have no such kind.
                Err(refusal) if refusal.code == 404 => None,
                found => found?,
            };
            if found.is_some_and(|found| found.state() == State::Deleting) {
                let why = format!(
                    "{} names {named}, which is being deleted; see `kindex why {}`",
                    reference.path.join("."),
                    shown(&named)
                );
                return Err(Refusal::conflict(key, &why));
            }
        }
        Ok(())
    }

    /// Whether changes of a kind's objects have to be looked at for that, in the version in which they come.
    pub(in super::super) fn may_move(&self, key: &ObjectKey<'_>) -> bool {
        let kind = key.resource.kind;
        key.resource.version == kind.version && kind.references.iter().any(Reference::waits)
    }
}

/// As it is typed.
fn shown(object: &NamedObject) -> String {
    match object.kind.scope {
        Scope::Namespaced => format!("{}/{} -n {}", object.kind.singular, object.name, object.namespace),
        Scope::Cluster => format!("{}/{}", object.kind.singular, object.name),
    }
}
