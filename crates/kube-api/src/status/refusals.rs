//! The errors of an API server, one constructor each, with its messages.

use super::{Cause, Details, GroupResource, NAMESPACE_TERMINATING, Reason, Status};
use crate::media;
use crate::request::Verb;
use crate::schema::{FieldError, FieldReason};
use crate::size::OBJECT_BYTES_MAX;

/// What is wrong with one field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field's path, `spec.size`.
    pub field: String,
    /// The machine's reason, `FieldValueInvalid`.
    pub reason: FieldReason,
    /// The text after the path, `Invalid value: "x": must be an integer`.
    pub message: String,
}

impl From<FieldError> for FieldProblem {
    fn from(error: FieldError) -> Self {
        Self {
            field: error.field,
            reason: error.reason,
            message: error.message,
        }
    }
}

impl FieldProblem {
    /// A value that is wrong.
    pub fn invalid(field: impl Into<String>, value: &str, detail: &str) -> Self {
        let message = format!("Invalid value: {value:?}: {detail}");
        Self {
            field: field.into(),
            reason: FieldReason::Invalid,
            message,
        }
    }

    /// A number that is wrong, in the form in which the API server shows it.
    pub fn invalid_number(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: FieldReason::Invalid,
            message: format!("Invalid value: {shown}: {detail}"),
        }
    }

    /// A text, or a map's texts together, over the limit.
    pub fn too_long(field: impl Into<String>, limit_bytes: usize) -> Self {
        let message = format!("Too long: may not be more than {limit_bytes} bytes");
        Self {
            field: field.into(),
            reason: FieldReason::TooLong,
            message,
        }
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            field: field.into(),
            reason: FieldReason::Required,
            message,
        }
    }

    /// A value that may not be given here.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: FieldReason::Forbidden,
            message: format!("Forbidden: {detail}"),
        }
    }

    /// `resourceVersionMatch` of a watch that does not say whether the state comes first.
    pub fn match_without_initial_events() -> Self {
        let rule = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        Self::forbidden("resourceVersionMatch", rule)
    }

    /// `resourceVersionMatch` of a watch that says whether the state comes first, and not how its version is meant.
    pub fn initial_events_without_match() -> Self {
        let rule = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        Self::forbidden("resourceVersionMatch", rule)
    }

    /// A value that is given twice.
    pub fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self {
            field: field.into(),
            reason: FieldReason::Duplicate,
            message: format!("Duplicate value: {value:?}"),
        }
    }

    /// More values than there may be.
    pub fn too_many(field: impl Into<String>, count: usize, most: usize) -> Self {
        Self {
            field: field.into(),
            reason: FieldReason::TooMany,
            message: format!("Too many: {count}: must have at most {most} items"),
        }
    }

    /// A value outside a closed set.
    pub fn not_supported(field: impl Into<String>, value: &str, allowed: &[&str]) -> Self {
        let allowed: Vec<_> = allowed.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", allowed.join(", "));
        Self {
            field: field.into(),
            reason: FieldReason::NotSupported,
            message,
        }
    }
}

