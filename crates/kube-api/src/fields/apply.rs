//! Server-side apply: a configuration merged into an object, with the fields taken out that its manager no longer
//! applies. Refuses to validate the outcome and to fill in defaults.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conflict::{Conflict, conflicts};
use super::managers::{Manager, Managers, Operation, Owned, time_text};
use super::set::FieldSet;
use super::shape::Shape;
use super::update::own_changes;
use super::walk::{Comparison, compare, merge, paths, remove, with_named_fields};
use super::{UNOWNED, put_managed_fields, take_managed_fields};
use crate::schema::Structural;

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
/// The fields that other managers own and that `applied` would change.
#[expect(
    clippy::too_many_arguments,
    reason = "the parameters of an apply request, each of another kind"
)]
pub fn apply(
    schema: Option<&Structural>,
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
    subresource: Option<&str>,
    api_version: &str,
    now: Timestamp,
) -> Result<Value, Vec<Conflict>> {
    let mut bare = live.cloned().unwrap_or_else(|| json!({}));
    let stored = take_managed_fields(&mut bare);
    let mut managers = stored.as_ref().and_then(Managers::read).unwrap_or_default();
    if managers.0.is_empty() && live.is_some() {
        let first = Manager::new(BEFORE_FIRST_APPLY, Operation::Update, api_version, None);
        own_changes(&mut managers, schema, &json!({}), &bare, &first, api_version, now);
    }
    let request = Request {
        shape: Shape::of_object(schema),
        live: &bare,
        applied,
        manager: Manager::new(manager, Operation::Apply, api_version, subresource),
        api_version,
    };
    let tolerated = (manager == KUBECTL).then(|| request.tolerated()).flatten();
    let (mut object, mut managers) = request.merge(managers, force, tolerated.as_ref())?;
    let before = stored.as_ref().and_then(Managers::read).unwrap_or_default();
    let unchanged = object == bare;
    let same_set = |owned: &Owned| {
        before
            .0
            .get(&request.manager)
            .is_some_and(|before| before.set == owned.set)
    };
    if let Some(owned) = managers.0.get_mut(&request.manager)
        && !(unchanged && same_set(owned))
    {
        owned.time = Some(time_text(now));
    }
    if manager == KUBECTL {
        renew_last_applied(&mut object, applied);
    }
    put_managed_fields(&mut object, &managers);
    Ok(object)
}

struct Request<'a> {
    shape: Shape<'a>,
    live: &'a Value,
    applied: &'a Value,
    manager: Manager,
    api_version: &'a str,
}

impl Request<'_> {
    fn merge(
        &self,
        mut managers: Managers,
        force: bool,
        tolerated: Option<&FieldSet>,
    ) -> Result<(Value, Managers), Vec<Conflict>> {
        let merged = merge(self.shape, self.live, self.applied);
        let set = paths(self.shape, self.applied);
        let last = managers.0.remove(&self.manager);
        let time = last.as_ref().and_then(|last| last.time.clone());
        let last = last.map(|last| last.set).unwrap_or_default();
        managers.0.insert(
            self.manager.clone(),
            Owned {
                set,
                api_version: self.api_version.to_owned(),
                time,
            },
        );
        let object = self.without_forsaken(merged, &managers, &last);
        let Comparison {
            removed,
            modified,
            added,
        } = compare(self.shape, self.live, &object);
        let changed = modified.union(&added);
        if !force {
            self.refuse_conflicts(&managers, &changed, tolerated)?;
        }
        managers.release(&changed.union(&removed), Some(&self.manager));
        if let Some(owned) = managers.0.get_mut(&self.manager) {
            owned.set = owned.set.difference(&UNOWNED);
        }
        managers.0.retain(|_, owned| !owned.set.is_empty());
        Ok((object, managers))
    }

    fn refuse_conflicts(
        &self,
        managers: &Managers,
        changed: &FieldSet,
        tolerated: Option<&FieldSet>,
    ) -> Result<(), Vec<Conflict>> {
        let others = managers.0.iter().filter(|(manager, _)| **manager != self.manager);
        let sets: BTreeMap<&Manager, FieldSet> = others
            .map(|(manager, owned)| {
                let set = owned.set.intersection(changed);
                (
                    manager,
                    tolerated.map_or_else(|| set.clone(), |tolerated| set.difference(tolerated)),
                )
            })
            .filter(|(_, set)| !set.is_empty())
            .collect();
        if sets.is_empty() { Ok(()) } else { Err(conflicts(&sets)) }
    }

    /// The merged object without what the manager applied last time (`last`), does not apply now, and nobody else owns.
    fn without_forsaken(&self, merged: Value, managers: &Managers, last: &FieldSet) -> Value {
        if last.is_empty() {
            return merged;
        }
        let named = |set: &FieldSet| with_named_fields(self.shape, set);
        let without_last = remove(self.shape, &merged, &named(last));
        let mut owned = FieldSet::default();
        for manager in managers.0.values() {
            owned.absorb(manager.set.clone());
        }
        let all = named(&paths(self.shape, &merged));
        // What was removed comes back where someone owns it, …
        let left = named(&paths(self.shape, &without_last)).union(&named(&owned));
        let without_unowned = remove(self.shape, &merged, &all.difference(&left));
        // … and where the manager did not own it.
        let left = named(&paths(self.shape, &without_unowned));
        remove(self.shape, &merged, &all.difference(&left).intersection(&named(last)))
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
        let Comparison {
            removed,
            modified,
            added,
        } = compare(self.shape, &last, self.live);
        Some(
            paths(self.shape, &last)
                .difference(&modified)
                .difference(&added)
                .difference(&removed),
        )
    }
}

/// Keeps the annotation of kubectl's client-side apply, where it is there, in step with what was applied.
fn renew_last_applied(object: &mut Value, applied: &Value) {
    let annotation = object
        .pointer_mut("/metadata/annotations")
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    if let Some(Value::String(text)) = annotation.filter(|value| value.as_str().is_some_and(|text| !text.is_empty())) {
        let mut applied = applied.clone();
        if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
            annotations.remove(LAST_APPLIED);
        }
        *text = format!("{applied}\n");
    }
}
