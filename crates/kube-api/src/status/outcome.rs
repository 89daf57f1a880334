//! What a refusal means for who sent the request: the code, the reason and the details of a Status, read once. Pure;
//! what to do about it is the caller's to say.

use super::refused_by::is_webhook_denial;
use super::{Details, NAMESPACE_TERMINATING, Reason};

/// The parts of a refusal that say what it means, whichever type it was read into.
#[derive(Clone, Debug, Default)]
pub struct StatusParts<'a> {
    /// The HTTP code; 0 where none is known.
    pub code: u16,
    /// `reason`, empty where there is none.
    pub reason: &'a str,
    /// `message`
    pub message: &'a str,
    /// `details.name`, empty where no object is named.
    pub name: &'a str,
    /// `reason` of each of `details.causes`.
    pub causes: Vec<&'a str>,
}

impl<'a> StatusParts<'a> {
    /// Those of a Status.
    pub(super) fn new(code: u16, reason: &'a Reason, message: &'a str, details: Option<&'a Details>) -> Self {
        let causes = details.into_iter().flat_map(|details| &details.causes);
        Self {
            code,
            reason: reason.as_str(),
            message,
            name: details.map_or("", |details| &details.name),
            causes: causes.map(|cause| cause.reason.as_str()).collect(),
        }
    }
}

/// What a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The resource is served, and the object that the server names is not there.
    Absent,
    /// Nothing is served at the path, as far as the answer says: it names no object.
    Unserved,
    /// An object of that name is there.
    AlreadyExists,
    /// The object is not in the state that the request depends on.
    Conflict,
    /// The version, or the page of a list, is no longer kept.
    Expired,
    /// The server does not know who asks.
    Unauthorized,
    /// Who asks may not do this.
    Forbidden,
    /// The namespace is being deleted, and takes nothing more.
    NamespaceTerminating,
    /// The server does as much as it may.
    TooManyRequests,
    /// The server gave up waiting; whether the request had an effect is unknown.
    Timeout,
    /// The server, or what stands before it, cannot answer now.
    Unavailable,
    /// The server failed at this request, and may fail at it each time.
    InternalError,
    /// The object, or the parameters of the request, are against their schema.
    Invalid,
    /// The request cannot be understood.
    BadRequest,
    /// An admission webhook does not want it.
    Denied {
        /// Whether the webhook's code is one after which the same request may succeed.
        again: bool,
    },
    /// Another refusal, which stays one.
    Refused,
}

impl Outcome {
    /// Reads a refusal. As in Kubernetes' own client, a reason that is known says what is meant, and the code where
    /// there is none; 429 is the exception. So is a code of 500 or above where the reason is about an object: a server
    /// that fails knows nothing of it.
    /// <https://pkg.go.dev/k8s.io/apimachinery/pkg/api/errors>
    pub fn of(said: &StatusParts<'_>) -> Self {
        let meant = match (said.code, Reason::from(said.reason)) {
            (429, _) | (_, Reason::TooManyRequests) => Self::TooManyRequests,
            // What stands before a server may relay the Status of another one, below a failure of its own.
            (code, Reason::Unknown | Reason::Other(_))
            | (
                code @ 500..,
                Reason::NotFound | Reason::AlreadyExists | Reason::Conflict | Reason::Gone | Reason::Expired,
            ) => Self::of_code(code),
            (_, Reason::NotFound) => Self::Unserved,
            (_, Reason::AlreadyExists) => Self::AlreadyExists,
            (_, Reason::Conflict) => Self::Conflict,
            (_, Reason::Gone | Reason::Expired) => Self::Expired,
            (_, Reason::Unauthorized) => Self::Unauthorized,
            (_, Reason::Forbidden) => Self::Forbidden,
            (_, Reason::Timeout | Reason::ServerTimeout) => Self::Timeout,
            (_, Reason::ServiceUnavailable) => Self::Unavailable,
            (_, Reason::InternalError) => Self::InternalError,
            (_, Reason::Invalid) => Self::Invalid,
            (_, Reason::BadRequest) => Self::BadRequest,
            (
                _,
                Reason::MethodNotAllowed
                | Reason::NotAcceptable
                | Reason::RequestEntityTooLarge
                | Reason::UnsupportedMediaType,
            ) => Self::Refused,
        };
        if is_webhook_denial(said.message) {
            return Self::Denied {
                again: meant.is_transient(),
            };
        }
        match meant {
            Self::Unserved if !said.name.is_empty() => Self::Absent,
            Self::Forbidden if said.causes.contains(&NAMESPACE_TERMINATING) => Self::NamespaceTerminating,
            meant => meant,
        }
    }

