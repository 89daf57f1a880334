//! The verbs of the Kubernetes API over resources: from a parsed request to a reply. Each verb has a file. Knows
//! nothing of sockets.

mod call;

mod lines;

mod reply;

mod render;

mod list;

mod watch;

mod remove;

mod write;

mod review;

use hyper::Method;
use kindex_kube_api::request::{ResourcePath, Subresource, Verb};
use kindex_kube_api::status::Status;

use crate::api::Api;
use crate::mutate;
use crate::resource::{Resource, ResourceType};

use call::{Call, bad_version, is_custom};

pub(crate) use call::ObjectRequest;
pub(crate) use reply::{Body, Reply};

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
    if resource.resource_type == ResourceType::Review {
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
            resource.group_resource(),
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

/// Nothing is served at a path, in a group that is built in or not.
fn unserved(built_in: bool) -> Status {
    if built_in {
        Status::unknown_path()
    } else {
        Status::page_not_found()
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
            resource.group_resource(),
            path.name.as_deref().unwrap_or_default(),
        )),
        Some(Subresource::Status) if !resource.has_status => Err(Status::unknown_path()),
        Some(Subresource::Finalize) if resource.resource_type != ResourceType::Namespace => Err(Status::unknown_path()),
        _ => Ok(()),
    }
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
