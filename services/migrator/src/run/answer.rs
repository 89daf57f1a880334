//! What an API server's answers mean for a migration: each status is one of a few cases, and none is retried for ever
//! without a pause.

use std::time::Duration;

use kindex_kube_api::status::Outcome;

/// Shortest pause before a request is sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause, unless the server asks for a longer one.
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// How often a request that the server fails at is sent, which takes about seven minutes, before the object or the list
/// is refused: one object that cannot be converted must not keep all others waiting.
const FAILURES_MAX: u32 = 20;

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer with a body of the asked kind.
    Done,
    /// A `Status`.
    Refused {
        /// `code`.
        code: u16,
        /// What it means.
        outcome: Outcome,
        /// `message`.
        message: String,
        /// The header `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// No answer, or not in time.
    Lost,
}

impl std::fmt::Display for Reply {
    /// For people.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done => formatter.write_str("done"),
            Self::Refused { code, message, .. } => write!(formatter, "{message} ({code})"),
            Self::Lost => formatter.write_str("no answer"),
        }
    }
}

/// What became of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It has a new resource version: its bytes were those of another version or key.
    Rewritten,
    /// Its resource version is the one it had: its bytes are those that this server writes.
    Unchanged,
    /// Others wrote it since it was listed.
    Conflict,
    /// It does not exist any more, or not with this uid.
    Gone,
    /// It cannot be written as it is.
    Refused {
        /// Why, in the server's words.
        why: String,
    },
}

/// What to do about a reply to a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patched {
    /// It ended.
    Ended(Written),
    /// Send it again after this pause.
    Again(Duration),
}

/// Reads a reply to the patch of one object, sent for the `attempt`th time, from 1. `changed` says whether the answer
/// has another resource version than the list had.
pub fn patched(reply: &Reply, changed: bool, attempt: u32) -> Patched {
    let ended = match reply {
        Reply::Done if changed => Written::Rewritten,
        Reply::Done => Written::Unchanged,
        Reply::Lost => return Patched::Again(pause(attempt, None)),
        Reply::Refused {
            code,
            outcome,
            message,
            retry_after,
        } => match outcome {
            Outcome::TooManyRequests => return Patched::Again(pause(attempt, *retry_after)),
            outcome if outcome.is_transient() && attempt < FAILURES_MAX => {
                return Patched::Again(pause(attempt, *retry_after));
            }
            Outcome::Absent | Outcome::Expired => Written::Gone,
            Outcome::AlreadyExists | Outcome::Conflict => Written::Conflict,
            // A path that leads nowhere says nothing of the object.
            _ => Written::Refused {
                why: format!("{code}: {message}"),
            },
        },
    };
    Patched::Ended(ended)
}

/// What to do about a reply to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The page is there.
    Page,
    /// The token is too old. The server gives one that goes on from the same key, at the newest version.
    GoOn {
        /// That token.
        token: String,
    },
    /// The token is too old, and there is no other one.
    StartOver,
    /// Send it again after this pause.
    Again(Duration),
    /// The resource cannot be listed.
    Impossible {
        /// Why, in the server's words.
        why: String,
    },
}

/// Reads a reply to a list, sent for the `attempt`th time. `token` is `metadata.continue` of the `Status`.
pub fn listed(reply: &Reply, token: Option<&str>, attempt: u32) -> Listed {
    match reply {
        Reply::Done => Listed::Page,
        Reply::Lost => Listed::Again(pause(attempt, None)),
        Reply::Refused {
            outcome: Outcome::Expired,
            ..
        } => match token.filter(|token| !token.is_empty()) {
            Some(token) => Listed::GoOn {
                token: token.to_owned(),
            },
            None => Listed::StartOver,
        },
        // An object that cannot be converted fails the whole list.
        Reply::Refused {
            outcome, retry_after, ..
        } if outcome.is_transient() && (*outcome != Outcome::InternalError || attempt < FAILURES_MAX) => {
            Listed::Again(pause(attempt, *retry_after))
        }
        Reply::Refused { code, message, .. } => Listed::Impossible {
            why: format!("{code}: {message}"),
        },
    }
}