impl Status {
    /// 404: the object is not there.
    pub fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        Self::failure(Reason::NotFound, format!("{resource} \"{name}\" not found")).with(resource.details(name))
    }

    /// 404: nothing is served at this path.
    pub fn unknown_path() -> Self {
        Self::failure(Reason::NotFound, "the server could not find the requested resource").with(Details::default())
    }

    /// 404: nothing is mounted at this path, not even a group that could say so.
    pub fn page_not_found() -> Self {
        Self {
            is_plain: true,
            ..Self::failure(Reason::NotFound, "404 page not found")
        }
    }

    /// 405: a custom resource does not have this verb; none is named where Kubernetes has none for the method.
    pub fn verb_not_supported(resource: GroupResource<'_>, verb: Option<Verb>) -> Self {
        let verb = verb.map_or("", Verb::as_str);
        let why = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::failure(Reason::MethodNotAllowed, why).with(resource.details(""))
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::failure(Reason::Unauthorized, "Unauthorized")
    }

    /// 403: a page of a browser may have sent it.
    pub fn from_a_page(sign: impl std::fmt::Display) -> Self {
        let message = format!("this server refuses requests of browser pages: {sign}");
        Self::failure(Reason::Forbidden, message).with(Details::default())
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::failure(
            Reason::MethodNotAllowed,
            "the server does not allow this method on the requested resource",
        )
        .with(Details::default())
    }

    /// 405: the definition of the resource is being deleted.
    pub fn definition_terminating(resource: GroupResource<'_>) -> Self {
        Self::failure(
            Reason::MethodNotAllowed,
            "create not allowed while custom resource definition is terminating",
        )
        .with(resource.details(""))
    }

    /// 409: an object of that name is there.
    pub fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        Self::failure(Reason::AlreadyExists, format!("{resource} \"{name}\" already exists"))
            .with(resource.details(name))
    }

    /// 409: `why` the operation cannot be done on what is there.
    pub fn conflict(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        Self::failure(
            Reason::Conflict,
            format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}"),
        )
        .with(resource.details(name))
    }

    /// 409: the caller's resource version is not the current one.
    pub fn modified(resource: GroupResource<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 422: an update without the version that it is based on.
    pub fn version_missing(resource: GroupResource<'_>, name: &str) -> Self {
        let rule = "must be specified for an update";
        let problem = FieldProblem::invalid_number("metadata.resourceVersion", "0", rule);
        Self::invalid(resource.group, resource.plural, name, &[problem])
    }

    /// 400: the object does not say its name.
    pub fn name_missing(name: &str) -> Self {
        Self::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))
    }

    /// 400: the object has another name than the request.
    pub fn name_differs(sent: &str, name: &str) -> Self {
        Self::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({name})"
        ))
    }

    /// 400: the object has another namespace than the request.
    pub fn namespace_differs() -> Self {
        Self::bad_request("the namespace of the provided object does not match the namespace sent on the request")
    }

    /// 400: what was sent is no object at all.
    pub fn not_an_object(kind: &str) -> Self {
        Self::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): it is not a JSON object"
        ))
    }

    /// 400: what was sent is no object of this kind and version.
    pub fn not_of_kind(kind: &str, version: &str, problem: impl std::fmt::Display) -> Self {
        Self::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {problem}"
        ))
    }

    /// 409: server-side apply met fields of other managers.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::failure(Reason::Conflict, message).with(Details {
            causes,
            ..Details::default()
        })
    }

    /// 403.
    pub fn forbidden(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        Self::failure(Reason::Forbidden, format!("{resource} \"{name}\" is forbidden: {why}"))
            .with(resource.details(name))
    }

    /// 403: the namespace is being deleted.
    pub fn namespace_terminating(resource: GroupResource<'_>, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Self::forbidden(resource, name, &why);
        if let Some(details) = &mut status.details {
            details.causes = vec![Cause {
                reason: NAMESPACE_TERMINATING.to_owned(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            }];
        }
        status
    }

    /// 422: the object, of `kind` in `group`, has these problems. One problem stands alone, several stand in brackets.
    pub fn invalid(group: &str, kind: &str, name: &str, problems: &[FieldProblem]) -> Self {
        let texts: Vec<_> = problems
            .iter()
            .map(|problem| format!("{}: {}", problem.field, problem.message))
            .collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let causes = problems
            .iter()
            .map(|problem| Cause {
                reason: problem.reason.as_str().to_owned(),
                message: problem.message.clone(),
                field: problem.field.clone(),
            })
            .collect();
        Self::failure(Reason::Invalid, format!("{qualified} \"{name}\" is invalid: {list}")).with(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            ..Details::default()
        })
    }

    /// 422: the parameters of a request, which Kubernetes calls `options`, have these problems.
    pub fn invalid_options(options: &str, problems: &[FieldProblem]) -> Self {
        Self::invalid("meta.k8s.io", options, "", problems)
    }

    /// 422: a patch that cannot be applied to what is there.
    pub fn patch_fails(why: impl Into<String>) -> Self {
        let cause = Cause {
            reason: "UnexpectedServerResponse".to_owned(),
            message: why.into(),
            field: "patch".to_owned(),
        };
        Self::failure(
            Reason::Invalid,
            "the server rejected our request due to an error in our request",
        )
        .with(Details {
            causes: vec![cause],
            ..Details::default()
        })
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(Reason::BadRequest, message)
    }

    /// 406: the client takes nothing in which objects are answered.
    pub fn not_acceptable() -> Self {
        let accepted = media::OBJECT_TYPES.join(", ");
        Self::failure(
            Reason::NotAcceptable,
            format!("only the following media types are accepted: {accepted}"),
        )
    }

    /// 413.
    pub fn too_large(limit_bytes: usize) -> Self {
        Self::too_much(format_args!("limit is {limit_bytes}"))
    }

    /// 413: what the body asks for is more than is done.
    pub fn too_much(why: impl std::fmt::Display) -> Self {
        Self::failure(
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: {why}"),
        )
    }

    /// 413: an object would be larger than one may be.
    pub fn object_too_large() -> Self {
        Self::too_large(OBJECT_BYTES_MAX)
    }

    /// 415: the body is in none of the media types that are accepted.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        Self::failure(
            Reason::UnsupportedMediaType,
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}"),
        )
    }

    /// 408: the request comes too slowly.
    pub fn too_slow(message: impl Into<String>) -> Self {
        Self::failure(Reason::Timeout, message)
    }

    /// 429: the server does as much as it may.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self::failure(Reason::TooManyRequests, message).with(Details {
            retry_after_seconds: Some(1),
            ..Details::default()
        })
    }

    /// 410: a watch or a list from before the history begins.
    pub fn expired(rv: u64, floor: u64) -> Self {
        Self::failure(Reason::Expired, format!("too old resource version: {rv} ({floor})"))
    }

    /// 410: a continue token from before the history begins.
    pub fn continue_expired() -> Self {
        Self::failure(
            Reason::Expired,
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter.",
        )
    }

    /// 504: a resource version that has not been given out yet.
    pub fn future_version(rv: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let message = format!("Too large resource version: {rv}, current: {current}");
        Self {
            code: 504,
            ..Self::failure(Reason::Timeout, message)
        }
        .with(Details {
            causes: vec![cause],
            retry_after_seconds: Some(1),
            ..Details::default()
        })
    }

    /// 500.
    pub fn internal(what: &impl std::fmt::Display) -> Self {
        let message = what.to_string();
        let cause = Cause {
            reason: String::new(),
            message: message.clone(),
            field: String::new(),
        };
        Self::failure(Reason::InternalError, format!("Internal error occurred: {message}")).with(Details {
            causes: vec![cause],
            ..Details::default()
        })
    }

    /// 500, for the few errors that the API server passes on without a reason.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::failure(Reason::Unknown, message)
    }

    /// 503: the server is stopping.
    pub fn unavailable(what: &str) -> Self {
        Self::failure(Reason::ServiceUnavailable, what)
    }
}
