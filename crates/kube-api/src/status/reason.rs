//! The machine-readable reasons of errors, with the HTTP code of each.

use serde::{Serialize, Serializer};

/// Why something was not done: `reason` of a Status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words are Kubernetes' own")]
pub enum Reason {
    BadRequest,
    Unauthorized,
    Forbidden,
    Timeout,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    TooManyRequests,
    Invalid,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    /// None is given.
    Unknown,
    /// Another word of another server.
    Other(String),
}

/// All that have a word of their own.
const NAMED: [Reason; 18] = [
    Reason::BadRequest,
    Reason::Unauthorized,
    Reason::Forbidden,
    Reason::Timeout,
    Reason::NotFound,
    Reason::MethodNotAllowed,
    Reason::NotAcceptable,
    Reason::AlreadyExists,
    Reason::Conflict,
    Reason::Gone,
    Reason::Expired,
    Reason::RequestEntityTooLarge,
    Reason::UnsupportedMediaType,
    Reason::TooManyRequests,
    Reason::Invalid,
    Reason::InternalError,
    Reason::ServerTimeout,
    Reason::ServiceUnavailable,
];

impl Reason {
    /// As Kubernetes writes it; empty where none is given.
    pub fn as_str(&self) -> &str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::Timeout => "Timeout",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::TooManyRequests => "TooManyRequests",
            Self::Invalid => "Invalid",
            Self::InternalError => "InternalError",
            Self::ServerTimeout => "ServerTimeout",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Unknown => "",
            Self::Other(reason) => reason,
        }
    }

    /// The code that goes with it, unless a Status says otherwise.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::Timeout => 408,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Gone | Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::TooManyRequests => 429,
            Self::Invalid => 422,
            Self::InternalError | Self::ServerTimeout | Self::Unknown | Self::Other(_) => 500,
            Self::ServiceUnavailable => 503,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

/// As a server says it.
impl From<&str> for Reason {
    fn from(word: &str) -> Self {
        if word.is_empty() {
            return Self::Unknown;
        }
        let named = NAMED.into_iter().find(|reason| reason.as_str() == word);
        named.unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a word that another server says were always another one than ours.
    #[test]
    fn a_word_is_read_as_the_reason_that_is_written_so() {
        for reason in NAMED {
            assert_eq!(Reason::from(reason.as_str()), reason);
        }
        assert_eq!(Reason::from(""), Reason::Unknown);
        let other = Reason::from("StorageReadError");
        assert_eq!(other, Reason::Other("StorageReadError".to_owned()));
        assert_eq!(other.as_str(), "StorageReadError");
    }

    /// <https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#StatusReason>
    #[test]
    fn a_server_that_takes_too_long_fails_as_any_other_failure_of_its_own() {
        assert_eq!(Reason::ServerTimeout.code(), 500);
        assert_eq!(Reason::Timeout.code(), 408);
        assert_eq!(Reason::Gone.code(), 410);
    }
}