/// Doubles with each attempt; never shorter than the server asks for.
fn pause(attempt: u32, retry_after: Option<Duration>) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    doubled.min(LAST_PAUSE).max(retry_after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> Reply {
        meaning(code, Outcome::of_code(code))
    }

    fn meaning(code: u16, outcome: Outcome) -> Reply {
        Reply::Refused {
            code,
            outcome,
            message: "no".to_owned(),
            retry_after: None,
        }
    }

    #[test]
    fn an_object_at_which_the_server_fails_is_refused_in_the_end() {
        let again = |code, attempt| matches!(patched(&refused(code), false, attempt), Patched::Again(_));
        assert!(again(500, FAILURES_MAX - 1));
        assert!(!again(500, FAILURES_MAX));
        assert!(again(429, u32::MAX), "a server that is busy refuses nothing");
    }

    #[test]
    fn an_unchanged_version_proves_current_bytes() {
        assert_eq!(patched(&Reply::Done, false, 1), Patched::Ended(Written::Unchanged));
        assert_eq!(patched(&Reply::Done, true, 1), Patched::Ended(Written::Rewritten));
    }

    #[test]
    fn each_refusal_of_an_object_ends_or_pauses() {
        // A 404 without an object is of whatever stands before the server: the object may be there.
        for code in [400, 401, 403, 404, 405, 413, 415, 422] {
            let why = format!("{code}: no");
            assert_eq!(
                patched(&refused(code), false, 1),
                Patched::Ended(Written::Refused { why })
            );
        }
        let absent = patched(&meaning(404, Outcome::Absent), false, 1);
        assert_eq!(absent, Patched::Ended(Written::Gone));
        for (code, written) in [(410, Written::Gone), (409, Written::Conflict)] {
            assert_eq!(patched(&refused(code), false, 1), Patched::Ended(written), "{code}");
        }
        for code in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(patched(&refused(code), false, 1), Patched::Again(_)), "{code}");
        }
    }

    /// A validating webhook that looks up the owner of an object answers what that lookup answered.
    #[test]
    fn a_denial_is_a_refusal_whatever_its_code() {
        for code in [400, 403, 404, 409, 410, 422, 429, 500] {
            let again = Outcome::of_code(code).is_transient();
            let denial = Reply::Refused {
                code,
                outcome: Outcome::Denied { again },
                message: "admission webhook \"a.b.c\" denied the request: projects \"p\" not found".to_owned(),
                retry_after: None,
            };
            let last = patched(&denial, false, FAILURES_MAX);
            assert!(matches!(last, Patched::Ended(Written::Refused { .. })), "{code}");
        }
    }

    #[test]
    fn a_list_that_the_server_goes_on_to_fail_at_ends() {
        assert!(matches!(
            listed(&refused(500), None, FAILURES_MAX - 1),
            Listed::Again(_)
        ));
        assert!(matches!(
            listed(&refused(500), None, FAILURES_MAX),
            Listed::Impossible { .. }
        ));
        // Those of a gateway pass, and those of a server that asks for another attempt.
        let asked = meaning(500, Outcome::Timeout);
        for busy in [refused(501), refused(503), refused(520), asked] {
            assert!(matches!(listed(&busy, None, FAILURES_MAX), Listed::Again(_)), "{busy}");
        }
    }

    #[test]
    fn pauses_grow_to_half_a_minute_and_never_undercut_the_server() {
        let of = |attempt, retry_after| pause(attempt, retry_after).as_millis();
        assert_eq!(
            [1, 2, 3, 7, 100].map(|attempt| of(attempt, None)),
            [500, 1_000, 2_000, 30_000, 30_000]
        );
        assert_eq!(of(1, Some(Duration::from_secs(60))), 60_000);
        assert_eq!(of(3, Some(Duration::from_secs(1))), 2_000);
    }

    #[test]
    fn an_expired_list_goes_on_where_the_server_gives_a_token() {
        let token = "next".to_owned();
        assert_eq!(listed(&refused(410), Some("next"), 1), Listed::GoOn { token });
        for none in [None, Some("")] {
            assert_eq!(listed(&refused(410), none, 1), Listed::StartOver);
        }
    }

    #[test]
    fn a_list_that_is_forbidden_or_of_nothing_ends_the_run() {
        for code in [401, 403, 404, 405] {
            assert!(
                matches!(listed(&refused(code), None, 1), Listed::Impossible { .. }),
                "{code}"
            );
        }
        assert!(matches!(listed(&Reply::Lost, None, 1), Listed::Again(_)));
        assert!(matches!(listed(&refused(503), None, 1), Listed::Again(_)));
    }
}
