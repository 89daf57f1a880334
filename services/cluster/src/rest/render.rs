//! Objects in the form in which the client wants them: JSON, YAML, a table, metadata alone.

use std::sync::Arc;

use bytes::Bytes;
use kindex_kube_api::list::ListMeta;
use kindex_kube_api::partial;
use kindex_kube_api::request::{Query, Rendering};
use kindex_kube_api::status::Status;
use kindex_kube_api::table::{self, IncludeObject};
use serde_json::{Value, json};

use super::{Call, Reply};
use crate::api::Api;
use crate::builtin;
use crate::mutate::{Written, not_shown, store_failed};
use crate::resource::{Resource, ResourceType, Shown, shown};
use crate::store::Revision;

/// The metadata of a list of whole objects: that of a custom resource has the token where there is no next page, too.
fn list_metadata(resource: &Resource, meta: &ListMeta) -> Value {
    let mut metadata = meta.to_value();
    if resource.resource_type == ResourceType::Custom && meta.continue_token.is_none() {
        metadata["continue"] = "".into();
    }
    metadata
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
        Rendering::Table => Reply::value(
            code,
            &table(call.api, call.resource, &call.request.query, &[value()?], None),
        ),
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
    Ok(match call.request.rendering {
        Rendering::Json => Reply::json(200, list_text(resource, objects, meta)),
        Rendering::Yaml => {
            let list = json!({
                "apiVersion": resource.api_version,
                "items": values()?,
                "kind": resource.names.list_kind,
                "metadata": list_metadata(resource, meta),
            });
            Reply::yaml(200, yaml(&list)?)
        }
        Rendering::Table => Reply::value(
            200,
            &table(call.api, resource, &call.request.query, &values()?, Some(meta)),
        ),
        Rendering::Metadata => {
            let items = values()?.into_iter().map(partial::of).collect();
            Reply::value(200, &partial::list(items, meta.to_value()))
        }
    })
}

/// A list put together from the stored texts of its items.
fn list_text(resource: &Resource, objects: &[Shown<'_>], meta: &ListMeta) -> Bytes {
    let texts: Vec<Bytes> = objects.iter().map(Shown::text).collect();
    let size: usize = texts.iter().map(|text| text.len() + 1).sum();
    let mut list = Vec::with_capacity(size + 256);
    list.extend_from_slice(format!("{{\"apiVersion\":\"{}\",\"items\":[", resource.api_version).as_bytes());
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            list.push(b',');
        }
        list.extend_from_slice(text);
    }
    list.extend_from_slice(
        format!(
            "],\"kind\":\"{}\",\"metadata\":{}}}",
            resource.names.list_kind,
            list_metadata(resource, meta)
        )
        .as_bytes(),
    );
    Bytes::from(list)
}

/// A `meta.k8s.io/v1` Table of objects.
pub(super) fn table(
    api: &Api,
    resource: &Resource,
    query: &Query,
    objects: &[&Value],
    meta: Option<&ListMeta>,
) -> Value {
    let include = IncludeObject::of_parameter(query.get("includeObject"));
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| builtin::with_columns(resource, object).unwrap_or_else(|| (*object).clone()))
        .collect();
    let mut table = table::render(&resource.columns, &rows, include, api.now());
    if let Some(meta) = meta {
        table["metadata"] = meta.to_value();
    } else if let [object] = objects {
        table["metadata"] = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    }
    table
}

fn yaml(value: &Value) -> Result<String, Status> {
    serde_saphyr::to_string(value).map_err(|error| Status::internal(&error))
}
