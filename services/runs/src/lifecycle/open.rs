//! How `InitRun` is answered.

use crate::domain::{PresentedToken, ProjectName, RunId, Status};
use crate::refusal::Refusal;

use super::refusals;
use super::table::{Call, Rule, permit};
use super::tokens::Tokens;

/// A run that was heard of more recently may have another writer.
const ACTIVE_WITHIN: i64 = 60_000_000_000;

/// What is stored of a run and matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Its project.
    pub project: ProjectName,
    /// Its state.
    pub status: Status,
    /// Which of its tokens count.
    pub tokens: Tokens,
    /// In nanoseconds since the epoch.
    pub last_seen_at: i64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Make the run, with its first token.
    Create,
    /// Answer the running run with a new token; how many seconds ago it was heard of, if that is recent.
    Join {
        /// For the warning.
        active_seconds: Option<i64>,
        /// The generation of the token that was shown, if it counts.
        shown: Option<i64>,
    },
    /// Set the crashed run to running, with a new token.
    Resume {
        /// The generation of the token that was shown.
        shown: i64,
    },
}

/// Decides on `InitRun` for a run id, of which `stored` is known.
///
/// # Errors
///
/// Where the project, the state or the token forbids it.
pub fn open(
    run: &RunId,
    project: &ProjectName,
    token: &PresentedToken,
    stored: Option<&RunFacts>,
    now: i64,
) -> Result<Opening, Refusal> {
    if stored.is_some_and(|stored| stored.project != *project) {
        return Err(refusals::other_project(run));
    }
    let call = match token {
        PresentedToken::Absent => Call::Init,
        PresentedToken::Invalid | PresentedToken::Expired | PresentedToken::Signed { .. } => Call::InitWithToken,
    };
    let rule = permit(call, run, stored.map(|stored| stored.status))?;
    let Some(stored) = stored else {
        return Ok(Opening::Create);
    };
    if rule == Rule::ByToken {
        let shown = check(run, token, stored.tokens)?;
        return Ok(Opening::Resume { shown });
    }
    let silent = now.saturating_sub(stored.last_seen_at);
    Ok(Opening::Join {
        shown: check(run, token, stored.tokens).ok(),
        active_seconds: (silent < ACTIVE_WITHIN).then_some(silent.max(0) / 1_000_000_000),
    })
}

/// The generation of a token that counts.
fn check(run: &RunId, token: &PresentedToken, tokens: Tokens) -> Result<i64, Refusal> {
    match token {
        PresentedToken::Absent => Err(refusals::token_required(run)),
        PresentedToken::Invalid => Err(refusals::token_invalid()),
        PresentedToken::Expired => Err(refusals::token_expired()),
        PresentedToken::Signed { run: issued_for, .. } if issued_for != run => Err(refusals::token_invalid()),
        PresentedToken::Signed { generation, .. } if !tokens.count(*generation) => Err(refusals::token_used()),
        PresentedToken::Signed { generation, .. } => Ok(*generation),
    }
}
