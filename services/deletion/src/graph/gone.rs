//! The objects that went, as far as that is remembered, against reports that come late.

use std::collections::{BTreeMap, VecDeque};

use kindex_model::object::ResourceVersion;

/// How many of them are remembered.
const GONE_MAX: usize = 65_536;

/// Their uids.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// The oldest first.
    uids: VecDeque<String>,
    /// Of each one, the version up to which all that is reported of it is late.
    until: BTreeMap<String, ResourceVersion>,
}

impl Gone {
    /// Whether this one went.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.until.contains_key(uid)
    }

    /// Whether this one went, and a report of it in this version is from before that.
    pub(super) fn is_late(&self, uid: &str, version: ResourceVersion) -> bool {
        self.until.get(uid).is_some_and(|until| version <= *until)
    }

    /// One went, and what is reported of it up to this version is late.
    pub(super) fn add(&mut self, uid: &str, until: ResourceVersion) {
        if let Some(known) = self.until.get_mut(uid) {
            *known = until.max(*known);
            return;
        }
        self.until.insert(uid.to_owned(), until);
        self.uids.push_back(uid.to_owned());
        if self.uids.len() > GONE_MAX
            && let Some(oldest) = self.uids.pop_front()
        {
            self.until.remove(&oldest);
        }
    }

    /// One came back.
    pub(super) fn take_back(&mut self, uid: &str) {
        if self.until.remove(uid).is_some() {
            self.uids.retain(|gone| gone != uid);
        }
    }

    /// As if none had gone.
    #[cfg(test)]
    pub(super) fn clear(&mut self) {
        self.until.clear();
    }
}
