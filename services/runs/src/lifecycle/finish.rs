//! How `FinishRun` is answered.

use crate::domain::{RunId, Status};
use crate::refusal::Refusal;

use super::refusals;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// End the run with this status.
    End(Status),
    /// Answer what is stored: it has ended so already.
    Stored,
}

/// The status that a request asks for.
///
/// # Errors
///
/// Where no run ends with it.
pub(crate) fn finish_status(sent: i32) -> Result<Status, Refusal> {
    let status = Status::of_number(i64::from(sent)).filter(|status| status.is_terminal());
    status.ok_or_else(|| refusals::not_an_end(sent))
}

/// Decides on `FinishRun` for a run in a state.
///
/// # Errors
///
/// Where the state forbids it.
pub fn finish(run: &RunId, stored: Option<Status>, wanted: Status) -> Result<Ending, Refusal> {
    match stored {
        None => Err(refusals::unknown_run(run)),
        Some(Status::Running) => Ok(Ending::End(wanted)),
        Some(Status::Crashed) => match wanted {
            Status::Failed | Status::Killed => Ok(Ending::End(wanted)),
            Status::Finished | Status::Running | Status::Crashed => Err(refusals::finish_needs_resume(run)),
        },
        Some(ended) if ended == wanted => Ok(Ending::Stored),
        Some(ended) => Err(refusals::already_ended(run, ended)),
    }
}
