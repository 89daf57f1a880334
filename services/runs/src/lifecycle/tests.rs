//! Every cell of the table, every kind of token, and silence to the tick.

use super::*;
use crate::domain::{PresentedToken, ProjectName, RunId, Status};
use crate::refusal::Code;

fn run() -> RunId {
    RunId::new("r1")
}

fn facts(status: Status) -> RunFacts {
    RunFacts {
        project: ProjectName::new("p"),
        status,
        tokens: Tokens { shown: 3, newest: 5 },
        last_seen_at: 0,
    }
}

fn signed(run: &str, generation: i64) -> PresentedToken {
    PresentedToken::Signed {
        run: RunId::new(run),
        generation,
    }
}

/// Opens a run that is in a state; the reason of a refusal.
fn opened(status: Option<Status>, token: &PresentedToken) -> Result<Opening, (Code, &'static str)> {
    let stored = status.map(facts);
    let answer = open(&run(), &ProjectName::new("p"), token, stored.as_ref(), 1 << 60);
    answer.map_err(|refusal| (refusal.code, refusal.reason))
}

#[test]
fn the_state_table_holds() {
    use Rule::{Allowed, ByStatus, ByToken, Create, Repeat, Resync, Same};
    let denied = |code, reason| Err((code, reason));
    let unknown = || denied(Code::NotFound, "RUN_NOT_FOUND");
    let crashed = || denied(Code::FailedPrecondition, "RUN_CRASHED");
    let ended = || denied(Code::FailedPrecondition, "RUN_TERMINAL");
    let token = || denied(Code::FailedPrecondition, "RESUME_TOKEN_REQUIRED");
    let table = [
        (Call::Init, [Ok(Create), Ok(Same), token(), ended()]),
        (Call::InitWithToken, [unknown(), Ok(Same), Ok(ByToken), ended()]),
        (Call::LogKnown, [unknown(), Ok(Same), Ok(Same), Ok(Same)]),
        (Call::LogNew, [unknown(), Ok(Allowed), crashed(), ended()]),
        (Call::Params, [unknown(), Ok(Allowed), Ok(Repeat), Ok(Repeat)]),
        (Call::Tags, [unknown(), Ok(Allowed), Ok(Allowed), Ok(Allowed)]),
        (Call::CreateUpload, [unknown(), Ok(Allowed), crashed(), ended()]),
        (Call::FinalizeUpload, [unknown(), Ok(Allowed), Ok(Allowed), Ok(Allowed)]),
        (Call::Heartbeat, [unknown(), Ok(Allowed), Ok(Resync), ended()]),
        (Call::Finish, [unknown(), Ok(Allowed), Ok(ByStatus), Ok(ByStatus)]),
    ];
    for (call, cells) in table {
        let states = [
            vec![None],
            vec![Some(Status::Running)],
            vec![Some(Status::Crashed)],
            vec![Some(Status::Finished), Some(Status::Failed), Some(Status::Killed)],
        ];
        for (cell, states) in cells.into_iter().zip(states) {
            for state in states {
                let said = permit(call, &run(), state).map_err(|refusal| (refusal.code, refusal.reason));
                assert_eq!(said, cell, "{call:?} of {state:?}");
            }
        }
    }
}

#[test]
fn a_run_ends_as_the_table_says() {
    use Status::{Crashed, Failed, Finished, Killed, Running};
    for wanted in [Finished, Failed, Killed] {
        assert_eq!(finish(&run(), Some(Running), wanted), Ok(Ending::End(wanted)));
        for stored in [Finished, Failed, Killed] {
            let said = finish(&run(), Some(stored), wanted).map_err(|refusal| refusal.reason);
            let expected = if stored == wanted {
                Ok(Ending::Stored)
            } else {
                Err("RUN_TERMINAL")
            };
            assert_eq!(said, expected, "{stored:?} to {wanted:?}");
        }
        assert_eq!(
            finish(&run(), None, wanted).map_err(|refusal| refusal.code),
            Err(Code::NotFound)
        );
    }
    assert_eq!(finish(&run(), Some(Crashed), Failed), Ok(Ending::End(Failed)));
    assert_eq!(finish(&run(), Some(Crashed), Killed), Ok(Ending::End(Killed)));
    let refused = finish(&run(), Some(Crashed), Finished).map_err(|refusal| refusal.reason);
    assert_eq!(refused, Err("RUN_CRASHED"));
}

#[test]
fn only_ends_are_statuses_to_finish_with() {
    for sent in [0, 1, 4, 6, -1, 99] {
        assert_eq!(
            finish_status(sent).map_err(|refusal| refusal.code),
            Err(Code::InvalidArgument),
            "{sent}"
        );
    }
    assert_eq!(
        [2, 3, 5].map(finish_status),
        [Ok(Status::Finished), Ok(Status::Failed), Ok(Status::Killed)]
    );
}

#[test]
fn a_terminal_run_cannot_be_opened() {
    for status in [Status::Finished, Status::Failed, Status::Killed] {
        for token in [PresentedToken::Absent, signed("r1", 4)] {
            let said = opened(Some(status), &token);
            assert_eq!(said, Err((Code::FailedPrecondition, "RUN_TERMINAL")), "{status:?}");
        }
    }
}

