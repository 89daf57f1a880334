//! Another kind, whose objects those of the simulated kind own, as far as an ingester asks for its rows and for its
//! objects in the cluster. The ingester of that kind is not simulated: what an object owns has left after some
//! questions.

use std::collections::BTreeMap;

use kindex_model::object::{Object, Uid};
use kindex_query::Life;
use serde_json::json;

use super::thing::{NAMESPACE, PART};

/// The most answers by which an object owns something live.
const FOUND_MAX: u32 = 2;

/// How often SQL or the cluster was asked for what each object owns.
#[derive(Clone, Debug, Default)]
pub struct OwnedElsewhere(BTreeMap<Uid, u32>);

impl OwnedElsewhere {
    /// Answers whether something that the object owns is there.
    pub(crate) fn ask(&mut self, uid: &Uid) -> bool {
        *self.0.entry(uid.clone()).or_default() += 1;
        !self.has_left(uid)
    }

    /// Whether an ingester was told that nothing is there any more that the object owns.
    fn has_left(&self, uid: &Uid) -> bool {
        self.0.get(uid).is_some_and(|asked| *asked > answers_before(uid))
    }

    /// An object is archived only after it was seen that what it owns has left.
    ///
    /// # Errors
    /// If it is archived before.
    pub(crate) fn owners_leave_last(&self, uid: &Uid, before: Option<Life>, after: Life) -> Result<(), String> {
        let is_archived = after == Life::Archived && before != Some(Life::Archived);
        if is_archived && !self.has_left(uid) {
            return Err(format!("{uid} was archived before what it owns"));
        }
        Ok(())
    }
}

/// An object that the one of this name owns.
pub(crate) fn part_of(name: &str) -> Object {
    let text = json!({
        "apiVersion": PART.api_version(),
        "kind": PART.name,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": format!("part-of-{name}"), "resourceVersion": "1"},
        "spec": {"thing": name},
    });
    Object::parse_str(&text.to_string()).expect("an object")
}

/// How many answers say that what an object owns is there. Some objects own nothing.
fn answers_before(uid: &Uid) -> u32 {
    uid.0.bytes().map(u32::from).sum::<u32>() % (FOUND_MAX + 1)
}
