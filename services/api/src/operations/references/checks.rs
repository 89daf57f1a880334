//! What a write must not do to what is being deleted: let a field name it, or change a field that does. Asked before
//! the write, of the objects that fields name, here and at other services, in whichever version of its kind the holder
//! is written.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use kindex_kube_api::status::{Outcome, Reason};
use kindex_kube_client::ClusterError;
use kindex_model::kind::{Kind, Platform};
use kindex_model::named_object::naming_fields;
use kindex_model::reference::Reference;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::State;
use super::fields::changed;
use super::named_object::NamedObject;
use super::on_named::{FailurePolicy, NamedObjects};
use crate::operations::{Caller, ObjectKey, Part, Refusal, Resource};

impl NamedObjects<'_> {
    /// Refuses a change by which a field names another object, while one of the three is being deleted. Nobody waits
    /// for another service that does not answer.
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
        self.refuse_moves_or(caller, key, old, new, FailurePolicy::Passes).await
    }

    /// The same, where it is said what the silence of another service means.
    ///
    /// # Errors
    /// 409; 503 where another service does not answer, and that is no answer.
    pub(in super::super) async fn refuse_moves_or(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        old: &Value,
        new: &Value,
        policy: FailurePolicy,
    ) -> Result<(), Refusal> {
        let own = |object: &Value| value_in_own_version(&self.backends.registry.platform, key.resource, object);
        let converted = own(old).zip(own(new));
        let (old, new) = converted.as_ref().map_or((old, new), |(old, new)| (old, new));
        self.refuse_other_names(caller, key, old, new, policy).await
    }

    /// The same of the texts of a live object before and after. What is sent to replace a part of it leaves the rest as
    /// it was. No more of the texts is read than the fields, so that no object is too large. Nobody waits for another
    /// service that does not answer.
    ///
    /// # Errors
    /// 409.
    pub(in super::super) async fn refuse_change(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        texts: [&str; 2],
        sent_for: Option<Part>,
    ) -> Result<(), Refusal> {
        let (platform, kind) = (&self.backends.registry.platform, key.resource.kind);
        let converted = texts.map(|text| in_own_version(platform, key.resource, text));
        let fields = match &converted {
            [Some(old), Some(new)] => [fields_in(kind, old), fields_in(kind, new)],
            _ => texts.map(|text| fields_in(kind, text)),
        };
        let [old, sent] = fields.map(|fields| in_namespace(fields, key.namespace));
        let new = match sent_for {
            Some(part) => with_part(part, &old, &sent),
            None => sent,
        };
        self.refuse_other_names(caller, key, &old, &new, FailurePolicy::Passes)
            .await
    }

    /// The same of an object in its kind's own version.
    async fn refuse_other_names(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        old: &Value,
        new: &Value,
        policy: FailurePolicy,
    ) -> Result<(), Refusal> {
        for (reference, pair) in changed(&self.backends.registry, key.resource.kind, old, new) {
            let path = reference.path.join(".");
            let holder = self.backends.object_state(caller, key).await?;
            if holder.is_some_and(|holder| holder.state == State::Deleting) {
                let why = NamedObject::of(key).why();
                return Err(Refusal::conflict(
                    key,
                    &format!("it is being deleted, so that {path} cannot change; {why}"),
                ));
            }
            for (word, other) in ["named", "would name"].into_iter().zip(pair) {
                let Some(other) = other else { continue };
                if self.is_deleting(caller, &other, policy).await? {
                    let why = other.why();
                    let why = format!("{path} {word} {other}, which is being deleted, so that it cannot change; {why}");
                    return Err(Refusal::conflict(key, &why));
                }
            }
        }
        Ok(())
    }

    /// Refuses a new object, of which this is the text, if a field of it names an object that is being deleted: what is
    /// going takes no children. No more of the text is read than the fields. Nobody waits for another service that does
    /// not answer.
    ///
    /// # Errors
    /// 409.
    pub(in super::super) async fn refuse_child(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        text: &str,
    ) -> Result<(), Refusal> {
        let converted = in_own_version(&self.backends.registry.platform, key.resource, text);
        let fields = fields_in(key.resource.kind, converted.as_deref().unwrap_or(text));
        let new = in_namespace(fields, key.namespace);
        let named = changed(&self.backends.registry, key.resource.kind, &Value::Null, &new);
        let named = named.into_iter();
        let named = named.filter_map(|(reference, [_, named])| Some((reference, named?)));
        // At once, so that several services together delay nobody for longer than one.
        let asked = named.map(|(reference, named)| self.why_no_child(caller, reference, named));
        let whys = try_join_all(asked).await?;
        match whys.into_iter().flatten().next() {
            Some(why) => Err(Refusal::conflict(key, &why)),
            None => Ok(()),
        }
    }

    /// Confirms that the cluster does not serve the kind of an object that a field names: then there is no such object,
    /// of which it has answered with a 404 that names none. What stands before it may have answered so, too.
    ///
    /// # Errors
    /// 503 where that is not known.
    async fn confirm_unserved(&self, named: &NamedObject, said: Refusal) -> Result<(), Refusal> {
        let Some(key) = named.key() else { return Err(said) };
        let kind = key.resource.kind;
        let why = self.backends.upstream_of(kind)?.why_unserved(kind, &said.message).await;
        if why.is_absence() {
            return Ok(());
        }
        // What the cluster serves, and what the account may read, does not change by itself.
        let advice = match why {
            ClusterError::Unserved { .. } | ClusterError::Refused(_) => "",
            ClusterError::NotFound(_)
            | ClusterError::Conflict(_)
            | ClusterError::Expired(_)
            | ClusterError::Retryable { .. } => "; try again",
        };
        Err(Refusal::try_again(
            Reason::ServiceUnavailable,
            format!("it is not known whether {named} is being deleted: {why}{advice}"),
        ))
    }

    /// Why no new object may name this one by a reference.
    async fn why_no_child(
        &self,
        caller: &Caller,
        reference: &'static Reference,
        named: NamedObject,
    ) -> Result<Option<String>, Refusal> {
        let is_deleting = match self.is_deleting(caller, &named, FailurePolicy::PassesForAWhile).await {
            Err(refusal) if refusal.outcome() == Outcome::Unserved => {
                self.confirm_unserved(&named, refusal).await?;
                false
            }
            is_deleting => is_deleting?,
        };
        let path = reference.path.join(".");
        Ok(is_deleting.then(|| format!("{path} names {named}, which is being deleted; {}", named.why())))
    }
}

