//! Errors of an API server: `metav1.Status` with code, reason and message. All messages that a client may match on are
//! made here, by named constructors.

mod reason;

mod refused_by;

mod outcome;

mod received;

mod refusals;

use serde::{Deserialize, Serialize};

pub use crate::schema::FieldReason;
pub use outcome::{Outcome, StatusParts};
pub use reason::Reason;
pub use received::ReceivedStatus;
pub use refusals::FieldProblem;
pub use refused_by::RefusedBy;

/// What a refusal has as its cause where the namespace is being deleted: `NamespaceTerminatingCause` of Kubernetes.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// One of several reasons inside a Status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The machine's reason, `FieldValueInvalid`; empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field that it is about; empty where it is about none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Cause {
    /// A field with a value that is wrong.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: FieldReason::Invalid.as_str().to_owned(),
            message: message.into(),
            field: field.into(),
        }
    }
}

/// What a Status is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    /// The object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group; empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource in most answers, the kind in those about invalid objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid, where it is gone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// More reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to come again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// The resource that a Status names, as `schema.GroupResource` of Kubernetes: `widgets` of `example.com`.
#[derive(Debug, Clone, Copy)]
pub struct GroupResource<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    /// As paths have it.
    pub plural: &'a str,
}

impl GroupResource<'_> {
    /// What a Status says of an object of this name; empty for all of them.
    pub fn details(self, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.plural.to_owned(),
            ..Details::default()
        }
    }
}

impl std::fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.group {
            "" => f.write_str(self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// A `metav1.Status`. Fields are in the order in which the API server writes them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    status: &'static str,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The machine's reason, `NotFound`; empty in an answer of success.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub reason: Reason,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP code; 0 in an answer of success.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: u16,
    /// Whether it is told in a line of text instead.
    #[serde(skip)]
    pub is_plain: bool,
}

#[derive(Debug, Clone, Serialize)]
struct Empty {}

fn is_zero(code: &u16) -> bool {
    *code == 0
}

impl Status {
    /// A refusal, with the code of its reason.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            status: "Failure",
            message: message.into(),
            code: reason.code(),
            reason,
            details: None,
            is_plain: false,
        }
    }

    /// The answer to a deletion that is complete, of one object or, without a name, of all that were meant.
    pub fn deleted(resource: GroupResource<'_>, name: &str, uid: &str) -> Self {
        let details = Details {
            uid: uid.to_owned(),
            ..resource.details(name)
        };
        Self {
            status: "Success",
            code: 0,
            ..Self::failure(Reason::Unknown, "")
        }
        .with(details)
    }

    /// The same with details.
    fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// What it means for who sent the request.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(&StatusParts::new(
            self.code,
            &self.reason,
            &self.message,
            self.details.as_deref(),
        ))
    }

    /// The HTTP status line's code.
    pub fn http_code(&self) -> u16 {
        if self.code == 0 { 200 } else { self.code }
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a Status holds only strings and numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_in_the_order_of_the_api_server() {
        let status = Status::not_found(
            GroupResource {
                group: "example.com",
                plural: "widgets",
            },
            "a",
        );
        assert_eq!(
            status.to_json(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com \"a\" not found","reason":"NotFound","details":{"name":"a","group":"example.com","kind":"widgets"},"code":404}"#
        );
    }

    #[test]
    fn a_deletion_answers_success_without_code() {
        let status = Status::deleted(
            GroupResource {
                group: "",
                plural: "configmaps",
            },
            "a",
            "u",
        );
        assert_eq!(
            status.to_json(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"configmaps","uid":"u"}}"#
        );
        assert_eq!(status.http_code(), 200);
    }
}
