//! Rows of another kind, whose objects those of the simulated kind own, as far as an ingester asks for them. The
//! ingester of that kind is not simulated: it has archived what an object owns after some questions.

use std::collections::BTreeMap;

use kindex_model::object::Uid;
use kindex_query::Life;

/// The most answers by which an object owns something live.
const FOUND_MAX: u32 = 2;

/// How often SQL was asked for what each object owns.
#[derive(Clone, Debug, Default)]
pub struct OwnedElsewhere(BTreeMap<Uid, u32>);

impl OwnedElsewhere {
    /// Answers whether something that the object owns is live.
    pub(crate) fn ask(&mut self, uid: &Uid) -> bool {
        *self.0.entry(uid.clone()).or_default() += 1;
        !self.has_left(uid)
    }

    /// Whether an ingester was told that nothing is live any more that the object owns.
    fn has_left(&self, uid: &Uid) -> bool {
        self.0.get(uid).is_some_and(|asked| *asked > answers_before(uid))
    }

    /// An object is archived only after SQL has shown that what it owns has left.
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

/// How many answers say that what an object owns is live. Some objects own nothing.
fn answers_before(uid: &Uid) -> u32 {
    uid.0.bytes().map(u32::from).sum::<u32>() % (FOUND_MAX + 1)
}
