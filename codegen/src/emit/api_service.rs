//! What leads kube-apiserver to `kindex api --aggregated`: an APIService for each group and version of the kinds.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/>

use serde::Serialize;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::Model;

/// Where the manifest is for people, and where the chart has the same file, to the byte.
const PATHS: [&str; 2] = ["schema/aggregation.yaml", "deploy/helm/kindex/files/aggregation.yaml"];

/// Behind the groups of the cluster itself: who says `kubectl get models` means those.
const PRIORITY: u32 = 100;

/// The group in which a group's kinds are served behind kube-apiserver. Their own is the CustomResourceDefinitions'.
pub(super) fn aggregated_group(group: &str) -> String {
    format!("archive.{group}")
}

/// One file, in each of its places.
pub(super) fn emit(model: &Model) -> Artifacts {
    let mut served: Vec<(&str, &str)> = Vec::new();
    for kind in &model.kinds {
        let of_kind = (kind.group.as_str(), kind.version.as_str());
        if !served.contains(&of_kind) {
            served.push(of_kind);
        }
    }
    let list = List {
        api_version: "v1",
        kind: "List",
        items: served
            .into_iter()
            .map(|(group, version)| item(group, version))
            .collect(),
    };
    let yaml = serde_saphyr::to_string(&list).expect("a manifest holds only text and numbers");
    let text = format!("# {HEADER}\n{yaml}");
    PATHS
        .map(|path| (RelativePath::new(path), text.clone()))
        .into_iter()
        .collect()
}

fn item(group: &str, version: &str) -> ApiService {
    let group = aggregated_group(group);
    ApiService {
        api_version: "apiregistration.k8s.io/v1",
        kind: "APIService",
        metadata: Metadata {
            name: format!("{version}.{group}"),
        },
        spec: Spec {
            group,
            version: version.to_owned(),
            group_priority_minimum: PRIORITY,
            version_priority: PRIORITY,
            service: Service {
                namespace: "kindex",
                name: "kindex-api",
                port: 443,
            },
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<ApiService>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiService {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Serialize)]
struct Metadata {
    name: String,
}

/// Without `caBundle`: it is that of each installation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    group: String,
    version: String,
    group_priority_minimum: u32,
    version_priority: u32,
    service: Service,
}

#[derive(Serialize)]
struct Service {
    namespace: &'static str,
    name: &'static str,
    port: u16,
}
