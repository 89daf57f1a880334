//! The progress of a backfill, saved in the database so that an interrupted run can resume.

use kindex_model::object::ResourceVersion;
use serde::{Deserialize, Serialize};

use crate::pages::Start;

/// The saved progress: everything before it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResumePoint {
    /// Where the next page begins.
    continue_token: String,
    /// Version of the list that the token belongs to.
    version: u64,
    /// Objects on the pages before.
    objects: u64,
    /// Whether the kind had neither rows nor a checkpoint when the first run began.
    fresh: bool,
}

impl ResumePoint {
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

    /// Where the list is resumed.
    pub(super) fn into_start(self) -> Start {
        Start {
            continue_token: self.continue_token,
            version: ResourceVersion(self.version),
            objects: self.objects,
        }
    }

    /// The text that is saved.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a resume point is plain data")
    }

    /// Parses a saved text; `None` for a text of another program, so that the list starts from the beginning.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
