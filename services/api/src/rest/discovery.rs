//! The documents from which clients learn what there is, where some kinds are none of the cluster's: those of the
//! cluster, with what these kinds add. Knows no kind.

use axum::http::request::Parts;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::TryStreamExt;
use kindex_kube_api::media;
use kindex_kube_api::request::{self, Target};
use serde_json::{Map, Value};

use super::exchange;
use crate::operations::{Caller, Operations, ProxiedResponse, Refusal};

/// What is behind this in an address changes with the document.
const HASH: &str = "?hash=";

/// Whether a path is that of such a document.
pub(super) fn is_one(path: &str) -> bool {
    match request::parse_path(path) {
        Target::Groups | Target::Group(_) | Target::GroupVersion(..) => true,
        Target::OpenApiIndex | Target::OpenApiDocument(..) => true,
        Target::Version
        | Target::Health
        | Target::Root
        | Target::CoreVersions
        | Target::Swagger
        | Target::Resource(_)
        | Target::Unknown => false,
    }
}

/// The document of the cluster with what the other kinds add, or the one of these kinds alone.
pub(super) async fn answer(operations: &Operations, caller: &Caller, parts: &Parts) -> Result<Response, Refusal> {
    let path = parts.uri.path();
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let wanted = match request::wants_aggregated_discovery(accept) {
        true => media::AGGREGATED_DISCOVERY,
        false => media::JSON,
    };
    let of_cluster = operations.relay(caller, asking(path, wanted)?).await?;
    let (code, of_cluster) = read(of_cluster).await?;
    let there: Option<Value> = match code {
        StatusCode::OK => Some(serde_json::from_slice(&of_cluster).map_err(|error| unreadable(&error))?),
        StatusCode::NOT_FOUND => None,
        _ => return Err(Refusal::from_status(code.as_u16(), &of_cluster)),
    };
    // An older cluster gives the older form.
    let wanted = match &there {
        Some(there) if there["kind"] != "APIGroupDiscoveryList" => media::JSON,
        Some(_) | None => wanted,
    };
    let own = match operations.ask_sql_only(asking(path, wanted)?).await {
        Some(own) => read(own?).await?,
        None => (StatusCode::NOT_FOUND, Bytes::new()),
    };
    let own: Option<Value> = match own {
        (StatusCode::OK, text) => Some(serde_json::from_slice(&text).map_err(|error| unreadable(&error))?),
        _ => None,
    };
    let document = match (there, own) {
        (Some(there), Some(own)) => merged(there, own),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Err(Refusal::from_status(code.as_u16(), &of_cluster)),
    };
    let kind = if document["kind"] == "APIGroupDiscoveryList" {
        media::AGGREGATED_DISCOVERY
    } else {
        media::JSON
    };
    Ok(exchange::typed(kind, document.to_string().into()))
}

fn asking(path: &str, accept: &'static str) -> Result<Request<Bytes>, Refusal> {
    let request = Request::get(path).header(header::ACCEPT, accept).body(Bytes::new());
    request.map_err(|error| Refusal::bad_request(error.to_string()))
}

async fn read(response: ProxiedResponse) -> Result<(StatusCode, Bytes), Refusal> {
    let (head, body) = response.into_parts();
    let whole = body.try_fold(Vec::new(), |mut whole, piece| async move {
        whole.extend_from_slice(&piece);
        Ok(whole)
    });
    let whole = whole.await.map_err(|error| unreadable(&error))?;
    Ok((head.status, whole.into()))
}

fn unreadable(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::bad_gateway(format!("the cluster's discovery cannot be read: {error}"))
}

/// Two documents of one sort as one. What both name is the first one's, with all that is below it.
fn merged(mut there: Value, mut own: Value) -> Value {
    for list in ["groups", "versions", "resources", "items"] {
        if let Value::Array(more) = own[list].take() {
            add_all(&mut there, list, more);
        }
    }
    if let Some(paths) = own.get_mut("paths").and_then(Value::as_object_mut) {
        add_paths(&mut there, std::mem::take(paths));
    }
    let schemas = own.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    if let (Some(more), Some(schemas)) = (schemas, there.pointer_mut("/components/schemas")) {
        for (name, schema) in std::mem::take(more) {
            if let Some(schemas) = schemas.as_object_mut() {
                schemas.entry(name).or_insert(schema);
            }
        }
    }
    there
}

