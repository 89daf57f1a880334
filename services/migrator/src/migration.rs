//! What the trigger has to know of a `StorageVersionMigration`.

use jiff::Timestamp;

use crate::hash::Hash;
use crate::state::Definition;

/// One `StorageVersionMigration` of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`, the condition of its deletion.
    pub uid: String,
    /// What it brings objects to.
    pub target: Target,
    /// Where it stands.
    pub progress: Progress,
}

/// The version that a migration is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The hash; `None` for a migration that no migrator has begun yet.
    pub hash: Option<Hash>,
    /// The definition at that time, where the resource has one.
    pub definition: Option<Definition>,
}

/// The conditions of a migration, of which one is true at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// None is.
    Pending,
    /// `Running`.
    Running,
    /// `Succeeded`: every object was verified to be in the target version.
    Succeeded,
    /// `Failed`.
    Failed {
        /// `lastUpdateTime` of the condition.
        since: Timestamp,
        /// What has to change before another one can succeed.
        cause: Cause,
    },
}

/// Why a migration failed, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Refusals and the like: another definition may end them, or time.
    Refused,
    /// The version that it was for was not the current one any more, or the API servers wrote in different ones.
    Outdated,
    /// A right was missing.
    Forbidden,
}

impl Cause {
    /// Whether the cause can go away without a change of the definition, so that it has to be looked for.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Outdated | Self::Forbidden => true,
            Self::Refused => false,
        }
    }
}