#[test]
fn a_forged_token_never_resumes() {
    let crashed = Some(Status::Crashed);
    let denied = |reason| Err((Code::PermissionDenied, reason));
    for shown in 3..=5 {
        assert_eq!(opened(crashed, &signed("r1", shown)), Ok(Opening::Resume { shown }));
    }
    assert_eq!(
        opened(crashed, &PresentedToken::Invalid),
        denied("RESUME_TOKEN_INVALID")
    );
    assert_eq!(
        opened(crashed, &PresentedToken::Expired),
        denied("RESUME_TOKEN_EXPIRED")
    );
    assert_eq!(opened(crashed, &signed("r2", 4)), denied("RESUME_TOKEN_INVALID"));
    for other in [i64::MIN, -1, 0, 1, 2, 6, i64::MAX] {
        assert_eq!(
            opened(crashed, &signed("r1", other)),
            denied("RESUME_TOKEN_USED"),
            "{other}"
        );
    }
    let absent = opened(crashed, &PresentedToken::Absent);
    assert_eq!(absent, Err((Code::FailedPrecondition, "RESUME_TOKEN_REQUIRED")));
    assert_eq!(opened(None, &signed("r1", 4)), Err((Code::NotFound, "RUN_NOT_FOUND")));
}

#[test]
fn a_run_of_another_project_is_not_disclosed() {
    let other = ProjectName::new("q");
    let said = |status| {
        open(&run(), &other, &signed("r1", 4), Some(&facts(status)), 0)
            .map_err(|refusal| (refusal.code, refusal.message))
    };
    let first = said(Status::Running);
    assert!(matches!(first, Err((Code::PermissionDenied, _))));
    for status in Status::ALL {
        assert_eq!(said(status), first, "the answer does not depend on the state");
    }
}

#[test]
fn a_run_that_was_heard_of_within_a_minute_may_have_another_writer() {
    let joined = |silent: i64| {
        let stored = facts(Status::Running);
        open(
            &run(),
            &stored.project.clone(),
            &PresentedToken::Absent,
            Some(&stored),
            silent,
        )
    };
    let active = |active_seconds| {
        Ok(Opening::Join {
            active_seconds,
            shown: None,
        })
    };
    assert_eq!(joined(59_999_999_999), active(Some(59)));
    assert_eq!(joined(60_000_000_000), active(None));
    assert_eq!(joined(-5_000_000_000), active(Some(0)), "the clock went back");
}

#[test]
fn a_token_counts_until_a_newer_one_is_shown() {
    let first = Tokens::FIRST;
    assert_eq!(
        [0, 1, 2].map(|generation| first.count(generation)),
        [false, true, false]
    );
    // However often the answer is lost.
    let lost = (0..5).fold(first, |tokens, _| tokens.after(1).issued());
    assert_eq!(
        [0, 1, 6, 7].map(|generation| lost.count(generation)),
        [false, true, true, false]
    );
    let shown = lost.after(4).issued();
    assert_eq!([3, 4, 7].map(|generation| shown.count(generation)), [false, true, true]);
    assert_eq!(shown.after(4), shown);
    assert_eq!(shown.after(2), shown, "none comes back");
}

#[test]
fn a_running_run_takes_note_of_a_token_that_counts_and_of_no_other() {
    let shown = |token| match opened(Some(Status::Running), &token) {
        Ok(Opening::Join { shown, .. }) => shown,
        other => panic!("{other:?}"),
    };
    assert_eq!(shown(signed("r1", 4)), Some(4));
    for other in [
        signed("r1", 2),
        signed("r1", 6),
        signed("r2", 4),
        PresentedToken::Absent,
        PresentedToken::Expired,
        PresentedToken::Invalid,
    ] {
        assert_eq!(shown(other.clone()), None, "{other:?}");
    }
}

/// Looks every 10 seconds until a time.
fn listened(watch: Watch, until: i64, rules: &SilenceRules) -> Watch {
    let mut watch = watch;
    for now in (0..until).step_by(10_000_000_000) {
        watch = watch.look(now, rules);
    }
    watch.look(until, rules)
}

#[test]
fn a_silent_run_crashes_after_five_minutes() {
    let rules = SilenceRules::default();
    let seen = 7;
    let limit = seen + rules.crash_after;
    let watch = Watch::begin(0);
    assert!(!listened(watch, limit - 1, &rules).has_crashed(seen, &rules));
    assert!(listened(watch, limit, &rules).has_crashed(seen, &rules));
    assert!(!listened(watch, limit, &rules).has_crashed(seen + 1, &rules));
}

#[test]
fn downtime_of_the_server_is_no_silence() {
    let rules = SilenceRules::default();
    let long_ago = i64::MIN / 2;
    let started = Watch::begin(0);
    assert!(!listened(started, rules.crash_after - 1, &rules).has_crashed(long_ago, &rules));
    assert!(listened(started, rules.crash_after, &rules).has_crashed(long_ago, &rules));
    let late = rules.crash_after + 1;
    let suspended = listened(started, late, &rules).look(late + rules.look_within + 1, &rules);
    assert!(!suspended.has_crashed(long_ago, &rules), "the server was suspended");
    let years = listened(started, late, &rules).look(i64::MAX, &rules);
    assert!(!years.has_crashed(0, &rules), "the clock leapt by years");
    let back = listened(started, late, &rules).look(-5, &rules);
    assert!(!back.has_crashed(long_ago, &rules), "the clock went back");
}
