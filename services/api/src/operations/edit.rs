//! Changes an archived object: checks what a client may change, validates the result with a dry-run creation in the
//! cluster, and stores it if the version is still the one that the client read.

use bytes::Bytes;
use http::Method;
use kindex_kube_api::decode;
use kindex_kube_api::identity::check_update;
use kindex_kube_api::patch::{OBJECT_BYTES_MAX, Patch, PatchType, mentions, text_bytes};
use kindex_kube_api::request::parameter;
use kindex_kube_api::schema::coerce_metadata;
use kindex_kube_api::status::{Cause, Details, Status};
use kindex_kube_api::validation::metadata_problems;
use kindex_model::kind::Kind;
use kindex_model::object::Object;
use serde_json::{Map, Value, json};

use super::cluster::Call;
use super::references::on_named::NamedObjects;
use super::references::{may_name_in, waiting_paths};
use super::refusal::group_resource;
use super::{Answer, Backends, Caller, ObjectKey, Part, Reason, Refusal, Resource, WriteOptions, refusal};

/// What of the metadata is a client's to change.
const CHANGEABLE: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// What a client wants of an object.
pub(super) enum Edit {
    /// That it be this.
    Replace(Value),
    /// What the patch makes of it.
    Patch(Patch),
}

impl Edit {
    /// That it be the object of this text.
    pub(super) fn replace(text: &str) -> Result<Self, Refusal> {
        let read = decode::json(text.as_bytes());
        let read = read.map_err(|error| Refusal::bad_request(format!("the body is not an object: {error}")))?;
        Ok(Self::Replace(read.value))
    }

    pub(super) fn patch(patch_type: PatchType, body: &[u8]) -> Result<Self, Refusal> {
        match patch_type {
            PatchType::Json | PatchType::Merge => Ok(Self::Patch(Patch::read(patch_type, body)?.0)),
            // The cluster has refused these before it looked for the object.
            PatchType::Strategic | PatchType::Apply => Err(Refusal::bad_request(
                "an archived object takes JSON patches and merge patches alone",
            )),
        }
    }

    /// What the edit makes of an object: again an object, with readable metadata, within the bounds that the cluster
    /// has as well.
    fn apply(&self, resource: &Resource, old: &Value) -> Result<Value, Refusal> {
        let mut new = match self {
            Self::Replace(wanted) => wanted.clone(),
            Self::Patch(patch) => patch.apply(old)?,
        };
        if text_bytes(&new) > OBJECT_BYTES_MAX {
            return Err(Status::object_too_large().into());
        }
        let kind = resource.kind.name;
        if !new.is_object() {
            return Err(Status::not_an_object(kind).into());
        }
        coerce_metadata(&mut new).map_err(|error| Status::not_of_kind(kind, resource.version, error))?;
        Ok(new)
    }
}

/// Changes the archived object of that name; `absent` where there is none.
pub(super) async fn edit_stored(
    named: NamedObjects<'_>,
    caller: &Caller,
    key: &ObjectKey<'_>,
    part: Part,
    edit: &Edit,
    options: &WriteOptions,
    absent: Refusal,
) -> Result<Answer, Refusal> {
    let backends = named.backends;
    let Some(found) = backends.find_archived(key).await? else {
        return Err(absent);
    };
    let view = backends.view(key.resource);
    let old = view.shown_value(&found)?;
    let wanted = edit.apply(&key.resource, &old)?;
    check_update(group_resource(key.resource.kind), &old, &wanted, true)?;
    let new = match part {
        Part::Main => {
            let new = merged(&old, &wanted);
            check_metadata(key, &new)?;
            backends.checked(caller, key, new, options).await?
        }
        Part::Status => with_status(&old, &wanted),
    };
    if new == old {
        return Ok(Answer::found(new.to_string()));
    }
    if may_name_in(key.resource, part) {
        named.refuse_moves(caller, key, &old, &new).await?;
    }
    let text = counted(&old, new).to_string();
    let object = Object::parse_str(&text)
        .map_err(|error| Refusal::bad_request(format!("the result would not be an object: {error}")))?;
    let kept = view.kept(&object)?;
    // One without a form in the own version has no problems that are known. What is made of it must have none.
    let before = view.kept(&found.object).ok();
    check_shape(key.resource.kind, before.as_ref().map(Object::text), kept.text())?;
    if options.dry_run {
        return Ok(Answer::found(text));
    }
    let written = backends
        .store()?
        .update_direct(key.resource.kind, &kept, backends.now())
        .await;
    let written = written.map_err(|error| refusal::of_store(key, error))?;
    backends.feed()?.nudge();
    Ok(Answer::found(view.text(&written)?.into_owned()))
}

