//! What a cluster says of the versions of a resource: its definition, its state and its migrations.

use std::collections::BTreeMap;
use std::fmt::Debug;

use jiff::Timestamp;
use kindex_kube_client::identity::{Identity, identify};
use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::{Cluster, ClusterError};
use crate::migration::{Migration, Progress};
use crate::run::estimate::{Estimate, estimate};
use crate::state::State;
use crate::verdict::{Ended, Stored};
use crate::wire::definition::stored;
use crate::wire::{GroupResource, GroupVersionResource, StorageState, StorageVersionMigration};

/// One resource as it was when it was asked for.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What decisions are made on.
    pub stored: Stored,
    /// `metadata.resourceVersion` of the definition, which was read before everything else.
    pub resource_version: String,
    /// Migrations that have not ended.
    pub under_way: Vec<MigrationProgress>,
}

/// How far a migration is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationProgress {
    /// Its name.
    pub name: String,
    /// Whether a migrator has taken it up.
    pub running: bool,
    /// Passes that ended.
    pub passes: u32,
    /// Objects of this pass that are done.
    pub done: u64,
    /// Objects that all passes have written in the target version.
    pub rewritten: u64,
    /// Objects of a pass, and when all passes that are to come are over at the rate so far; `None` before the first
    /// page.
    pub estimate: Option<Estimate>,
}

/// Every resource that has a definition. Where the cluster lacks the resources of the migrator there are no states and
/// no migrations.
///
/// # Errors
/// Where definitions, states or migrations cannot be listed.
pub async fn survey(cluster: &Cluster) -> Result<BTreeMap<GroupResource, Survey>, ClusterError> {
    let definitions = cluster.definitions().await?;
    let states: Vec<StorageState> = listed(cluster, "storagestates", cluster.states()).await?;
    let migrations = listed(cluster, "storageversionmigrations", cluster.migrations());
    let migrations: Vec<StorageVersionMigration> = migrations.await?;
    let mut surveys = BTreeMap::new();
    for definition in &definitions {
        let (Some((resource, stored)), Some(resource_version)) = (stored(definition), definition.resource_version())
        else {
            continue;
        };
        let survey = Survey {
            stored,
            resource_version,
            under_way: Vec::new(),
        };
        surveys.insert(resource, survey);
    }
    for state in &states {
        if let Some(survey) = surveys.get_mut(&state.spec.resource) {
            survey.stored.state = state.status.as_ref().map(State::from);
        }
    }
    for migration in &migrations {
        let GroupVersionResource { group, resource, .. } = migration.spec.resource.clone();
        if let Some(survey) = surveys.get_mut(&GroupResource { group, resource }) {
            survey.under_way.extend(under_way(migration, Timestamp::now()));
            survey.stored.migrations.push(ended(migration));
        }
    }
    Ok(surveys)
}

/// All objects of a kind of the migrator's; none where the cluster does not serve it.
async fn listed<K>(cluster: &Cluster, what: &'static str, api: Api<K>) -> Result<Vec<K>, ClusterError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let unserved = match api.list(&ListParams::default()).await {
        Ok(list) => return Ok(list.items),
        Err(error) => cluster.confirm_unserved::<K>(error).await,
    };
    match unserved {
        Ok(()) => Ok(Vec::new()),
        Err(source) => Err(ClusterError::List { what, source }),
    }
}

fn ended(migration: &StorageVersionMigration) -> Ended {
    let status = migration.status.clone().unwrap_or_default();
    let run = status.run();
    let holds = status.true_condition();
    Ended {
        migration: Migration::from(migration),
        why: holds.map(|condition| condition.message.clone()).unwrap_or_default(),
        refused: run.pass.refused,
        first_refused: run.refused.first().cloned(),
    }
}

/// How far a migration is, unless it has ended.
pub fn under_way(migration: &StorageVersionMigration, now: Timestamp) -> Option<MigrationProgress> {
    let status = migration.status.clone().unwrap_or_default();
    let running = match status.progress() {
        Progress::Pending => false,
        Progress::Running => true,
        Progress::Succeeded | Progress::Failed { .. } => return None,
    };
    let run = status.run();
    let done = run.pass.listed();
    let since = status
        .true_condition()
        .and_then(|condition| condition.last_update_time.as_ref().map(|time| time.0));
    let elapsed = since.and_then(|since| now.duration_since(since).try_into().ok());
    let estimate = status.total.zip(elapsed).and_then(|(total, elapsed)| {
        let before = u64::from(run.passes).saturating_mul(total);
        // The first pass is verified by another one.
        let after = if run.passes == 0 { total } else { 0 };
        let left = total.saturating_sub(done).saturating_add(after);
        estimate(before.saturating_add(done), Some(left), elapsed).map(|all| Estimate { total, ..all })
    });
    Some(MigrationProgress {
        name: migration.name_any(),
        running,
        passes: run.passes,
        done,
        rewritten: run.all_passes().rewritten,
        estimate,
    })
}