/// Whether a change of this part of an object may make a field name another object that waits for it. Another version
/// may have such a field in another part.
pub(in super::super) fn may_name_in(Resource { kind, version }: Resource, part: Part) -> bool {
    let mut paths = waiting_paths(kind);
    match part {
        Part::Status if version == kind.version => paths.any(|path| path.first() == Some(&"status")),
        Part::Main | Part::Status => paths.next().is_some(),
    }
}

/// The fields by which objects of a kind name those that wait for them.
pub(in super::super) fn waiting_paths(kind: &Kind) -> impl Iterator<Item = &'static [&'static str]> {
    let columns = kind.columns;
    let waiting = kind.references.iter().filter(|reference| reference.waits());
    waiting.flat_map(move |reference| {
        let column = columns
            .iter()
            .filter(move |column| Some(column.name) == reference.kind_column);
        column.map(|column| column.path).chain([reference.path])
    })
}

/// The fields of a text that name objects. Null of a text that is no object.
fn fields_in(kind: &Kind, text: &str) -> Value {
    naming_fields(kind, text).unwrap_or_default()
}

/// What was read of an object that may leave the namespace to the path.
fn in_namespace(mut fields: Value, namespace: &str) -> Value {
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    fields
}

/// What becomes of `old` where this is sent to replace a part of it.
fn with_part(part: Part, old: &Value, sent: &Value) -> Value {
    let (rest, of_status) = match part {
        Part::Main => (sent, old),
        Part::Status => (old, sent),
    };
    let mut new = rest.clone();
    if let Some(fields) = new.as_object_mut() {
        match of_status.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    new
}

/// The text of an object of a request in its kind's own version, where references have their fields. Nothing where it
/// is in that version, or has no form in it: a cluster refuses what it cannot convert to the version that it stores. If
/// it stores the other version, the fields count that both versions have in the same place.
fn in_own_version(platform: &Platform, resource: Resource, text: &str) -> Option<String> {
    let Resource { kind, version } = resource;
    if version == kind.version {
        return None;
    }
    let text = with_version(text, &resource.api_version()).ok()?;
    let converted = kindex_convert::convert(platform, kind, &text, kind.version).inspect_err(|error| {
        tracing::debug!(%error, version, "An object is looked at for references without a conversion");
    });
    converted.ok()
}

/// The text of an object that may leave the version to the path, with it.
fn with_version(text: &str, api_version: &str) -> Result<String, serde_json::Error> {
    let api_version = to_raw_value(api_version)?;
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    fields.insert("apiVersion".to_owned(), &api_version);
    serde_json::to_string(&fields)
}

/// The fields by which an object that was read names others, in its kind's own version; nothing where its text would
/// not be there.
fn value_in_own_version(platform: &Platform, resource: Resource, object: &Value) -> Option<Value> {
    if resource.version == resource.kind.version {
        return None;
    }
    naming_fields(resource.kind, &in_own_version(platform, resource, &object.to_string())?).ok()
}
