//! Server-side apply: a configuration merged into an object, with the fields taken out that its manager no longer
//! applies. Refuses to validate the outcome and to fill in defaults.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conflict::{Conflicts, conflicts};
use super::managers::{Manager, Managers, Operation, Owned};
use super::set::FieldSet;
use super::shape::Shape;
use super::update::own_changes;
use super::walk::{Comparison, compare, compare_within, merge, paths, remove, with_named_fields};
use super::{TooLarge, UNOWNED, differ_in_managers_alone, put_managed_fields, stored_managers};
use crate::meta;
use crate::schema::Structural;
use crate::size::{OBJECT_BYTES_MAX, text_bytes};

/// The manager that gets the fields of an object that was never applied or tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// kubectl's name in server-side apply, and the annotation by which its client-side apply knows what it applied.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// `live` with the configuration `applied` merged into it and `managedFields` brought up to date.
///
/// # Guarantees
/// Applying the same again gives an object equal to `live`. Fields that `manager` applied before and does not apply
/// now are removed unless another manager owns them. With `force` there are no conflicts: other managers lose the
/// fields.
///
/// # Assumptions
/// `applied` holds only what the endpoint may write (no `status` where that is a subresource), no `managedFields`,
/// and no list map with two entries of one key.
///
/// # Errors
/// The fields that other managers own and that `applied` would change, or more paths than an object may have.
#[expect(
    clippy::too_many_arguments,
    reason = "the parameters of an apply request, each of another kind"
)]
pub fn apply(
    schema: Option<&Structural>,
    live: Option<&Value>,
    applied: Value,
    manager: &str,
    force: bool,
    subresource: Option<&str>,
    api_version: &str,
    now: Timestamp,
) -> Result<Value, NotApplied> {
    let nothing = json!({});
    let mut managers = live.and_then(stored_managers).unwrap_or_default();
    if let Some(live) = live.filter(|_| managers.0.is_empty()) {
        let first = Manager::new(BEFORE_FIRST_APPLY, Operation::Update, api_version, None);
        own_changes(&mut managers, schema, &nothing, live, &first, api_version, now)?;
    }
    let request = Request {
        shape: Shape::of_object(schema),
        live: live.unwrap_or(&nothing),
        manager: Manager::new(manager, Operation::Apply, api_version, subresource),
        api_version,
        now,
    };
    let tolerated = (manager == KUBECTL).then(|| request.tolerated()).flatten();
    let renewed = (manager == KUBECTL).then(|| last_applied(&applied));
    let (mut object, managers) = request.merge(applied, managers, force, tolerated.as_ref())?;
    if let Some(renewed) = renewed {
        renew_last_applied(&mut object, renewed);
    }
    put_managed_fields(&mut object, managers);
    Ok(object)
}

/// Why a configuration is not applied.
#[derive(Debug, PartialEq)]
pub enum NotApplied {
    /// Others own what it would change.
    Conflicts(Conflicts),
    /// Whose fields are whose would take more than the largest object.
    TooLarge,
}

impl From<TooLarge> for NotApplied {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

struct Request<'a> {
    shape: Shape<'a>,
    live: &'a Value,
    manager: Manager,
    api_version: &'a str,
    now: Timestamp,
}

