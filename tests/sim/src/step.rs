//! The steps that an ingester can have in flight when a fault happens.

use kindex_runtime::message::{Effect, Output};

use super::thing::FINALIZER;

/// One sort of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Reads what an earlier run saved.
    Load,
    /// Asks the cluster for its version.
    Probe,
    /// Reads a page of a list.
    List,
    /// Reads the rows of a page.
    PageRows,
    /// Reads a page of all rows.
    Scan,
    /// Opens a watch.
    OpenWatch,
    /// Has a watch open.
    Watch,
    /// Reads the rows of a batch, or asks for those of what an object owns.
    ReadRows,
    /// Writes a batch.
    Write,
    /// Asks for one object.
    Get,
    /// Adds our finalizer.
    Adopt,
    /// Removes our finalizer.
    Release,
    /// Deletes an object.
    Delete,
    /// Records an object that the database refuses.
    Quarantine,
    /// Forgets a row's version, or what a history tells of a time that was lost.
    Rewind,
    /// Saves the position.
    Save,
    /// Removes the record of a refusal.
    Unquarantine,
    /// Waits, for another attempt or for `deletionDelay`, and has nothing under way.
    Pause,
}

/// What a step asks of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads from the cluster.
    ClusterRead,
    /// Changes an object in the cluster.
    ClusterWrite,
    /// Reads from the database.
    DatabaseRead,
    /// Changes something in the database.
    DatabaseWrite,
    /// Follows the cluster.
    Stream,
    /// Asks nothing.
    Idle,
}

impl Step {
    /// All sorts, in order.
    pub const ALL: [Self; 18] = [
        Self::Load,
        Self::Probe,
        Self::List,
        Self::PageRows,
        Self::Scan,
        Self::OpenWatch,
        Self::Watch,
        Self::ReadRows,
        Self::Write,
        Self::Get,
        Self::Adopt,
        Self::Release,
        Self::Delete,
        Self::Quarantine,
        Self::Rewind,
        Self::Save,
        Self::Unquarantine,
        Self::Pause,
    ];

    /// The sort of a request.
    pub fn of(output: &Output) -> Self {
        match output {
            Output::Load => Self::Load,
            Output::Probe => Self::Probe,
            Output::List { .. } => Self::List,
            Output::ReadPageRows(_) => Self::PageRows,
            Output::Scan { .. } => Self::Scan,
            Output::Watch(_) | Output::StopWatch => Self::OpenWatch,
            Output::ReadRows(..) | Output::Effect(_, Effect::FindOwned(_)) => Self::ReadRows,
            Output::Write(..) => Self::Write,
            Output::Effect(_, Effect::Get(_)) => Self::Get,
            Output::Effect(_, Effect::SetFinalizers { finalizers, .. }) => {
                if finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
                    Self::Adopt
                } else {
                    Self::Release
                }
            }
            Output::Effect(_, Effect::Delete(_)) => Self::Delete,
            Output::Effect(_, Effect::Quarantine { .. }) => Self::Quarantine,
            Output::SetHistoryAside(_) | Output::Rewind(_) | Output::Effect(_, Effect::Rewind) => Self::Rewind,
            Output::SaveCheckpoint { .. } => Self::Save,
            Output::ReleaseQuarantine(..) => Self::Unquarantine,
            Output::Notify(_) => Self::Pause,
        }
    }

    /// What it asks of whom.
    pub fn class(self) -> Class {
        match self {
            Self::Probe | Self::List | Self::Get | Self::OpenWatch => Class::ClusterRead,
            Self::Adopt | Self::Release | Self::Delete => Class::ClusterWrite,
            Self::Load | Self::PageRows | Self::Scan | Self::ReadRows => Class::DatabaseRead,
            Self::Write | Self::Quarantine | Self::Rewind | Self::Save | Self::Unquarantine => Class::DatabaseWrite,
            Self::Watch => Class::Stream,
            Self::Pause => Class::Idle,
        }
    }

    /// A word of at most six letters, for the head of a column.
    pub fn short(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Probe => "probe",
            Self::List => "list",
            Self::PageRows => "page",
            Self::Scan => "scan",
            Self::OpenWatch => "open",
            Self::Watch => "watch",
            Self::ReadRows => "read",
            Self::Write => "write",
            Self::Get => "get",
            Self::Adopt => "adopt",
            Self::Release => "releas",
            Self::Delete => "delete",
            Self::Quarantine => "quaran",
            Self::Rewind => "rewind",
            Self::Save => "save",
            Self::Unquarantine => "unquar",
            Self::Pause => "pause",
        }
    }
}