    /// Reads a refusal of which nothing but its HTTP code is known.
    pub fn of_code(code: u16) -> Self {
        match code {
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::Unserved,
            408 | 504 => Self::Timeout,
            409 => Self::Conflict,
            410 => Self::Expired,
            422 => Self::Invalid,
            429 => Self::TooManyRequests,
            500 => Self::InternalError,
            501.. => Self::Unavailable,
            _ => Self::Refused,
        }
    }

    /// Whether the object or the path is not there.
    pub fn is_not_found(self) -> bool {
        matches!(self, Self::Absent | Self::Unserved)
    }

    /// Whether others were faster: the object is there already, or in another state than it was.
    pub fn is_conflict(self) -> bool {
        matches!(self, Self::AlreadyExists | Self::Conflict)
    }

    /// Whether the object is not there any more, or in another state than it was. A path that is not served says
    /// neither.
    pub fn is_overtaken(self) -> bool {
        self == Self::Absent || self.is_conflict()
    }

    /// Whether the same request may succeed a moment later: too many requests, and what a server or a gateway may do
    /// once.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::TooManyRequests
                | Self::Timeout
                | Self::Unavailable
                | Self::InternalError
                | Self::Denied { again: true }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: u16, reason: &str) -> StatusParts<'_> {
        StatusParts {
            code,
            reason,
            ..StatusParts::default()
        }
    }

    /// As if every server gave the same code with its reason, or any word at all.
    #[test]
    fn a_reason_says_what_is_meant_and_the_code_where_there_is_none() {
        for (code, reason, expected) in [
            (400, "", Outcome::BadRequest),
            (400, "BadRequest", Outcome::BadRequest),
            (401, "Unauthorized", Outcome::Unauthorized),
            (401, "", Outcome::Unauthorized),
            (403, "Forbidden", Outcome::Forbidden),
            (403, "", Outcome::Forbidden),
            (404, "NotFound", Outcome::Unserved),
            (404, "Failed to parse error data", Outcome::Unserved),
            (405, "MethodNotAllowed", Outcome::Refused),
            (405, "", Outcome::Refused),
            (408, "", Outcome::Timeout),
            (409, "AlreadyExists", Outcome::AlreadyExists),
            (409, "Conflict", Outcome::Conflict),
            (409, "", Outcome::Conflict),
            (410, "Expired", Outcome::Expired),
            (410, "Gone", Outcome::Expired),
            (410, "", Outcome::Expired),
            (0, "Expired", Outcome::Expired),
            (413, "RequestEntityTooLarge", Outcome::Refused),
            (415, "UnsupportedMediaType", Outcome::Refused),
            (422, "Invalid", Outcome::Invalid),
            (422, "", Outcome::Invalid),
            (429, "TooManyRequests", Outcome::TooManyRequests),
            (429, "Conflict", Outcome::TooManyRequests),
            (500, "InternalError", Outcome::InternalError),
            (500, "ServerTimeout", Outcome::Timeout),
            (500, "StorageReadError", Outcome::InternalError),
            (501, "", Outcome::Unavailable),
            (502, "", Outcome::Unavailable),
            (503, "ServiceUnavailable", Outcome::Unavailable),
            (504, "Timeout", Outcome::Timeout),
            (504, "", Outcome::Timeout),
            (520, "", Outcome::Unavailable),
            (0, "", Outcome::Refused),
            (301, "", Outcome::Refused),
        ] {
            assert_eq!(Outcome::of(&said(code, reason)), expected, "{code} {reason}");
        }
    }

    /// As if an object were gone, or another one, because what stands before the server relays what another one said.
    #[test]
    fn a_server_that_fails_says_nothing_of_the_object_whatever_its_reason() {
        for reason in ["NotFound", "AlreadyExists", "Conflict", "Gone", "Expired"] {
            for (code, expected) in [
                (500, Outcome::InternalError),
                (502, Outcome::Unavailable),
                (503, Outcome::Unavailable),
                (504, Outcome::Timeout),
            ] {
                let named = StatusParts {
                    name: "blue",
                    ..said(code, reason)
                };
                assert_eq!(Outcome::of(&named), expected, "{code} {reason}");
            }
        }
        // The frames of a watch that end it may have a reason and no code.
        for (reason, expected) in [
            ("NotFound", Outcome::Unserved),
            ("AlreadyExists", Outcome::AlreadyExists),
            ("Conflict", Outcome::Conflict),
            ("Gone", Outcome::Expired),
        ] {
            assert_eq!(Outcome::of(&said(0, reason)), expected, "{reason}");
        }
    }

    /// As if an address that leads nowhere said that an object is gone.
    #[test]
    fn an_object_is_absent_only_where_it_is_named() {
        for (code, reason, expected) in [
            (404, "NotFound", Outcome::Absent),
            (404, "", Outcome::Absent),
            (403, "Forbidden", Outcome::Forbidden),
            (500, "", Outcome::InternalError),
        ] {
            let named = StatusParts {
                name: "blue",
                ..said(code, reason)
            };
            assert_eq!(Outcome::of(&named), expected, "{code} {reason}");
        }
    }

    /// As if what stands before a server had removed the object, so that nobody went on with it.
    #[test]
    fn only_an_object_that_is_named_is_overtaken() {
        for (outcome, expected) in [
            (Outcome::Absent, true),
            (Outcome::AlreadyExists, true),
            (Outcome::Conflict, true),
            (Outcome::Unserved, false),
            (Outcome::Expired, false),
            (Outcome::Forbidden, false),
        ] {
            assert_eq!(outcome.is_overtaken(), expected, "{outcome:?}");
        }
    }

    /// As if every object of a namespace that is being deleted were forbidden for good, or that cause explained all.
    #[test]
    fn a_namespace_that_is_being_deleted_is_no_lack_of_rights() {
        for (code, causes, expected) in [
            (403, vec!["", NAMESPACE_TERMINATING], Outcome::NamespaceTerminating),
            (403, vec![""], Outcome::Forbidden),
            (403, vec![], Outcome::Forbidden),
            (422, vec![NAMESPACE_TERMINATING], Outcome::Invalid),
        ] {
            let said = StatusParts {
                causes,
                ..said(code, "")
            };
            assert_eq!(Outcome::of(&said), expected, "{said:?}");
        }
    }

    /// A validating webhook that looks up the owner of an object answers what that lookup answered.
    #[test]
    fn a_denial_says_nothing_of_the_object_whatever_its_code_and_reason() {
        for (code, reason, again) in [
            (400, "BadRequest", false),
            (403, "Forbidden", false),
            (404, "NotFound", false),
            (409, "Conflict", false),
            (410, "Expired", false),
            (422, "", false),
            (429, "", true),
            (500, "", true),
            (503, "ServiceUnavailable", true),
        ] {
            let denial = StatusParts {
                message: "admission webhook \"a.b.c\" denied the request: projects \"p\" not found",
                name: "p",
                ..said(code, reason)
            };
            let outcome = Outcome::of(&denial);
            assert_eq!(outcome, Outcome::Denied { again }, "{code} {reason}");
            assert_eq!(outcome.is_transient(), again, "{code} {reason}");
            assert!(!outcome.is_overtaken(), "{code} {reason}");
        }
    }

    #[test]
    fn only_what_may_pass_is_transient() {
        for code in [408, 429, 500, 501, 502, 503, 504, 599] {
            assert!(Outcome::of_code(code).is_transient(), "{code}");
        }
        for code in [0, 301, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422] {
            assert!(!Outcome::of_code(code).is_transient(), "{code}");
        }
    }
}
