//! What a write must not do to what is being deleted: let a field name it, or change a field that does. Asked before
//! the write, of the objects that fields name, here and at other services.

use futures::future::try_join_all;
use kindex_model::reference::Reference;
use serde_json::Value;

use super::super::{Caller, ObjectKey, Operations, Refusal};
use super::answer::State;
use super::fields::changed;
use super::named_object::NamedObject;
use super::on_named::Silence;
use super::picked::picked;

impl Operations {
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
        self.refuse_moves_or(caller, key, old, new, Silence::Passes).await
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
        silence: Silence,
    ) -> Result<(), Refusal> {
        let kind = key.resource.kind;
        for (reference, pair) in changed(&self.registry, kind, old, new) {
            let path = reference.path.join(".");
            let holder = self.object_state(caller, key).await?;
            if holder.is_some_and(|holder| holder.state == State::Deleting) {
                let why = NamedObject::of(key).why();
                return Err(Refusal::conflict(
                    key,
                    &format!("it is being deleted, so that {path} cannot change; {why}"),
                ));
            }
            for (word, other) in ["named", "would name"].into_iter().zip(pair) {
                let Some(other) = other else { continue };
                if self.is_deleting(caller, &other, silence).await? {
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
        self.refuse_children(caller, key, picked(key.resource.kind, text)).await
    }

    /// The same of an object that was read. It may leave the namespace to the path.
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
        let named = changed(&self.registry, key.resource.kind, &Value::Null, &new);
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

    /// Why no new object may name this one by a reference.
    async fn why_no_child(
        &self,
        caller: &Caller,
        reference: &'static Reference,
        named: NamedObject,
    ) -> Result<Option<String>, Refusal> {
        let is_deleting = match self.is_deleting(caller, &named, Silence::PassesForAWhile).await {
            // The cluster may have no such kind.
            Err(refusal) if refusal.code == 404 => false,
            is_deleting => is_deleting?,
        };
        let path = reference.path.join(".");
        Ok(is_deleting.then(|| format!("{path} names {named}, which is being deleted; {}", named.why())))
    }

    /// Whether changes of a kind's objects have to be looked at for that, in the version in which they come.
    pub(in super::super) fn may_move(&self, key: &ObjectKey<'_>) -> bool {
        let kind = key.resource.kind;
        key.resource.version == kind.version && kind.references.iter().any(Reference::waits)
    }
}
