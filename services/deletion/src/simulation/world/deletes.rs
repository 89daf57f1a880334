//! What API servers make of the deletions that users ask them for.

use super::{Refusal, World};
use crate::object::Key;

impl World {
    /// A user deletes an object. Whoever does so later gets the same answer: the first one counts, and no watch hears
    /// of the others.
    pub(in super::super) fn delete(&mut self, key: &Key) -> Result<(), Refusal> {
        let known = self.servers.get(key)?.ok_or(Refusal::Gone)?;
        if known.terminating {
            return Ok(());
        }
        let now = self.servers.now();
        let deleted = self.write(key, None, None, |object| {
            (object.terminating, object.asked, object.deleted_at) = (true, true, now);
        });
        deleted.map(drop)
    }
}