impl Backends {
    /// The object as the cluster would store it, without unknown fields and with defaults: what it says to a creation
    /// that leaves no trace.
    async fn checked(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        new: Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let mut trial = new.clone();
        trial["metadata"] = json!({"name": key.name});
        for field in ["labels", "annotations"] {
            if !new["metadata"][field].is_null() {
                trial["metadata"][field] = new["metadata"][field].clone();
            }
        }
        let mut query = options.query();
        query.retain(|(name, _)| *name == parameter::FIELD_VALIDATION);
        query.push((parameter::DRY_RUN, parameter::ALL_STAGES.to_owned()));
        let path = key.resource.collection(Some(key.namespace));
        let call = Call::json(Method::POST, path, query, Bytes::from(trial.to_string()));
        as_seen(key, new, self.upstream.call(caller, call).await)
    }
}

/// The object as the cluster saw it in that trial.
fn as_seen(key: &ObjectKey<'_>, new: Value, seen: Result<Answer, Refusal>) -> Result<Value, Refusal> {
    match seen {
        Ok(answer) => {
            let seen = serde_json::from_slice(&answer.text);
            let mut fields: Map<String, Value> = seen.map_err(|error| Refusal::unreadable(&error))?;
            for kept in ["metadata", "status"] {
                match new.get(kept) {
                    Some(value) => fields.insert(kept.to_owned(), value.clone()),
                    None => fields.remove(kept),
                };
            }
            Ok(Value::Object(fields))
        }
        Err(refusal) if refusal.outcome().is_conflict() => Err(Refusal::conflict(
            key,
            "another object of the name was created in the cluster",
        )),
        // The namespace is gone, and what was archived of it stays as it is shaped.
        Err(refusal) if refusal.is_of_absent_object() => Ok(new),
        Err(refusal) => Err(refusal),
    }
}

/// Whether a patch can change what a reference names. A merge patch has to mention where one begins, if it is in the
/// kind's own version: another one may have the fields anywhere. A server-side apply removes what it does not mention.
/// What cannot be read here is for the cluster to read.
pub(super) fn may_move(Resource { kind, version }: Resource, patch_type: PatchType, body: &[u8]) -> bool {
    match patch_type {
        PatchType::Json | PatchType::Apply => true,
        PatchType::Merge if version != kind.version => true,
        PatchType::Merge => match decode::json(body) {
            Ok(read) => waiting_paths(kind).any(|path| mentions(&read.value, path)),
            Err(_) => true,
        },
        // No cluster takes one for objects of such a kind.
        PatchType::Strategic => false,
    }
}

/// What is wanted, with all that is not a client's to change as it was.
fn merged(old: &Value, wanted: &Value) -> Value {
    let mut new = wanted.as_object().cloned().unwrap_or_default();
    let mut metadata = old["metadata"].as_object().cloned().unwrap_or_default();
    for field in CHANGEABLE {
        match &wanted["metadata"][field] {
            Value::Null => metadata.remove(field),
            value => metadata.insert(field.to_owned(), value.clone()),
        };
    }
    new.insert("metadata".to_owned(), Value::Object(metadata));
    for field in ["apiVersion", "kind", "status"] {
        keep(&mut new, old, field);
    }
    Value::Object(new)
}

/// That of a trial has neither finalizers nor owners.
fn check_metadata(key: &ObjectKey<'_>, new: &Value) -> Result<(), Refusal> {
    let problems = metadata_problems(new);
    if problems.is_empty() {
        return Ok(());
    }
    let kind = key.resource.kind;
    Err(Status::invalid(kind.group, kind.name, key.name, &problems).into())
}

fn with_status(old: &Value, wanted: &Value) -> Value {
    let mut new = old.as_object().cloned().unwrap_or_default();
    keep(&mut new, wanted, "status");
    Value::Object(new)
}

fn keep(new: &mut Map<String, Value>, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => new.insert(field.to_owned(), value.clone()),
        None => new.remove(field),
    };
}

/// With the next generation, where more than metadata and status changed.
fn counted(old: &Value, mut new: Value) -> Value {
    let is_content = |field: &str| !matches!(field, "metadata" | "status");
    let content = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().cloned().unwrap_or_default();
        fields.into_iter().filter(|(field, _)| is_content(field)).collect()
    };
    if content(old) != content(&new)
        && let Some(generation) = old["metadata"]["generation"].as_i64()
    {
        new["metadata"]["generation"] = (generation + 1).into();
    }
    new
}

/// Refuses a text that fits its message less than the text before.
fn check_shape(kind: &Kind, old: Option<&str>, new: &str) -> Result<(), Refusal> {
    let known = old.map(|old| (kind.encode)(old).problems).unwrap_or_default();
    let problems = (kind.encode)(new).problems;
    let Some(problem) = problems.into_iter().find(|problem| !known.contains(problem)) else {
        return Ok(());
    };
    let message = format!("{} is invalid: {}: {}", kind.name, problem.path, problem.message);
    Err(Refusal::new(Reason::Invalid, message).with(Details {
        group: kind.group.to_owned(),
        kind: kind.name.to_owned(),
        causes: vec![Cause::invalid(problem.path, problem.message)],
        ..Details::default()
    }))
}

#[cfg(test)]
mod tests;
