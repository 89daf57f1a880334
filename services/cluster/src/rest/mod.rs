//! The verbs of the Kubernetes API over resources: from a parsed request to a reply. Each verb has a file; refuses
//! to know sockets.

mod lines;

mod reply;

mod render;

mod list;

mod watch;

mod remove;

mod write;

mod review;

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use kindex_kube_api::request::{Query, QueryError, Rendering, ResourcePath, Subresource, Verb};
use kindex_kube_api::status::{FieldProblem, FieldReason, Status};

use crate::api::Api;
use crate::mutate;
use crate::resource::{Nature, Resource};
use crate::store::ObjectKey;

pub(crate) use reply::{Body, Reply};

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
    fn namespace(&self) -> &str {
        self.request.path.namespace.as_deref().unwrap_or_default()
    }

    fn key(&self, name: &str) -> ObjectKey {
        mutate::key(self.resource, self.namespace(), name)
    }

    /// The field manager: as the client says, or the first word of its user agent.
    fn manager(&self) -> &str {
        let agent = || {
            self.request
                .user_agent
                .split('/')
                .next()
                .filter(|agent| !agent.is_empty())
                .unwrap_or("unknown")
        };
        self.request.query.get("fieldManager").unwrap_or_else(agent)
    }

    /// Whether the request must leave no trace; `options` is what Kubernetes calls the parameters of the verb.
    fn dry_run(&self, options: &str) -> Result<bool, Status> {
        self.request.query.dry_run().map_err(|error| refused(options, &error))
    }
}

/// Answers a request for objects.
pub(crate) async fn answer(api: &Api, request: &ObjectRequest) -> Result<Reply, Status> {
    let path = &request.path;
    let catalog = api.registry.catalog();
    let resource = catalog.find(&path.group, &path.version, &path.plural).ok_or_else(|| {
        unserved(
            catalog
                .all()
                .any(|known| known.group == path.group && !is_custom(known)),
        )
    })?;
    check_scope(resource, path)?;
    check_name(path)?;
    check_subresource(resource, path)?;
    let call = Call { api, resource, request };
    if resource.nature == Nature::Review {
        return review::answer(&call);
    }
    let reply = match (&request.method, &path.name, path.subresource) {
        (&Method::GET, None, None) => list_or_watch(&call).await,
        (&Method::GET, Some(name), _) => get(&call, name).await,
        (&Method::POST, None, None) => write::post(&call).await,
        // As kube-apiserver: the name of a custom resource is the object's own, whatever the path says.
        (&Method::POST, Some(_), None) if is_custom(resource) => write::post(&call).await,
        (&Method::PUT, Some(name), _) => write::put(&call, name).await,
        (&Method::PATCH, Some(name), _) => write::patch(&call, name).await,
        (&Method::DELETE, Some(name), None) => remove::one(&call, name).await,
        (&Method::DELETE, None, None) => remove::collection(&call).await,
        (&Method::PUT, None, None) if is_custom(resource) => Err(Status::bad_request("name must be provided")),
        (method, ..) if is_custom(resource) => Err(Status::verb_not_supported(
            resource.named(),
            Verb::of(method.as_str(), path, &request.query),
        )),
        _ => Err(Status::method_not_allowed()),
    };
    let Some(warning) = &resource.deprecation else {
        return reply;
    };
    let refusal = |status| Reply::refusal(&status, Some(request.rendering));
    Ok(reply.unwrap_or_else(refusal).warn_first(warning))
}

/// A namespaced resource is reached inside a namespace, but for lists over all of them.
fn check_scope(resource: &Resource, path: &ResourcePath) -> Result<(), Status> {
    match (resource.namespaced, &path.namespace, &path.name) {
        (true, None, Some(_)) | (false, Some(_), _) => Err(unserved(!is_custom(resource))),
        _ => Ok(()),
    }
}

fn is_custom(resource: &Resource) -> bool {
    resource.nature == Nature::Custom
}

/// Nothing is served at a path, in a group that is built in or not.
fn unserved(built_in: bool) -> Status {
    if built_in {
        Status::unknown_path()
    } else {
        Status::page_not_found()
    }
}

/// A collection that belongs to namespaces, changed without one.
fn no_namespace(call: &Call<'_>) -> Status {
    if is_custom(call.resource) {
        Status::page_not_found()
    } else {
        Status::method_not_allowed()
    }
}

/// Names that would be steps of a path.
fn check_name(path: &ResourcePath) -> Result<(), Status> {
    match path.name.as_deref() {
        Some(name @ ("." | "..")) => Err(Status::bad_request(format!(
            "Name parameter invalid: {name:?}: may not be '{name}'"
        ))),
        _ => Ok(()),
    }
}

fn check_subresource(resource: &Resource, path: &ResourcePath) -> Result<(), Status> {
    match path.subresource {
        Some(Subresource::Status) if !resource.has_status && is_custom(resource) => Err(Status::not_found(
            resource.named(),
            path.name.as_deref().unwrap_or_default(),
        )),
        Some(Subresource::Status) if !resource.has_status => Err(Status::unknown_path()),
        Some(Subresource::Finalize) if resource.nature != Nature::Namespace => Err(Status::unknown_path()),
        _ => Ok(()),
    }
}

/// The refusal of a request for its parameters.
fn refused(options: &str, error: &QueryError) -> Status {
    match error {
        QueryError::Unsupported(field, value, allowed) => {
            let problem = FieldProblem {
                field: (*field).to_owned(),
                reason: FieldReason::NotSupported,
                message: format!("Unsupported value: {value}: supported values: {allowed}"),
            };
            Status::invalid_options(options, &[problem])
        }
        QueryError::Selector(_) | QueryError::Number(_) | QueryError::Version(_) => {
            Status::bad_request(error.to_string())
        }
    }
}

/// A version that is none, where it does not belong to a list.
fn bad_version(error: &QueryError) -> Status {
    let text = error.to_string();
    Status::unexplained(text.trim_start_matches("invalid resource version: "))
}

async fn list_or_watch(call: &Call<'_>) -> Result<Reply, Status> {
    let query = list::query(call)?;
    if query.watch {
        return watch::watch(call, query).await;
    }
    list::list(call, &query).await
}

async fn get(call: &Call<'_>, name: &str) -> Result<Reply, Status> {
    call.request.query.version().map_err(|error| bad_version(&error))?;
    let revision = mutate::find(call.api, call.resource, &call.key(name)).await?;
    render::revision(call, 200, &revision).await
}
