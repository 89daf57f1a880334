//! Errors of the verbs, each a `metav1.Status` with Kubernetes' code, reason, message and details. Maps what SQL says
//! to one of these; other protocols map what it means.

use std::ops::Deref;

use kindex_kube_api::status::{Details, GroupResource, Outcome, Reason, ReceivedStatus, Status};
use kindex_model::kind::Kind;
use kindex_store::{DirectError, StoreError};

use super::{ObjectKey, Resource};

/// The resource of a kind.
pub(super) fn group_resource(kind: &Kind) -> GroupResource<'static> {
    GroupResource {
        group: kind.group,
        plural: kind.plural,
    }
}

/// Why something was not done: a Status as an error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Refusal(Status);

impl Deref for Refusal {
    type Target = Status;

    fn deref(&self) -> &Status {
        &self.0
    }
}

impl Refusal {
    /// With the code that the reason has.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self(Status::failure(reason, message))
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 503: what the cluster sends is no answer.
    pub(crate) fn bad_gateway(message: impl Into<String>) -> Self {
        Self::try_again(Reason::ServiceUnavailable, message)
    }

    /// 503: the cluster granted what was asked for, but its answer is not what that should be.
    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        Self::bad_gateway(format!("the cluster's answer cannot be read: {error}"))
    }

    /// With a word of when to ask again.
    pub(crate) fn try_again(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, message).with(Details {
            retry_after_seconds: Some(1),
            ..Details::default()
        })
    }

    /// The same, with what it is about.
    pub(crate) fn with(mut self, details: Details) -> Self {
        self.0.details = Some(Box::new(details));
        self
    }

    /// The same, with a code that is not the one of its reason.
    pub(crate) fn with_code(mut self, code: u16) -> Self {
        self.0.code = code;
        self
    }

    /// The same in other words.
    pub(super) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// The same, with what was done before it came. That is said last: by the beginning of its message, a webhook's
    /// denial is told from what the cluster says of an object.
    pub(super) fn after(self, done: &str) -> Self {
        let message = format!("{}; {done}", self.message);
        self.with_message(message)
    }

    pub(super) fn not_found(key: &ObjectKey<'_>) -> Self {
        Status::not_found(group_resource(key.resource.kind), key.name).into()
    }

    pub(super) fn already_exists(key: &ObjectKey<'_>) -> Self {
        let ObjectKey { resource, name, .. } = key;
        let resource = group_resource(resource.kind);
        let message = format!(
            "{resource} \"{name}\" already exists as an archived object: bring it back with kindex restore, or delete \
             it to free the name"
        );
        Self::new(Reason::AlreadyExists, message).with(resource.details(name))
    }

    pub(super) fn conflict(key: &ObjectKey<'_>, why: &str) -> Self {
        Status::conflict(group_resource(key.resource.kind), key.name, why).into()
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
        Self(ReceivedStatus::of_answer(code, None, body).into_status(body))
    }

    /// Whether the cluster serves the resource and has no such object, and not that it knows no such path.
    pub(super) fn is_of_absent_object(&self) -> bool {
        self.outcome() == Outcome::Absent
    }

    /// Whether somebody else changed the object in between, or removed it. A path that is not served says neither.
    pub(super) fn is_of_changed_object(&self) -> bool {
        self.outcome().is_overtaken()
    }

    /// The cluster does not answer.
    pub(super) fn unreachable(error: &dyn std::fmt::Display) -> Self {
        let message = format!("the cluster does not answer: {error}; try again when it does");
        Self::try_again(Reason::ServiceUnavailable, message)
    }
}

/// As any server of this API refuses it.
impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

