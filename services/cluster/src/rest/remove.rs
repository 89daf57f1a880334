//! `DELETE` of one object and of a collection.

use kindex_kube_api::request::{
    DeleteOptions as Sent, Preconditions, Propagation, PropagationError, QueryError, parameter,
};
use kindex_kube_api::status::{FieldProblem, Status};
use kindex_kube_api::{decode, meta};
use serde_json::{Value, json};

use super::call::{Call, no_namespace, refused};
use super::list::matching;
use super::{Reply, render};
use crate::mutate::{self, DeleteOptions, Deleted, store_failed};
use crate::resource::Shown;

/// Deletes one object.
pub(super) async fn one(call: &Call<'_>, name: &str) -> Result<Reply, Status> {
    let options = options(call)?;
    match mutate::delete(call.api, call.resource, &call.key(name), &options).await? {
        Deleted::Gone(revision) => {
            let object = revision.object().map_err(|error| store_failed(&error))?;
            let status = Status::deleted(call.resource.group_resource(), name, meta::uid(object));
            Ok(Reply::from(&status))
        }
        Deleted::Marked(revision) => render::revision(call, 200, &revision).await,
        Deleted::Dry(object) => render::one(call, 200, &Shown::Object(*object)),
    }
}

/// Deletes the objects that the selectors select.
pub(super) async fn collection(call: &Call<'_>) -> Result<Reply, Status> {
    if call.resource.namespaced && call.request.path.namespace.is_none() {
        return Err(no_namespace(call));
    }
    let options = options(call)?;
    let query = call
        .request
        .query
        .list()
        .map_err(|error| refused("ListOptions", &error))?;
    let (found, meta) = matching(call, &query).await?;
    for revision in &found {
        match mutate::delete(call.api, call.resource, &revision.key, &options).await {
            Ok(_) => {}
            // Somebody else deleted it in the meantime.
            Err(status) if status.outcome().is_not_found() => {}
            Err(status) => return Err(status),
        }
    }
    let objects = render::shown_all(call.resource, &found).await?;
    render::many(call, &objects, &meta)
}

/// The options of the query and of the body, which wins.
fn options(call: &Call<'_>) -> Result<DeleteOptions, Status> {
    let query = &call.request.query;
    if let Some(text) = query
        .get(parameter::GRACE_PERIOD_SECONDS)
        .filter(|text| text.parse::<i64>().is_err())
    {
        return Err(refused("DeleteOptions", &QueryError::Number(text.to_owned())));
    }
    let sent = if call.request.body.is_empty() {
        Sent::of_query(query)
    } else {
        read_body(call)?
    };
    let invalid = |problem| Status::invalid_options("DeleteOptions", &[problem]);
    let dry_run = match sent.dry_run.as_deref().unwrap_or_default() {
        [] => call.dry_run("DeleteOptions")?,
        [all] if all == parameter::ALL_STAGES => true,
        [other, ..] => {
            let error = QueryError::Unsupported(parameter::DRY_RUN, format!("[{other:?}]"), "\"All\"");
            return Err(refused("DeleteOptions", &error));
        }
    };
    let propagation = sent.propagation().map_err(|error| invalid(misplaced(&error)))?;
    let Preconditions { uid, resource_version } = sent.preconditions.unwrap_or_default();
    Ok(DeleteOptions {
        uid,
        rv: resource_version,
        propagation,
        dry_run,
    })
}

/// What is wrong with what is said of dependents, in the words of kube-apiserver.
fn misplaced(error: &PropagationError) -> FieldProblem {
    match error {
        PropagationError::Both(policy) => {
            let rule = "orphanDependents and deletionPropagation cannot be both set";
            FieldProblem::invalid(parameter::PROPAGATION_POLICY, policy, rule)
        }
        PropagationError::Unknown(policy) => {
            let known = Propagation::ALL.map(Propagation::as_str);
            let allowed: Vec<&str> = known.into_iter().chain(["nil"]).collect();
            FieldProblem::not_supported(parameter::PROPAGATION_POLICY, policy, &allowed)
        }
    }
}

fn read_body(call: &Call<'_>) -> Result<Sent, Status> {
    let decoded = decode::by_media_type(&call.request.content_type, &call.request.body);
    let unreadable = |error: &dyn std::fmt::Display| {
        Status::bad_request(format!(
            "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: {error}"
        ))
    };
    let value: Value = decoded.map_err(|error| unreadable(&error))?.value;
    if let Some(kind) = value["kind"].as_str().filter(|kind| *kind != "DeleteOptions") {
        return Err(unreadable(&format!("it is a {kind}")));
    }
    let value = if value.is_null() { json!({}) } else { value };
    serde_json::from_value(value).map_err(|error| unreadable(&error))
}