impl Request<'_> {
    fn merge(
        &self,
        applied: Value,
        mut managers: Managers,
        force: bool,
        tolerated: Option<&FieldSet>,
    ) -> Result<(Value, Managers), NotApplied> {
        let set = paths(self.shape, &applied);
        if set.text_bytes() + text_bytes(&applied) > OBJECT_BYTES_MAX {
            return Err(NotApplied::TooLarge);
        }
        let last = managers.0.remove(&self.manager);
        let object = merge(self.shape, without_managed_fields(self.live), applied);
        let (object, mut owned) = self.settle(object, set, &managers, last.as_ref());
        if !managers.0.is_empty() {
            self.take_over(&object, &mut managers, force, tolerated)?;
        }
        owned.set = owned.set.difference(&UNOWNED);
        let is_same = last.is_some_and(|last| last.set == owned.set);
        if !(is_same && differ_in_managers_alone(self.live, &object)) {
            owned.time = Some(meta::time(self.now));
        }
        if !owned.set.is_empty() {
            managers.0.insert(self.manager.clone(), owned);
        }
        match managers.text_bytes() > OBJECT_BYTES_MAX {
            true => Err(NotApplied::TooLarge),
            false => Ok((object, managers)),
        }
    }

    /// The merged object without what its manager has left behind, and what that owns by now.
    fn settle(&self, merged: Value, set: FieldSet, others: &Managers, last: Option<&Owned>) -> (Value, Owned) {
        let object = match last {
            Some(last) if !last.set.clone().difference(&set).is_empty() => {
                self.without_forsaken(merged, &set, others, &last.set)
            }
            _ => merged,
        };
        let owned = Owned {
            set,
            api_version: self.api_version.to_owned(),
            time: last.and_then(|last| last.time.clone()),
        };
        (object, owned)
    }

    /// Takes what changes from the other managers.
    fn take_over(
        &self,
        object: &Value,
        others: &mut Managers,
        force: bool,
        tolerated: Option<&FieldSet>,
    ) -> Result<(), NotApplied> {
        let theirs = FieldSet::union_of(others.0.values().map(|owned| owned.set.clone()));
        let Comparison {
            removed,
            modified,
            added,
        } = compare_within(self.shape, self.live, object, Some(&theirs));
        drop(theirs);
        let changed = modified.union(added);
        if !force {
            refuse_conflicts(others, &changed, tolerated)?;
        }
        others.release(&changed, None);
        others.release(&removed, None);
        Ok(())
    }

    /// The merged object without what the manager applied last time (`last`), does not apply now (`set`), and nobody
    /// else owns.
    fn without_forsaken(&self, merged: Value, set: &FieldSet, others: &Managers, last: &FieldSet) -> Value {
        let named = |set: FieldSet| with_named_fields(self.shape, set);
        let last = named(last.clone());
        let without_last = remove(self.shape, &merged, &last);
        let unowned = named(paths(self.shape, &merged)).difference(&named(paths(self.shape, &without_last)));
        drop(without_last);
        // What was removed comes back where someone owns it, …
        let owned = others.0.values().map(|owned| &owned.set).chain([set]);
        let unowned = unowned.difference(&named(FieldSet::union_of(owned.cloned())));
        let without_unowned = remove(self.shape, &merged, &unowned);
        drop(unowned);
        // … and where the manager did not own it.
        let left = named(paths(self.shape, &without_unowned));
        drop(without_unowned);
        let gone = named(paths(self.shape, &merged)).difference(&left).intersection(&last);
        drop(left);
        remove(self.shape, &merged, &gone)
    }

    /// The fields that kubectl's client-side apply set to what they still are: when a user turns from client-side
    /// to server-side apply, these are not in conflict.
    fn tolerated(&self) -> Option<FieldSet> {
        let annotation = self
            .live
            .get("metadata")?
            .get("annotations")?
            .get(LAST_APPLIED)?
            .as_str()?;
        let last: Value = serde_json::from_str(annotation).ok()?;
        if last.get("apiVersion").and_then(Value::as_str) != Some(self.api_version) {
            return None;
        }
        let changed = compare(self.shape, &last, self.live).all();
        Some(paths(self.shape, &last).difference(&changed))
    }
}

fn refuse_conflicts(others: &Managers, changed: &FieldSet, tolerated: Option<&FieldSet>) -> Result<(), NotApplied> {
    let sets = others.0.iter().map(|(manager, owned)| {
        let set = owned.set.intersection(changed);
        let set = match tolerated {
            Some(tolerated) => set.difference(tolerated),
            None => set,
        };
        (manager, set)
    });
    let sets: BTreeMap<&Manager, FieldSet> = sets.filter(|(_, set)| !set.is_empty()).collect();
    match sets.is_empty() {
        true => Ok(()),
        false => Err(NotApplied::Conflicts(conflicts(&sets))),
    }
}

/// An object without its `managedFields`, which are not copied first.
fn without_managed_fields(object: &Value) -> Value {
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    let fields = fields.iter().map(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            let metadata = metadata.iter().filter(|(name, _)| *name != "managedFields");
            let metadata = metadata.map(|(name, value)| (name.clone(), value.clone()));
            (name.clone(), Value::Object(metadata.collect()))
        }
        value => (name.clone(), value.clone()),
    });
    Value::Object(fields.collect())
}

/// What kubectl's client-side apply would say that it applied.
fn last_applied(applied: &Value) -> String {
    let mut applied = Cow::Borrowed(applied);
    if applied
        .pointer("/metadata/annotations")
        .is_some_and(|annotations| annotations.get(LAST_APPLIED).is_some())
        && let Some(Value::Object(annotations)) = applied.to_mut().pointer_mut("/metadata/annotations")
    {
        annotations.remove(LAST_APPLIED);
    }
    format!("{applied}\n")
}

/// Keeps the annotation of kubectl's client-side apply, where it is there, in step with what was applied.
fn renew_last_applied(object: &mut Value, applied: String) {
    let annotation = object
        .pointer_mut("/metadata/annotations")
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    if let Some(Value::String(text)) = annotation.filter(|value| value.as_str().is_some_and(|text| !text.is_empty())) {
        *text = applied;
    }
}