/// What a database error means for who asked for this object. Its text may name tables, and no secret.
pub(super) fn of_store(key: &ObjectKey<'_>, error: StoreError) -> Refusal {
    match error {
        StoreError::Direct { source, .. } => match source {
            DirectError::Missing | DirectError::Deleted(_) => Refusal::not_found(key),
            DirectError::Conflict { .. } => Status::modified(group_resource(key.resource.kind), key.name).into(),
            DirectError::Deleting(_) => Refusal::conflict(key, &source.to_string()),
            DirectError::Live => Refusal::conflict(key, "it is moving between the cluster and SQL; try again"),
            DirectError::Unchangeable { .. } => Refusal::new(Reason::Invalid, source.to_string()),
            DirectError::Exhausted(_) => Refusal::conflict(key, &source.to_string()),
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

/// 500: a stored object has no form in the version that is asked for.
pub(super) fn of_conversion(wanted: &Resource, error: &dyn std::fmt::Display) -> Refusal {
    tracing::warn!(%error, wanted = wanted.api_version(), "An archived object cannot be converted");
    let message = format!(
        "Internal error occurred: conversion of an archived object to {}, Kind={} failed: {error}",
        wanted.api_version(),
        wanted.kind.name
    );
    Refusal::new(Reason::InternalError, message)
}

/// What a database error means for who asked for no object in particular.
pub(super) fn of_query(error: &StoreError) -> Refusal {
    match error {
        StoreError::Continue(_)
        | StoreError::NoHistory(_)
        | StoreError::Template(_)
        | StoreError::UnlimitedDelete(_) => Refusal::bad_request(error.to_string()),
        StoreError::Retryable { .. } | StoreError::Schema(_) => {
            if error.is_outage() {
                tracing::debug!(%error, "The database cannot answer");
            } else {
                tracing::warn!(%error, "The database cannot answer");
            }
            Refusal::try_again(Reason::ServiceUnavailable, "the database does not answer; try again")
        }
        StoreError::Refused { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Address(_)
        | StoreError::Direct { .. } => {
            tracing::error!(%error, "The database answers with an error");
            Refusal::new(
                Reason::InternalError,
                "Internal error occurred: the database refused a statement; see the log of the server",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::ResourceVersion;
    use serde_json::json;

    use super::*;
    use crate::operations::token::tests::KIND;

    #[test]
    fn an_object_that_is_absent_is_told_from_a_resource_that_is_not_served() {
        let is_absent = |code, body: &str| Refusal::from_status(code, body.as_bytes()).is_of_absent_object();
        let named = r#"{"kind":"Status","details":{"name":"a","kind":"runs"}}"#;
        assert!(is_absent(404, named));
        assert!(!is_absent(403, named));
        for unserved in [
            "404 page not found",
            r#"{"kind":"Status"}"#,
            r#"{"kind":"Status","details":{}}"#,
        ] {
            assert!(!is_absent(404, unserved), "{unserved}");
        }
    }

    /// As if the row of an archived object were deleted because a webhook did not find what it looked up.
    #[test]
    fn a_denial_and_a_failure_that_relays_a_reason_are_not_of_the_object() {
        let said = |code: u16, reason: &str, message: &str| {
            let details = json!({"name": "a", "kind": "runs"});
            let body = json!({"kind": "Status", "reason": reason, "message": message, "details": details});
            Refusal::from_status(code, body.to_string().as_bytes())
        };
        let denial = "admission webhook \"a.b.c\" denied the request: projects \"p\" not found";
        for (code, reason, message) in [
            (404, "NotFound", denial),
            (409, "Conflict", denial),
            (503, "NotFound", "no healthy upstream"),
            (502, "Conflict", "no healthy upstream"),
        ] {
            let refusal = said(code, reason, message);
            assert!(!refusal.is_of_absent_object(), "{code} {reason}");
            assert!(!refusal.is_of_changed_object(), "{code} {reason}");
        }
        assert!(said(404, "NotFound", "runs \"a\" not found").is_of_absent_object());
        assert!(said(409, "Conflict", "it was modified").is_of_changed_object());
    }

    /// As if the object that a field names were absent, or in another state, because a webhook says so of another one.
    #[test]
    fn a_denial_stays_one_with_what_was_done_before_it() {
        for (code, reason) in [(404, "NotFound"), (409, "Conflict"), (403, "Forbidden")] {
            let message = "admission webhook \"a.b.c\" denied the request: no";
            let body = json!({"reason": reason, "message": message, "details": {"name": "a"}});
            let refusal = Refusal::from_status(code, body.to_string().as_bytes()).after("it was moved");
            assert_eq!(refusal.outcome(), Outcome::Denied { again: false }, "{code}");
            let said = "admission webhook \"a.b.c\" denied the request: no; it was moved";
            assert_eq!((refusal.code, refusal.to_string().as_str()), (code, said));
        }
    }

    #[test]
    fn what_sql_says_to_a_change_has_the_code_that_the_cluster_would_give() {
        let key = ObjectKey {
            resource: (&KIND).into(),
            namespace: "n",
            name: "a",
        };
        let (given, stored) = (ResourceVersion(1), ResourceVersion(2));
        let unchangeable = DirectError::Unchangeable {
            field: "metadata.name",
            stored: "a".to_owned(),
            given: "b".to_owned(),
        };
        for (source, code) in [
            (DirectError::Missing, 404),
            (DirectError::Deleted(jiff::Timestamp::UNIX_EPOCH), 404),
            (DirectError::Conflict { given, stored }, 409),
            (DirectError::Live, 409),
            (DirectError::Deleting(jiff::Timestamp::UNIX_EPOCH), 409),
            (DirectError::Exhausted(stored), 409),
            (unchangeable, 422),
        ] {
            let said = source.to_string();
            let error = StoreError::Direct {
                kind: KIND.name.to_owned(),
                uid: "u".to_owned(),
                source,
            };
            assert_eq!(of_store(&key, error).code, code, "{said}");
        }
        let token = StoreError::Continue("not one that a page came with".to_owned());
        assert_eq!(of_query(&token).code, 400);
    }
}
