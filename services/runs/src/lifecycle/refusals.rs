//! What is said when the state of a run, its project or its token forbids a call.

use crate::domain::{RunId, Status};
use crate::refusal::{Code, Refusal};

/// No such run.
#[must_use]
pub(crate) fn unknown_run(run: &RunId) -> Refusal {
    let message = format!("There is no run {run}. InitRun opens one, and ListRuns shows those of a project.");
    Refusal::new(Code::NotFound, "RUN_NOT_FOUND", message).at("run_id")
}

/// The run has crashed.
#[must_use]
pub(crate) fn run_crashed(run: &RunId) -> Refusal {
    let message = format!(
        "Run {run} is crashed: nothing was heard of it for too long. Resume it by InitRun with its resume token, \
         then send this again."
    );
    Refusal::new(Code::FailedPrecondition, "RUN_CRASHED", message).at("run_id")
}

/// The run has ended.
#[must_use]
pub(crate) fn run_terminal(run: &RunId, status: Status) -> Refusal {
    let message = format!("Run {run} has ended, it is {}. Open a new run.", status.word());
    Refusal::new(Code::FailedPrecondition, "RUN_TERMINAL", message).at("run_id")
}

/// The run takes in nothing new in this state.
#[must_use]
pub(crate) fn closed(run: &RunId, status: Status) -> Refusal {
    match status {
        Status::Crashed => run_crashed(run),
        Status::Running | Status::Finished | Status::Failed | Status::Killed => run_terminal(run, status),
    }
}

/// The run has ended otherwise.
#[must_use]
pub(crate) fn already_ended(run: &RunId, status: Status) -> Refusal {
    let message = format!(
        "Run {run} has ended already, it is {}. A status that was given is kept.",
        status.word()
    );
    Refusal::new(Code::FailedPrecondition, "RUN_TERMINAL", message).at("status")
}

/// A crashed run cannot have finished.
#[must_use]
pub(crate) fn finish_needs_resume(run: &RunId) -> Refusal {
    let message = format!(
        "Run {run} is crashed and can end as failed or killed. To end it as finished, resume it by InitRun with its \
         resume token first."
    );
    Refusal::new(Code::FailedPrecondition, "RUN_CRASHED", message).at("status")
}

/// No run ends with this status.
#[must_use]
pub(crate) fn not_an_end(status: i32) -> Refusal {
    let message = format!("A run ends as finished, failed or killed, not with status {status}.");
    Refusal::new(Code::InvalidArgument, "INVALID_STATUS", message).at("status")
}

/// The run belongs to another project.
#[must_use]
pub(crate) fn other_project(run: &RunId) -> Refusal {
    let message = format!("Run id {run} cannot be used in this project. Choose another id, or send none.");
    Refusal::new(Code::PermissionDenied, "RUN_ID_DENIED", message).at("run_id")
}

/// A crashed run is resumed by its token.
#[must_use]
pub(crate) fn token_required(run: &RunId) -> Refusal {
    let message = format!("Run {run} is crashed. Send the resume token of its last InitRun.");
    Refusal::new(Code::FailedPrecondition, "RESUME_TOKEN_REQUIRED", message).at("resume_token")
}

/// The token was not signed by this server, or for another run.
#[must_use]
pub(crate) fn token_invalid() -> Refusal {
    let message = "The resume token is not one of this run. Send the token of its last InitRun.";
    Refusal::new(Code::PermissionDenied, "RESUME_TOKEN_INVALID", message).at("resume_token")
}

/// The token is too old.
#[must_use]
pub(crate) fn token_expired() -> Refusal {
    let message = "The resume token has expired: tokens are valid for seven days. Open a new run.";
    Refusal::new(Code::PermissionDenied, "RESUME_TOKEN_EXPIRED", message).at("resume_token")
}

/// A newer token was shown.
#[must_use]
pub(crate) fn token_used() -> Refusal {
    let message = "The resume token was replaced: a newer one of the run was used. Send the token of its last InitRun.";
    Refusal::new(Code::PermissionDenied, "RESUME_TOKEN_USED", message).at("resume_token")
}
