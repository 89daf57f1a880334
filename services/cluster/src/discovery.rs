//! What is served, in the documents from which clients find their way: versions, groups, resources, all of it in
//! one answer, and the indexes of OpenAPI.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kindex_kube_api::request::{API, APIS, Verb, group_path, group_version};
use kindex_kube_api::scope::Scope;
use kindex_kube_api::storage_version;
use serde_json::{Value, json};

use crate::registry::Catalog;
use crate::resource::{Resource, ResourceType, join_group};

/// The version of Kubernetes whose behavior this is.
const MINOR: &str = "33";
const VERBS: [Verb; 8] = [
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
const SUBRESOURCE_VERBS: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

/// `/version`
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0+kindex"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/`
pub(crate) fn root(catalog: &Catalog) -> Value {
    let mut paths: Vec<String> = vec![API.to_owned(), group_version("", "v1"), APIS.to_owned()];
    for (name, versions) in groups(catalog) {
        if !name.is_empty() {
            paths.push(group_path(&name));
            paths.extend(versions.keys().map(|version| group_version(&name, &version.name)));
        }
    }
    paths.extend(
        [
            "/healthz",
            "/livez",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned),
    );
    json!({"paths": paths})
}

/// `/api`; clients reach the server at `address`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]})
}

/// A version of a group, ordered as Kubernetes prefers them: stable before beta before alpha, newer before older.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Priority {
    stability: Reverse<u8>,
    numbers: Reverse<(u64, u64)>,
    name: String,
}

fn priority(name: &str) -> Priority {
    let parsed = name.strip_prefix('v').and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..end].parse().ok()?;
        let stages: [(&str, u8); 2] = [("beta", 2), ("alpha", 1)];
        match &rest[end..] {
            "" => Some((3, (major, 0))),
            stage => stages.iter().find_map(|(word, stability)| {
                Some((*stability, (major, stage.strip_prefix(word)?.parse::<u64>().ok()?)))
            }),
        }
    });
    let (stability, numbers) = parsed.unwrap_or_default();
    Priority {
        stability: Reverse(stability),
        numbers: Reverse(numbers),
        name: name.to_owned(),
    }
}

type Versions = BTreeMap<Priority, Vec<Arc<Resource>>>;

/// The resources by group and by version, best version first.
fn groups(catalog: &Catalog) -> BTreeMap<String, Versions> {
    let mut groups: BTreeMap<String, Versions> = BTreeMap::new();
    for resource in catalog.all() {
        let versions = groups.entry(resource.group.clone()).or_default();
        versions
            .entry(priority(&resource.version))
            .or_default()
            .push(Arc::clone(resource));
    }
    groups
}

fn group_document(group: &str, versions: &Versions) -> Value {
    let version = |name: &str| json!({"groupVersion": join_group(group, name), "version": name});
    let all: Vec<Value> = versions.keys().map(|priority| version(&priority.name)).collect();
    let preferred = all.first().cloned();
    json!({"name": group, "versions": all, "preferredVersion": preferred})
}

/// `/apis`
pub(crate) fn group_list(catalog: &Catalog) -> Value {
    let groups = groups(catalog);
    let groups: Vec<Value> = groups
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, v)| group_document(group, v))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`
pub(crate) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let groups = groups(catalog);
    let mut document = group_document(name, groups.get(name)?);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(document)
}

/// `/api/v1`, `/apis/<group>/<version>`
pub(crate) fn resource_list(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in catalog
        .all()
        .filter(|resource| resource.group == group && resource.version == version)
    {
        let names = &resource.names;
        let mut entry = json!({
            "name": names.plural, "singularName": names.singular, "namespaced": resource.namespaced, "kind": names.kind,
            "verbs": verbs(resource),
        });
        // As kube-apiserver has it: it looks for the stored version among those that it serves.
        if resource.resource_type != ResourceType::Review && resource.serves_storage_version {
            entry["storageVersionHash"] = storage_version_hash(resource).into();
        }
        add_names(&mut entry, resource);
        resources.push(entry);
        for subresource in subresources(resource) {
            resources.push(json!({
                "name": format!("{}/{subresource}", names.plural), "singularName": "", "namespaced": resource.namespaced,
                "kind": names.kind, "verbs": SUBRESOURCE_VERBS,
            }));
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = join_group(group, version);
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}))
}

/// The order in which the API server tells them.
fn verbs(resource: &Resource) -> Vec<Verb> {
    let mut verbs = VERBS.to_vec();
    if resource.resource_type == ResourceType::Review {
        verbs.retain(|verb| *verb == Verb::Create);
    }
    if resource.resource_type == ResourceType::Custom {
        verbs.retain(|verb| *verb != Verb::Create);
        let after = verbs
            .iter()
            .position(|verb| *verb == Verb::Patch)
            .map_or(0, |at| at + 1);
        verbs.insert(after, Verb::Create);
    }
    verbs
}

fn add_names(entry: &mut Value, resource: &Resource) {
    if !resource.names.short_names.is_empty() {
        entry["shortNames"] = json!(resource.names.short_names);
    }
    if !resource.names.categories.is_empty() {
        entry["categories"] = json!(resource.names.categories);
    }
}

fn subresources(resource: &Resource) -> Vec<&'static str> {
    match (resource.has_status, resource.resource_type) {
        (true, ResourceType::Namespace) => vec!["finalize", "status"],
        (true, _) => vec!["status"],
        (false, _) => Vec::new(),
    }
}

/// Changes exactly when the form in which objects are stored does.
fn storage_version_hash(resource: &Resource) -> String {
    storage_version::hash(&resource.group, &resource.storage_version, &resource.names.kind)
}

/// All groups but the core one (`/apis`), or the core one alone (`/api`), with their resources.
pub(crate) fn aggregated(catalog: &Catalog, core: bool) -> Value {
    let items: Vec<Value> = groups(catalog)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|(priority, resources)| {
                    let resources: Vec<Value> =
                        resources.iter().map(|resource| aggregated_resource(resource)).collect();
                    json!({"version": priority.name, "freshness": "Current", "resources": resources})
                })
                .collect();
            json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.names.kind});
    let mut entry = json!({
        "resource": resource.names.plural, "responseKind": kind, "singularResource": resource.names.singular,
        "scope": Scope::of(resource.namespaced).as_str(), "verbs": verbs(resource),
    });
    add_names(&mut entry, resource);
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|name| json!({"subresource": name, "responseKind": kind, "verbs": SUBRESOURCE_VERBS}))
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first_and_newer_before_older() {
        let mut names = ["v1beta1", "foo", "v2", "v1", "v11alpha2", "v10", "v1beta2", "v1alpha1"];
        names.sort_by_key(|name| priority(name));
        assert_eq!(
            names,
            ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo"]
        );
    }
}
