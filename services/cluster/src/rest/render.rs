//! Objects in the form in which the client wants them: JSON, YAML, a table, metadata alone.

use std::sync::Arc;

use bytes::Bytes;
use kindex_kube_api::list::{self, ListMeta};
use kindex_kube_api::partial;
use kindex_kube_api::request::{Query, Rendering};
use kindex_kube_api::status::Status;
use kindex_kube_api::table::{self, IncludeObject};
use serde_json::Value;

use super::{Call, Reply};
use crate::api::Api;
use crate::builtin;
use crate::mutate::{Written, not_shown, store_failed};
use crate::resource::{Resource, ResourceType, Shown, shown};
use crate::store::Revision;

/// The metadata of a list of whole objects: that of a custom resource has the token where there is no next page, too.
fn list_meta(resource: &Resource, meta: &ListMeta) -> ListMeta {
    let mut meta = meta.clone();
    if resource.resource_type == ResourceType::Custom && meta.continue_token.is_none() {
        meta.continue_token = Some(String::new());
    }
    meta
}

/// Stored objects as the resource shows them, each converted for itself, as in kube-apiserver.
pub(super) async fn shown_all<'a>(resource: &Resource, found: &'a [Arc<Revision>]) -> Result<Vec<Shown<'a>>, Status> {
    let mut objects = Vec::with_capacity(found.len());
    for revision in found {
        objects.push(shown(resource, revision).await.map_err(|error| not_shown(&error))?);
    }
    Ok(objects)
}

/// A reply with one stored object.
pub(super) async fn revision(call: &Call<'_>, code: u16, revision: &Revision) -> Result<Reply, Status> {
    let shown = shown(call.resource, revision)
        .await
        .map_err(|error| not_shown(&error))?;
    one(call, code, &shown)
}

/// A reply with the result of a mutation.
pub(super) async fn written(call: &Call<'_>, code: u16, written: Written) -> Result<Reply, Status> {
    match written {
        Written::Revision(stored) => revision(call, code, &stored).await,
        Written::Dry(object) => one(call, code, &Shown::Object(*object)),
    }
}

/// A reply with one object.
pub(super) fn one(call: &Call<'_>, code: u16, object: &Shown<'_>) -> Result<Reply, Status> {
    let value = || object.value().map_err(|error| store_failed(&error));
    Ok(match call.request.rendering {
        Rendering::Json => Reply::json(code, object.text()),
        Rendering::Yaml => Reply::yaml(code, yaml(value()?)?),
        Rendering::Table => Reply::value(code, &table(call.api, call.resource, &call.request.query, value()?)),
        Rendering::Metadata => Reply::value(code, &partial::of(value()?)),
    })
}

/// A reply with many objects.
pub(super) fn many(call: &Call<'_>, objects: &[Shown<'_>], meta: &ListMeta) -> Result<Reply, Status> {
    let values = || -> Result<Vec<&Value>, Status> {
        objects
            .iter()
            .map(|object| object.value().map_err(|error| store_failed(&error)))
            .collect()
    };
    let resource = call.resource;
    let (api_version, list_kind) = (&resource.api_version, &resource.names.list_kind);
    Ok(match call.request.rendering {
        Rendering::Json => {
            let texts: Vec<Bytes> = objects.iter().map(Shown::text).collect();
            let meta = list_meta(resource, meta);
            Reply::json(200, list::text(api_version, list_kind, &texts, &meta))
        }
        Rendering::Yaml => {
            let items = values()?.into_iter().cloned().collect();
            let list = list::value(api_version, list_kind, items, &list_meta(resource, meta));
            Reply::yaml(200, yaml(&list)?)
        }
        Rendering::Table => {
            let row = |object: &Value| builtin::with_columns(resource, object).unwrap_or_else(|| object.clone());
            let rows: Vec<Value> = values()?.into_iter().map(row).collect();
            let (include, now) = (include(&call.request.query), call.api.now());
            Reply::value(200, &table::of_list(&resource.columns, &rows, include, now, meta))
        }
        Rendering::Metadata => {
            let items = values()?.into_iter().map(partial::of).collect();
            Reply::value(200, &partial::list(items, meta))
        }
    })
}

/// A `meta.k8s.io/v1` Table of one object.
pub(super) fn table(api: &Api, resource: &Resource, query: &Query, object: &Value) -> Value {
    let with_columns = builtin::with_columns(resource, object);
    let object = with_columns.as_ref().unwrap_or(object);
    table::of_object(&resource.columns, object, include(query), api.now())
}

fn include(query: &Query) -> IncludeObject {
    IncludeObject::of_parameter(query.get("includeObject"))
}

fn yaml(value: &Value) -> Result<String, Status> {
    serde_saphyr::to_string(value).map_err(|error| Status::internal(&error))
}
