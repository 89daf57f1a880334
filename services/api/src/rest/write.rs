//! `POST`, `PUT`, `PATCH` and `DELETE`.

use std::borrow::Cow;

use axum::response::Response;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::{Subresource, parameter};
use kindex_kube_api::status::Status;
use kindex_kube_api::{decode, media};
use kindex_model::kind::Scope;
use serde_json::{Value, json};

use super::read::{self, form};
use super::{Inbound, Rest};
use crate::operations::{DeleteOptions, Part, Refusal, WriteOptions};

pub(super) async fn create(rest: &Rest, inbound: &Inbound) -> Result<Response, Refusal> {
    if inbound.resource.kind.scope == Scope::Namespaced && inbound.path.namespace.is_none() {
        return Err(Refusal::method_not_allowed());
    }
    let text = object_text(inbound)?;
    let operations = &rest.operations;
    let answer = operations
        .create(
            &inbound.caller,
            inbound.resource,
            inbound.namespace(),
            &text,
            &options(inbound)?,
        )
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn update(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let (text, options) = (object_text(inbound)?, options(inbound)?);
    let (operations, key) = (&rest.operations, inbound.key(name));
    let answer = operations
        .update(&inbound.caller, &key, part(inbound), &text, &options)
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn patch(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let patch_type = PatchType::from_content_type(&inbound.head.content_type)
        .ok_or_else(|| Status::unsupported_media_type(&PatchType::media_types(false)))?;
    let options = options(inbound)?;
    let (operations, key) = (&rest.operations, inbound.key(name));
    let answer = operations
        .patch(
            &inbound.caller,
            &key,
            part(inbound),
            patch_type,
            inbound.body.clone(),
            &options,
        )
        .await?;
    form(rest, inbound).one(&answer)
}

fn part(inbound: &Inbound) -> Part {
    match inbound.path.subresource {
        Some(Subresource::Status) => Part::Status,
        Some(Subresource::Finalize) | None => Part::Main,
    }
}

/// What the deletion of a collection may be called with. Anything else, a misspelt selector above all, would let it
/// delete more than was meant.
const OF_COLLECTIONS: [&str; 7] = [
    parameter::LABEL_SELECTOR,
    parameter::FIELD_SELECTOR,
    parameter::PROPAGATION_POLICY,
    parameter::DRY_RUN,
    parameter::GRACE_PERIOD_SECONDS,
    parameter::TIMEOUT_SECONDS,
    parameter::PRETTY,
];

pub(super) async fn clear(rest: &Rest, inbound: &Inbound) -> Result<Response, Refusal> {
    if let Some(unknown) = inbound.query.names().find(|name| !OF_COLLECTIONS.contains(name)) {
        return Err(Refusal::bad_request(format!(
            "a collection is not deleted with the parameter {unknown:?}: it takes {}",
            OF_COLLECTIONS.join(", ")
        )));
    }
    let (which, options) = (read::options(inbound)?, delete_options(inbound)?);
    let answer = rest
        .operations
        .delete_collection(&inbound.caller, inbound.resource, &which, &options)
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn delete(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let options = delete_options(inbound)?;
    let key = inbound.key(name);
    let answer = rest.operations.delete(&inbound.caller, &key, &options).await?;
    form(rest, inbound).one(&answer)
}

/// The options of a write, from its parameters.
pub(super) fn options(inbound: &Inbound) -> Result<WriteOptions, Refusal> {
    let text = |parameter: &str| inbound.query.get(parameter).map(str::to_owned);
    Ok(WriteOptions {
        dry_run: inbound.query.dry_run()?,
        field_manager: text(parameter::FIELD_MANAGER),
        field_validation: text(parameter::FIELD_VALIDATION),
        force: inbound.query.is_on(parameter::FORCE),
    })
}

/// The object of the body as JSON.
pub(super) fn object_text(inbound: &Inbound) -> Result<Cow<'_, str>, Refusal> {
    let text = utf8(&inbound.body)?;
    match inbound.head.content_type.as_str() {
        "" | media::JSON => Ok(Cow::Borrowed(text)),
        media::YAML => Ok(Cow::Owned(yaml(text.as_bytes())?.to_string())),
        _ => Err(Status::unsupported_media_type(&media::OBJECT_TYPES).into()),
    }
}

fn utf8(body: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(body).map_err(|error| Refusal::bad_request(format!("the body is not UTF-8: {error}")))
}

fn yaml(text: &[u8]) -> Result<Value, Refusal> {
    let read = decode::yaml(text).map_err(|error| Refusal::bad_request(error.to_string()))?;
    Ok(read.value)
}

/// From the body; a parameter counts where the body says nothing, as in Kubernetes.
pub(super) fn delete_options(inbound: &Inbound) -> Result<DeleteOptions, Refusal> {
    let body = match utf8(&inbound.body)? {
        text if text.trim().is_empty() => json!({}),
        text => yaml(text.as_bytes())?,
    };
    let mut options: DeleteOptions = serde_json::from_value(body)
        .map_err(|error| Refusal::bad_request(format!("the body is not DeleteOptions: {error}")))?;
    let parameters = DeleteOptions::of_query(&inbound.query);
    options.propagation_policy = options.propagation_policy.or(parameters.propagation_policy);
    options.dry_run = options.dry_run.or(parameters.dry_run);
    Ok(options)
}