/// Adds the entries of a list. One that has the name of another one is merged with it.
fn add_all(there: &mut Value, list: &str, more: Vec<Value>) {
    if !there[list].is_array() {
        there[list] = Value::Array(Vec::new());
    }
    let Some(entries) = there[list].as_array_mut() else {
        return;
    };
    for entry in more {
        let name = name_of(&entry);
        match entries
            .iter_mut()
            .find(|known| name.is_some() && name_of(known) == name)
        {
            Some(known) => *known = merged(known.take(), entry),
            None => entries.push(entry),
        }
    }
}

fn name_of(entry: &Value) -> Option<String> {
    let texts = [
        &entry["name"],
        &entry["metadata"]["name"],
        &entry["version"],
        &entry["resource"],
    ];
    texts.into_iter().find_map(|text| text.as_str().map(str::to_owned))
}

/// Adds paths of an index or of a document. An address of both changes with each of the two documents behind it.
fn add_paths(there: &mut Value, more: Map<String, Value>) {
    let Some(paths) = there["paths"].as_object_mut() else {
        return;
    };
    for (path, own) in more {
        let Some(known) = paths.get_mut(&path) else {
            paths.insert(path, own);
            continue;
        };
        let hash = own["serverRelativeURL"].as_str().and_then(|url| url.split_once(HASH));
        if let (Some(url), Some((_, hash))) = (known["serverRelativeURL"].as_str(), hash) {
            let separator = if url.contains(HASH) { "" } else { HASH };
            known["serverRelativeURL"] = format!("{url}{separator}{hash}").into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_and_versions_of_both_are_one_and_all_others_are_added() {
        let version = |version: &str| json!({"groupVersion": format!("g/{version}"), "version": version});
        let there = json!({"kind": "APIGroupList", "groups": [{"name": "g", "versions": [version("v1")]}]});
        let own = json!({"kind": "APIGroupList", "groups": [
            {"name": "g", "versions": [version("v1"), version("v2")]}, {"name": "h", "versions": []}]});
        let groups = merged(there, own);
        assert_eq!(
            groups["groups"],
            json!([{"name": "g", "versions": [version("v1"), version("v2")]}, {"name": "h", "versions": []}])
        );
        let there = json!({"items": [{"metadata": {"name": "g"}, "versions": [
            {"version": "v1", "resources": [{"resource": "a"}]}]}]});
        let own = json!({"items": [{"metadata": {"name": "g"}, "versions": [
            {"version": "v1", "resources": [{"resource": "b"}]}]}]});
        let all = merged(there, own);
        assert_eq!(
            all["items"][0]["versions"][0]["resources"],
            json!([{"resource": "a"}, {"resource": "b"}])
        );
    }

    #[test]
    fn an_address_changes_with_either_document_behind_it() {
        let index = |hash: &str| {
            json!({"paths": {"apis/g/v1": {
            "serverRelativeURL": format!("/openapi/v3/apis/g/v1?hash={hash}")}}})
        };
        let url = |document: &Value| document["paths"]["apis/g/v1"]["serverRelativeURL"].clone();
        assert_eq!(
            url(&merged(index("AB"), index("CD"))),
            "/openapi/v3/apis/g/v1?hash=ABCD"
        );
        let schemas = merged(
            json!({"paths": {}, "components": {"schemas": {"a": 1}}}),
            json!({"paths": {"/p": {}}, "components": {"schemas": {"a": 2, "b": 3}}}),
        );
        assert_eq!(
            schemas,
            json!({"paths": {"/p": {}}, "components": {"schemas": {"a": 1, "b": 3}}})
        );
    }
}