/// Which cluster it is.
///
/// # Errors
/// Where it does not answer.
pub async fn identity(cluster: &Cluster) -> Result<Identity, ClusterError> {
    let what = "namespaces";
    let found = identify(&cluster.first).await;
    found.map_err(|source| ClusterError::List { what, source })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::ObjectMeta;
    use serde_json::{Value, json};

    use super::*;
    use crate::run::{Counts, Run};
    use crate::wire::{StorageVersionMigrationSpec, StorageVersionMigrationStatus};

    fn running(passes: u32, unchanged: u64) -> StorageVersionMigration {
        let mut status = StorageVersionMigrationStatus {
            total: Some(1_000),
            ..StorageVersionMigrationStatus::default()
        };
        status.set_condition("Running", "Rewriting", String::new(), Timestamp::UNIX_EPOCH);
        status.save(&Run {
            passes,
            pass: Counts {
                unchanged,
                ..Counts::default()
            },
            ..Run::default()
        });
        StorageVersionMigration {
            metadata: ObjectMeta::default(),
            spec: StorageVersionMigrationSpec {
                resource: GroupVersionResource::default(),
            },
            status: Some(status),
        }
    }

    #[test]
    fn what_all_passes_rewrote_is_shown_while_the_last_verifies() {
        let mut migration = running(1, 500);
        let status = migration.status.get_or_insert_default();
        let mut run = status.run();
        run.before.rewritten = 900;
        status.save(&run);
        let seen = under_way(&migration, Timestamp::UNIX_EPOCH).expect("running");
        assert_eq!((seen.done, seen.rewritten), (500, 900));
    }

    /// A cluster without definitions, which answers 404 to all but its discovery: that has the resources of the
    /// migrator, or no group of them.
    fn cluster(serves_them: bool) -> Cluster {
        let group = |name: &str, version: &str| {
            let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
            json!({"name": name, "versions": [version], "preferredVersion": version})
        };
        let mut groups = vec![group("apiextensions.k8s.io", "v1")];
        groups.extend(serves_them.then(|| group("migration.k8s.io", "v1alpha1")));
        let resource = |name: &str, kind: &str| {
            let verbs = ["get", "list"];
            json!({"name": name, "kind": kind, "singularName": "", "namespaced": false, "verbs": verbs})
        };
        let resources = [
            resource("storagestates", "StorageState"),
            resource("storageversionmigrations", "StorageVersionMigration"),
        ];
        let answer = move |request: Request<Body>| {
            let said: Option<Value> = match request.uri().path() {
                "/apis" => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})),
                "/apis/migration.k8s.io/v1alpha1" => Some(json!({"kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": "migration.k8s.io/v1alpha1", "resources": resources})),
                path if path.ends_with("/customresourcedefinitions") => Some(json!({"kind": "List",
                    "apiVersion": "apiextensions.k8s.io/v1", "metadata": {}, "items": []})),
                _ => None,
            };
            let (code, text) = match said {
                Some(said) => (200, said.to_string()),
                None => (404, "404 page not found".to_owned()),
            };
            let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
            ready(Ok::<_, Infallible>(response.expect("an answer")))
        };
        Cluster::new(Client::new(tower::service_fn(answer), "default"), Vec::new())
    }

    /// As if no migration were under way, nor ever had been, because a proxy answered for the cluster.
    #[tokio::test]
    async fn there_are_no_migrations_where_the_cluster_does_not_serve_them_and_not_where_a_proxy_says_so() {
        assert!(survey(&cluster(false)).await.expect("surveyed").is_empty());
        let unclear = survey(&cluster(true)).await;
        assert!(
            matches!(
                unclear,
                Err(ClusterError::List {
                    what: "storagestates",
                    ..
                })
            ),
            "{unclear:?}"
        );
        let migration = cluster(false).migration("m").await;
        assert!(migration.expect("there are none").is_none());
        assert!(cluster(true).migration("m").await.is_err());
    }

    #[test]
    fn the_estimate_counts_the_pass_that_verifies() {
        let after = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let left = |migration: &StorageVersionMigration, seconds| {
            let estimate = under_way(migration, after(seconds)).expect("running").estimate;
            estimate.expect("begun").left
        };
        assert_eq!(left(&running(0, 500), 10), Some(Duration::from_secs(30)));
        assert_eq!(left(&running(1, 500), 30), Some(Duration::from_secs(10)));
        let mut ended = running(1, 1_000);
        let status = ended.status.get_or_insert_default();
        status.set_condition("Succeeded", "Verified", String::new(), after(40));
        assert_eq!(under_way(&ended, after(50)), None);
    }
}
