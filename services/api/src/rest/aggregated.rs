//! The kinds in groups of their own, `archive.<group>`, for the aggregation layer of kube-apiserver: so that
//! archived objects are served by the usual server with the usual kubeconfig and rights. kube-apiserver authenticates
//! callers and passes their identity in headers, which are trusted on connections with its client certificate.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/>

use std::collections::BTreeMap;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use kindex_kube_api::request::{Target, Verb, parse_path};
use kindex_model::kind::{Registry, Scope};
use kindex_serve::listen::Peer;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::exchange;
use crate::metrics::OperationVerb;
use crate::operations::{Caller, Resource, User};

/// What stands before the group of a kind.
const PREFIX: &str = "archive.";
/// What is served there. Objects are created under their own group, at the cluster.
const VERBS: [Verb; 6] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Watch,
];
/// The headers of kube-apiserver's own defaults.
const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA: &str = "x-remote-extra-";

/// The user whom kube-apiserver names; none on connections of others, whatever their headers say.
pub(crate) fn caller(peer: Option<&Peer>, headers: &HeaderMap) -> Option<Caller> {
    peer.filter(|peer| peer.is_front_proxy)?;
    let texts = |name: &str| {
        let values = headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok().map(str::to_owned))
    };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)) {
        let key = percent_decode_str(name).decode_utf8_lossy().into_owned();
        extra.insert(key, texts(&format!("{EXTRA}{name}")).collect());
    }
    let user = User {
        username: texts(USER).next().filter(|name| !name.is_empty())?,
        uid: texts(UID).next().unwrap_or_default(),
        groups: texts(GROUP).collect(),
        extra: if extra.is_empty() {
            String::new()
        } else {
            json!(extra).to_string()
        },
    };
    Some(Caller::from_front_proxy(user, texts("user-agent").next()))
}

/// The group of the kinds that an aggregated group stands for.
pub(super) fn group(aggregated: &str) -> Option<&str> {
    aggregated.strip_prefix(PREFIX)
}

/// Whether a verb is served in the aggregated groups.
pub(super) fn serves(verb: OperationVerb) -> bool {
    matches!(verb, OperationVerb::Kubernetes(verb) if VERBS.contains(&verb))
}

/// What kube-apiserver asks beside objects: what there is. It takes 406 for a server without the newer form of that.
pub(super) fn discovery(registry: &Registry, path: &str) -> Response {
    let found = match parse_path(path) {
        Target::Groups => return StatusCode::NOT_ACCEPTABLE.into_response(),
        Target::Group(aggregated) => group(&aggregated).and_then(|group| versions(registry, group)),
        Target::GroupVersion(aggregated, version) => {
            group(&aggregated).and_then(|group| resources(registry, group, &version))
        }
        _ => None,
    };
    match found {
        Some(found) => exchange::json(found.to_string()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn of_group<'a>(registry: &'a Registry, group: &'a str) -> impl Iterator<Item = Resource> + 'a {
    let kinds = registry.kinds.iter().copied();
    kinds
        .filter(move |kind| kind.group == group && !group.is_empty())
        .flat_map(Resource::all)
}

fn versions(registry: &Registry, group: &str) -> Option<Value> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in of_group(registry, group) {
        if !versions.contains(&resource.version) {
            versions.push(resource.version);
        }
    }
    let named = |version: &&str| json!({"groupVersion": format!("{PREFIX}{group}/{version}"), "version": version});
    let versions: Vec<Value> = versions.iter().map(named).collect();
    let preferred = versions.first()?.clone();
    let name = format!("{PREFIX}{group}");
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": preferred,
    }))
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let resources = of_group(registry, group).filter(|resource| resource.version == version);
    let resources: Vec<Value> = resources
        .map(|Resource { kind, .. }| {
            json!({
                "name": kind.plural,
                "singularName": kind.singular,
                "namespaced": kind.scope == Scope::Namespaced,
                "kind": kind.name,
                "verbs": VERBS,
            })
        })
        .collect();
    let group_version = format!("{PREFIX}{group}/{version}");
    (!resources.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (USER, "jane"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("x-remote-extra-example.org%2fscope", "one"),
            ("authorization", "Bearer token"),
        ] {
            let name: axum::http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_front_proxy_is_believed() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let peer = |is_front_proxy| Peer {
            address,
            is_front_proxy,
        };
        assert!(caller(Some(&peer(false)), &headers()).is_none());
        assert!(caller(None, &headers()).is_none());
        assert!(
            caller(Some(&peer(true)), &HeaderMap::new()).is_none(),
            "it says of nobody who it is"
        );
        let reported = format!("{:?}", caller(Some(&peer(true)), &headers()).unwrap());
        for part in ["\"jane\"", "[\"a\", \"b\"]", "example.org/scope", "bearer_token: None"] {
            assert!(reported.contains(part), "{part} in {reported}");
        }
    }
}
