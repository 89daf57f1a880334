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
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    TooManyRequests,
    Invalid,
    InternalError,
    ServiceUnavailable,
    /// None is given.
    Unknown,
    /// What another server said.
    Other(String),
}

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
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::TooManyRequests => "TooManyRequests",
            Self::Invalid => "Invalid",
            Self::InternalError => "InternalError",
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
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::TooManyRequests => 429,
            Self::Invalid => 422,
            Self::InternalError | Self::Unknown | Self::Other(_) => 500,
            Self::ServiceUnavailable => 503,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
