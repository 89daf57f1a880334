//! A request for objects before and after its resource is found, what the verbs ask of it, and their common refusals.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use kindex_kube_api::request::{Query, QueryError, Rendering, ResourcePath, parameter};
use kindex_kube_api::status::{FieldProblem, FieldReason, Status};

use crate::api::Api;
use crate::mutate;
use crate::resource::{Resource, ResourceType};
use crate::store::ObjectKey;

/// A request for objects, as far as it is known before the body is understood.
#[derive(Debug)]
pub(crate) struct ObjectRequest {
    pub(crate) method: Method,
    pub(crate) path: ResourcePath,
    pub(crate) query: Query,
    pub(crate) rendering: Rendering,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
}

/// A request whose resource has been found.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Api,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) request: &'a ObjectRequest,
}

impl Call<'_> {
    /// The namespace of the path, empty for cluster scope.
    pub(super) fn namespace(&self) -> &str {
        self.request.path.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn key(&self, name: &str) -> ObjectKey {
        mutate::key(self.resource, self.namespace(), name)
    }

    /// The field manager: as the client says, or the first word of its user agent.
    pub(super) fn manager(&self) -> &str {
        let agent = || {
            self.request
                .user_agent
                .split('/')
                .next()
                .filter(|agent| !agent.is_empty())
                .unwrap_or("unknown")
        };
        self.request.query.get(parameter::FIELD_MANAGER).unwrap_or_else(agent)
    }

    /// Whether the request must leave no trace; `options` is what Kubernetes calls the parameters of the verb.
    pub(super) fn dry_run(&self, options: &str) -> Result<bool, Status> {
        self.request.query.dry_run().map_err(|error| refused(options, &error))
    }
}

pub(super) fn is_custom(resource: &Resource) -> bool {
    resource.resource_type == ResourceType::Custom
}

/// A collection that belongs to namespaces, changed without one.
pub(super) fn no_namespace(call: &Call<'_>) -> Status {
    if is_custom(call.resource) {
        Status::page_not_found()
    } else {
        Status::method_not_allowed()
    }
}

/// The refusal of a request for its parameters.
pub(super) fn refused(options: &str, error: &QueryError) -> Status {
    match error {
        QueryError::Unsupported(field, value, allowed) => {
            let problem = FieldProblem {
                field: (*field).to_owned(),
                reason: FieldReason::NotSupported,
                message: format!("Unsupported value: {value}: supported values: {allowed}"),
            };
            Status::invalid_options(options, &[problem])
        }
        QueryError::Selector(_) | QueryError::Number(_) | QueryError::Version(_) | QueryError::Flag(..) => {
            Status::bad_request(error.to_string())
        }
    }
}

/// A version that is none, where it does not belong to a list.
pub(super) fn bad_version(error: &QueryError) -> Status {
    let text = error.to_string();
    Status::unexplained(text.trim_start_matches("invalid resource version: "))
}
