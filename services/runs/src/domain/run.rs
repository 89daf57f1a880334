//! Runs: their states, how one is opened and ended, and what is known of one.

use crate::wire::v1::{ErrorDetail, GitInfo, RunStatus, SystemInfo};

use super::ids::{ProjectName, RunId};

/// The state of a run, numbered as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Takes in points.
    Running = 1,
    /// Ended well.
    Finished = 2,
    /// Ended with an error.
    Failed = 3,
    /// Silent for too long; can be resumed.
    Crashed = 4,
    /// Ended by a person.
    Killed = 5,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Running, Self::Finished, Self::Failed, Self::Crashed, Self::Killed];

    /// As a column and the wire number it.
    #[must_use]
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Of what a column holds.
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }

    /// Whether the run has ended for good.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Killed)
    }

    /// As REST and people spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::Killed => "killed",
        }
    }

    /// Of how REST and people spell it.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// As a message says it.
    #[must_use]
    pub const fn to_wire(self) -> RunStatus {
        match self {
            Self::Running => RunStatus::Running,
            Self::Finished => RunStatus::Finished,
            Self::Failed => RunStatus::Failed,
            Self::Crashed => RunStatus::Crashed,
            Self::Killed => RunStatus::Killed,
        }
    }
}

/// A resume token after its signature and expiry were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresentedToken {
    /// None was sent.
    Absent,
    /// Forged, or no token at all.
    Invalid,
    /// Signed by us, too long ago.
    Expired,
    /// Signed by us and in time.
    Signed {
        /// The run that it was issued for.
        run: RunId,
        /// Which of the run's tokens it is.
        generation: i64,
    },
}

/// A request to open a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// The project.
    pub project: ProjectName,
    /// An id is made if absent.
    pub run: Option<RunId>,
    /// May be empty.
    pub name: String,
    /// May be empty.
    pub description: String,
    /// Keys and values that fit the limits.
    pub tags: Vec<(String, String)>,
    /// Names and values that fit the limits.
    pub params: Vec<(String, String)>,
    /// The machine.
    pub system_info: Option<SystemInfo>,
    /// The checkout.
    pub git_info: Option<GitInfo>,
    /// The run that this one belongs to.
    pub parent: Option<RunId>,
    /// The user of the key.
    pub user: String,
    /// What was sent as the resume token.
    pub token: PresentedToken,
    /// What was dropped.
    pub warnings: Vec<ErrorDetail>,
}

/// A run that was opened: what its next token is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The run.
    pub run: RunId,
    /// Of its new token.
    pub generation: i64,
    /// The highest sequence without a gap below it; 0 for none.
    pub checkpoint: i64,
    /// The run was there before.
    pub resumed: bool,
    /// Those of the request and those of the store.
    pub warnings: Vec<ErrorDetail>,
    /// In nanoseconds since the epoch.
    pub server_time: i64,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// In nanoseconds since the epoch.
    pub server_time: i64,
    /// The run has crashed: it has to be resumed, and what was not answered sent again.
    pub request_resync: bool,
}

/// A request to end a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishRun {
    /// The run.
    pub run: RunId,
    /// As it was sent.
    pub status: i32,
    /// Of the process.
    pub exit_code: Option<i32>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// Final values by name.
    pub summary: Vec<(String, String)>,
    /// What was dropped.
    pub warnings: Vec<ErrorDetail>,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// In nanoseconds.
    pub duration: i64,
    /// The sum of all accepted points.
    pub points: u64,
    /// How many were finalized.
    pub artifacts: u64,
    /// In nanoseconds since the epoch.
    pub finished_at: i64,
    /// Those of the request.
    pub warnings: Vec<ErrorDetail>,
}

/// What is known of a run, without its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its number in the store.
    pub number: i64,
    /// Its id.
    pub run: RunId,
    /// Its project.
    pub project: ProjectName,
    /// May be empty.
    pub name: String,
    /// May be empty.
    pub description: String,
    /// Its state.
    pub status: Status,
    /// By key.
    pub tags: Vec<(String, String)>,
    /// By name.
    pub params: Vec<(String, String)>,
    /// By name.
    pub summary: Vec<(String, String)>,
    /// The machine.
    pub system_info: Option<SystemInfo>,
    /// The checkout.
    pub git_info: Option<GitInfo>,
    /// The run that it belongs to.
    pub parent: Option<RunId>,
    /// The user of the key that opened it.
    pub user: String,
    /// In nanoseconds since the epoch.
    pub created_at: i64,
    /// In nanoseconds since the epoch.
    pub last_seen_at: i64,
    /// In nanoseconds since the epoch.
    pub finished_at: Option<i64>,
    /// Of the process.
    pub exit_code: Option<i32>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// The sum of all accepted points.
    pub points: u64,
    /// How many were finalized.
    pub artifacts: u64,
}
