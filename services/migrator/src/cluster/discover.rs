//! Discovery, asked of every API server in the legacy form: the aggregated one shows no hashes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kindex_kube_api::request::Verb;
use kube::Client;
use kube::core::ApiResource;

use super::Cluster;
use crate::discovery::{Discovered, Shown, combine};
use crate::hash::Hash;
use crate::wire::GroupResource;

/// What a migration does with the objects of its resource.
pub(super) const VERBS: [Verb; 2] = [Verb::List, Verb::Patch];

/// A resource that can be listed and patched.
#[derive(Clone, Debug)]
pub struct Served {
    /// How it is asked for: by the group's preferred version, where that has it.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// What all API servers serve.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// Every resource that the first server has.
    pub served: BTreeMap<GroupResource, Served>,
    answers: Vec<Answer>,
}

/// Of one server.
#[derive(Clone, Debug, Default)]
struct Answer {
    shown: BTreeMap<GroupResource, Shown>,
    /// Groups that it did not answer for.
    silent: BTreeSet<String>,
    /// Whether it did not even name its groups.
    unreachable: bool,
}

impl Discovery {
    /// What the servers say of a resource together.
    pub fn of(&self, resource: &GroupResource) -> Discovered {
        combine(self.answers.iter().map(|answer| answer.of(resource)))
    }
}

impl Answer {
    fn of(&self, resource: &GroupResource) -> Shown {
        if self.unreachable || self.silent.contains(&resource.group) {
            return Shown::Silent;
        }
        self.shown.get(resource).cloned().unwrap_or(Shown::Absent)
    }
}

/// Asks every server for these groups; for all that it has where none is named.
pub async fn discover(cluster: &Cluster, groups: &BTreeSet<String>) -> Discovery {
    let mut discovery = Discovery::default();
    for (at, client) in cluster.servers().enumerate() {
        let mut served = BTreeMap::new();
        discovery.answers.push(ask(client, groups, &mut served).await);
        if at == 0 {
            discovery.served = served;
        }
    }
    discovery
}

async fn ask(client: &Client, groups: &BTreeSet<String>, served: &mut BTreeMap<GroupResource, Served>) -> Answer {
    let mut answer = Answer::default();
    let wanted = |group: &str| groups.is_empty() || groups.contains(group);
    if wanted("") {
        match client.list_core_api_resources("v1").await {
            Ok(list) => note(&mut answer, served, "", "v1", list.resources),
            Err(error) => silent(&mut answer, "", &error),
        }
    }
    let listed = match client.list_api_groups().await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(%error, "an API server does not name its groups");
            answer.unreachable = true;
            return answer;
        }
    };
    for group in listed.groups.into_iter().filter(|group| wanted(&group.name)) {
        let preferred = group.preferred_version.iter();
        let mut versions: Vec<_> = preferred
            .chain(&group.versions)
            .map(|one| one.version.clone())
            .collect();
        let mut seen = BTreeSet::new();
        versions.retain(|version| seen.insert(version.clone()));
        for version in versions {
            match client
                .list_api_group_resources(&format!("{}/{version}", group.name))
                .await
            {
                Ok(list) => note(&mut answer, served, &group.name, &version, list.resources),
                Err(error) => silent(&mut answer, &group.name, &error),
            }
        }
    }
    answer
}

fn silent(answer: &mut Answer, group: &str, error: &kube::Error) {
    tracing::warn!(group, %error, "an API server does not say what it serves");
    answer.silent.insert(group.to_owned());
}

/// Notes the resources of a group and version that no version before had.
fn note(
    answer: &mut Answer,
    served: &mut BTreeMap<GroupResource, Served>,
    group: &str,
    version: &str,
    resources: Vec<APIResource>,
) {
    for found in resources {
        let can = |verb: Verb| found.verbs.iter().any(|one| one == verb.as_str());
        if found.name.contains('/') || !VERBS.into_iter().all(can) {
            continue;
        }
        let name = GroupResource {
            group: group.to_owned(),
            resource: found.name.clone(),
        };
        if answer.shown.contains_key(&name) {
            continue;
        }
        let hash = found.storage_version_hash.as_deref().and_then(Hash::shown);
        answer
            .shown
            .insert(name.clone(), hash.map_or(Shown::NoHash, Shown::Hash));
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: found.kind,
            plural: found.name,
        };
        let namespaced = found.namespaced;
        served.insert(name, Served { resource, namespaced });
    }
}
