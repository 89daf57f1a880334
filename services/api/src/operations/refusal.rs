//! Why something was not done, as Kubernetes says it: code, reason, message and details. Maps to a `metav1.Status`,
//! and to any other protocol that has a word for each reason.

use kindex_store::{DirectError, StoreError};
use serde_json::{Value, json};

use super::Place;

/// The machine's word for a refusal.
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
    /// What the cluster said.
    Other(String),
}

impl Reason {
    /// As Kubernetes writes it.
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
            Self::Other(reason) => reason,
        }
    }

    fn code(&self) -> u16 {
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
            Self::InternalError | Self::Other(_) => 500,
            Self::ServiceUnavailable => 503,
        }
    }
}

/// What a refusal is about: the `details` of a Status.
pub type Details = Value;

/// Why something was not done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// As HTTP would say it.
    pub code: u16,
    /// The machine's word.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// What it is about; null where that is all.
    pub details: Details,
}

impl Refusal {
    /// With the code that the reason has.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            code: reason.code(),
            reason,
            message: message.into(),
            details: Value::Null,
        }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// With a word of when to ask again.
    pub(crate) fn try_again(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            details: json!({"retryAfterSeconds": 1}),
            ..Self::new(reason, message)
        }
    }

    fn about(place: &Place<'_>, reason: Reason, said: impl FnOnce(&str) -> String) -> Self {
        let Place { kind, name, .. } = place;
        let resource = match kind.group {
            "" => kind.plural.to_owned(),
            group => format!("{}.{group}", kind.plural),
        };
        Self {
            details: json!({"name": name, "group": kind.group, "kind": kind.plural}),
            ..Self::new(reason, said(&format!("{resource} \"{name}\"")))
        }
    }

    pub(super) fn not_found(place: &Place<'_>) -> Self {
        Self::about(place, Reason::NotFound, |object| format!("{object} not found"))
    }

    pub(super) fn already_exists(place: &Place<'_>) -> Self {
        Self::about(place, Reason::AlreadyExists, |object| {
            format!(
                "{object} already exists: it was archived, and its name is still its own (kindex restore brings it \
                 back, delete frees the name)"
            )
        })
    }

    pub(super) fn conflict(place: &Place<'_>, why: &str) -> Self {
        Self::about(place, Reason::Conflict, |object| {
            format!("Operation cannot be fulfilled on {object}: {why}")
        })
    }

    /// 410: what happened after this version is not known any more.
    pub(super) fn too_old(version: &str) -> Self {
        Self::new(
            Reason::Expired,
            format!("too old resource version: {version}; list again"),
        )
    }

    /// What the cluster said instead of an answer.
    pub(crate) fn from_status(code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let message = match text("message") {
            said if !said.is_empty() => said,
            _ => String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned(),
        };
        Self {
            code,
            reason: Reason::Other(text("reason")),
            message,
            details: status["details"].clone(),
        }
    }

    /// Whether the cluster serves the resource and has no such object, and not that it knows no such path.
    pub(super) fn is_of_absent_object(&self) -> bool {
        self.code == 404 && self.details["name"].as_str().is_some_and(|name| !name.is_empty())
    }

    /// The cluster does not answer.
    pub(super) fn unreachable(error: &dyn std::fmt::Display) -> Self {
        let message = format!("the cluster does not answer: {error}; try again when it does");
        Self::try_again(Reason::ServiceUnavailable, message)
    }

    /// The `metav1.Status` of it.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason.as_str(),
            "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// What a database error means for who asked for this object. Its text may name tables, and no secret.
pub(super) fn of_store(place: &Place<'_>, error: StoreError) -> Refusal {
    match error {
        StoreError::Direct { source, .. } => match source {
            DirectError::Missing | DirectError::Deleted(_) => Refusal::not_found(place),
            DirectError::Conflict { .. } => Refusal::conflict(
                place,
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            DirectError::Live => Refusal::conflict(place, "it is moving between the cluster and SQL; try again"),
            DirectError::Unchangeable { .. } => Refusal::new(Reason::Invalid, source.to_string()),
            DirectError::Exhausted(_) => Refusal::conflict(place, &source.to_string()),
        },
        error => of_query(&error),
    }
}

/// 400: what is asked for is in no database.
pub(super) fn storage_is_off(reason: &str) -> Refusal {
    Refusal::bad_request(format!(
        "metadata storage is off ({reason}): there are no archived, deleted or past objects, and no columns to search by"
    ))
}

/// What a database error means for who asked for no object in particular.
pub(super) fn of_query(error: &StoreError) -> Refusal {
    match error {
        StoreError::Continue(_) | StoreError::NoHistory(_) | StoreError::Template(_) | StoreError::Everything(_) => {
            Refusal::bad_request(error.to_string())
        }
        StoreError::Retryable { .. } | StoreError::Schema(_) => {
            if error.is_outage() {
                tracing::debug!(%error, "The database cannot answer");
            } else {
                tracing::warn!(%error, "The database cannot answer");
            }
            Refusal::try_again(
                Reason::ServiceUnavailable,
                "the database of stored objects cannot answer now; try again",
            )
        }
        StoreError::Refused { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Address(_)
        | StoreError::Direct { .. } => {
            tracing::error!(%error, "The database answers with an error");
            Refusal::new(
                Reason::InternalError,
                "Internal error occurred: the database of stored objects refuses; the server's log says why",
            )
        }
    }
}
