//! Which call is allowed in which state, as data.

use crate::domain::{RunId, Status};
use crate::refusal::Refusal;

use super::refusals;

/// A call, with what of its content the table depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `InitRun` without a token.
    Init,
    /// `InitRun` with a token.
    InitWithToken,
    /// `LogMetrics` with an id that is known.
    LogKnown,
    /// `LogMetrics` with an id that is new.
    LogNew,
    /// `LogParams`.
    Params,
    /// `LogTags`.
    Tags,
    /// `CreateArtifactUpload`.
    CreateUpload,
    /// `FinalizeArtifactUpload`.
    FinalizeUpload,
    /// `Heartbeat`.
    Heartbeat,
    /// `FinishRun`.
    Finish,
}

/// What the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Makes the run.
    Create,
    /// Does what it is for.
    Allowed,
    /// Returns the run as it is.
    Same,
    /// Depends on the token.
    ByToken,
    /// Depends on the status that is asked for.
    ByStatus,
    /// Allowed if it says nothing new.
    Repeat,
    /// Answered with the request to resume.
    Resync,
    /// Refused: no such run.
    Unknown,
    /// Refused: a token is needed.
    TokenRequired,
    /// Refused: the run has crashed.
    Crashed,
    /// Refused: the run has ended.
    Terminal,
}

use Rule::{Allowed, ByStatus, ByToken, Crashed, Create, Repeat, Resync, Same, Terminal, TokenRequired, Unknown};

/// Each call with its rules for an unknown, a running, a crashed and an ended run.
const TABLE: [(Call, [Rule; 4]); 10] = [
    (Call::Init, [Create, Same, TokenRequired, Terminal]),
    (Call::InitWithToken, [Unknown, Same, ByToken, Terminal]),
    (Call::LogKnown, [Unknown, Same, Same, Same]),
    (Call::LogNew, [Unknown, Allowed, Crashed, Terminal]),
    (Call::Params, [Unknown, Allowed, Repeat, Repeat]),
    (Call::Tags, [Unknown, Allowed, Allowed, Allowed]),
    (Call::CreateUpload, [Unknown, Allowed, Crashed, Terminal]),
    (Call::FinalizeUpload, [Unknown, Allowed, Allowed, Allowed]),
    (Call::Heartbeat, [Unknown, Allowed, Resync, Terminal]),
    (Call::Finish, [Unknown, Allowed, ByStatus, ByStatus]),
];

/// The rule of a call in a state; none is an unknown run.
#[must_use]
pub fn rule(call: Call, status: Option<Status>) -> Rule {
    let column = match status {
        None => 0,
        Some(Status::Running) => 1,
        Some(Status::Crashed) => 2,
        Some(Status::Finished | Status::Failed | Status::Killed) => 3,
    };
    let row = TABLE.iter().find(|(listed, _)| *listed == call);
    row.expect("every call is in the table").1[column]
}

/// The rule of a call, or the refusal that it is.
///
/// # Errors
///
/// Where the state forbids the call.
pub fn permit(call: Call, run: &RunId, status: Option<Status>) -> Result<Rule, Refusal> {
    let rule = rule(call, status);
    match (rule, status) {
        (Unknown, _) => Err(refusals::unknown_run(run)),
        (TokenRequired, _) => Err(refusals::token_required(run)),
        (Crashed, _) => Err(refusals::run_crashed(run)),
        (Terminal, Some(status)) => Err(refusals::run_terminal(run, status)),
        _ => Ok(rule),
    }
}
