//! Ownership after a create, update or patch: what changed belongs to the manager of the request. Refuses to change
//! the object beyond its `managedFields`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::managers::{Manager, Managers, Operation, Owned};
use super::shape::Shape;
use super::walk::{Comparison, compare_up_to};
use super::{TooLarge, UNOWNED, put_managed_fields, stored_managers, take_managed_fields};
use crate::meta;
use crate::schema::Structural;
use crate::size::{OBJECT_BYTES_MAX, text_bytes};

/// `after` with its `managedFields` brought up to date. `before` is the stored object, none for a create;
/// `subresource` is the one that the request went through.
///
/// # Guarantees
/// A field that changed belongs to `manager` alone; a field that was removed belongs to nobody; a manager whose
/// fields did not change keeps its entry, time included. An empty list or a list of one empty entry in `after`
/// resets ownership; an object that has no managers is not tracked until it is applied.
///
/// # Assumptions
/// `after` is what will be stored: parts that the request could not change are as in `before`.
///
/// # Errors
/// With the paths of what changed, `after` would be larger than an object may be. They are not all gathered first.
pub fn update(
    schema: Option<&Structural>,
    before: Option<&Value>,
    mut after: Value,
    manager: &str,
    subresource: Option<&str>,
    now: Timestamp,
) -> Result<Value, TooLarge> {
    let sent = take_managed_fields(&mut after);
    let stored = || before.and_then(stored_managers);
    let mut managers = starting_point(sent.as_ref().filter(|_| subresource.is_none()), stored);
    drop(sent);
    if managers.0.is_empty() && before.is_some() {
        return Ok(after);
    }
    let api_version = after
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let manager = Manager::new(manager, Operation::Update, &api_version, subresource);
    let nothing = json!({});
    let live = before.unwrap_or(&nothing);
    own_changes(&mut managers, schema, live, &after, &manager, &api_version, now)?;
    managers.cap();
    put_managed_fields(&mut after, managers);
    Ok(after)
}

/// The managers that the request begins with: those it sent, unless it sent none that can be read, else the stored
/// ones.
fn starting_point(sent: Option<&Value>, stored: impl FnOnce() -> Option<Managers>) -> Managers {
    if let Some(Value::Array(entries)) = sent {
        let is_reset = match entries.as_slice() {
            [] => true,
            [only] => only.as_object().is_some_and(serde_json::Map::is_empty),
            _ => false,
        };
        if is_reset {
            return Managers::default();
        }
    }
    let has_any = |managers: &Managers| !managers.0.is_empty();
    let sent = sent.and_then(Managers::read).filter(has_any);
    sent.or_else(|| stored().filter(has_any)).unwrap_or_default()
}

/// Gives what changed from `live` to `after` to `manager`, where the object has room for it.
pub(super) fn own_changes(
    managers: &mut Managers,
    schema: Option<&Structural>,
    live: &Value,
    after: &Value,
    manager: &Manager,
    api_version: &str,
    now: Timestamp,
) -> Result<(), TooLarge> {
    let room = (OBJECT_BYTES_MAX + UNOWNED.text_bytes()).saturating_sub(text_bytes(after));
    let Comparison {
        removed,
        modified,
        added,
    } = compare_up_to(room, Shape::of_object(schema), live, after)?;
    let changed = modified.union(added);
    managers.release(&removed, None);
    managers.release(&changed, None);
    let gained = changed.difference(&UNOWNED);
    if gained.is_empty() {
        return Ok(());
    }
    let last = managers.0.remove(manager).map(|owned| owned.set);
    let owned = Owned {
        set: last.unwrap_or_default().union(gained),
        api_version: api_version.to_owned(),
        time: Some(meta::time(now)),
    };
    managers.0.insert(manager.clone(), owned);
    Ok(())
}
