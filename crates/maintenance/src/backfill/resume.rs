//! Where an interrupted backfill goes on, as the database remembers it.

use kindex_model::object::ResourceVersion;
use serde::{Deserialize, Serialize};

use crate::pages::Start;

/// The name under which it is remembered for a kind.
pub(super) const STATE: &str = "backfill";

/// Everything up to here is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bookmark {
    /// Where the next page begins.
    continue_token: String,
    /// Version of the list that the token belongs to.
    version: u64,
    /// Objects on the pages before.
    objects: u64,
    /// Whether the kind had neither rows nor a checkpoint when the first run began.
    fresh: bool,
}

impl Bookmark {
    pub(super) fn new(continue_token: String, version: ResourceVersion, objects: u64, fresh: bool) -> Self {
        Self {
            continue_token,
            version: version.0,
            objects,
            fresh,
        }
    }

    /// Whether nothing but backfills has written rows of the kind.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Where the walk over the list goes on.
    pub(super) fn into_start(self) -> Start {
        Start {
            continue_token: self.continue_token,
            version: ResourceVersion(self.version),
            objects: self.objects,
        }
    }

    /// What the database holds.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a bookmark is plain data")
    }

    /// Reads it back; a text of another program is no bookmark, and the list begins anew.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
