//! Migrations that people ask for: created and deleted as the trigger does it.

use std::collections::BTreeSet;

use kindex_kube_client::{Outcome, outcome};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::ObjectMeta;

use super::discover::discover;
use super::{Cluster, ClusterError};
use crate::migration::{Migration, Progress};
use crate::wire::{GroupResource, GroupVersionResource, StorageVersionMigration, StorageVersionMigrationSpec};

/// What became of the wish for a migration.
#[derive(Clone, Debug)]
pub enum StartOutcome {
    /// It was created.
    Created(StorageVersionMigration),
    /// There is one that has not ended.
    UnderWay(StorageVersionMigration),
    /// No API server lists the resource.
    Unserved,
}

/// Asks for a migration of a resource. Those that ended give way to it, as they do to one of the trigger: what they say
/// may be of another time.
///
/// # Errors
/// Where migrations cannot be listed, deleted or created.
pub async fn start(cluster: &Cluster, resource: &GroupResource) -> Result<StartOutcome, ClusterError> {
    let discovery = discover(cluster, &BTreeSet::from([resource.group.clone()])).await;
    let Some(served) = discovery.served.get(resource) else {
        return Ok(StartOutcome::Unserved);
    };
    let present = of(cluster, resource).await?;
    let is_under_way = |one: &&StorageVersionMigration| {
        matches!(Migration::from(*one).progress, Progress::Pending | Progress::Running)
    };
    if let Some(one) = present.iter().find(is_under_way) {
        return Ok(StartOutcome::UnderWay(one.clone()));
    }
    for migration in &present {
        delete(cluster, migration).await?;
    }
    let migration = StorageVersionMigration {
        metadata: ObjectMeta {
            generate_name: Some(format!("{resource}-")),
            ..ObjectMeta::default()
        },
        spec: StorageVersionMigrationSpec {
            resource: GroupVersionResource {
                group: resource.group.clone(),
                version: served.resource.version.clone(),
                resource: resource.resource.clone(),
            },
        },
        status: None,
    };
    let created = cluster.migrations().create(&PostParams::default(), &migration).await;
    let error = |source| write(resource.to_string(), source);
    created.map(StartOutcome::Created).map_err(error)
}

/// Deletes the migrations of a resource that have not ended, which stops them within a page. Gives back their names.
///
/// # Errors
/// Where migrations cannot be listed or deleted.
pub async fn stop(cluster: &Cluster, resource: &GroupResource) -> Result<Vec<String>, ClusterError> {
    let mut stopped = Vec::new();
    for migration in of(cluster, resource).await? {
        if matches!(
            Migration::from(&migration).progress,
            Progress::Pending | Progress::Running
        ) {
            delete(cluster, &migration).await?;
            stopped.push(migration.name_any());
        }
    }
    Ok(stopped)
}

/// A migration as it is now; `None` once it was deleted, also with its definition.
///
/// # Errors
/// Where it cannot be read.
pub async fn look_at(cluster: &Cluster, name: &str) -> Result<Option<StorageVersionMigration>, ClusterError> {
    let found = cluster.migration(name).await;
    found.map_err(|source| ClusterError::List {
        what: "storageversionmigrations",
        source,
    })
}

async fn of(cluster: &Cluster, resource: &GroupResource) -> Result<Vec<StorageVersionMigration>, ClusterError> {
    let listed = cluster.migrations().list(&ListParams::default()).await;
    let list = |source| ClusterError::List {
        what: "storageversionmigrations",
        source,
    };
    let mut migrations = listed.map_err(list)?.items;
    migrations.retain(|one| {
        let GroupVersionResource {
            group,
            resource: plural,
            ..
        } = &one.spec.resource;
        (group, plural) == (&resource.group, &resource.resource)
    });
    Ok(migrations)
}

async fn delete(cluster: &Cluster, migration: &StorageVersionMigration) -> Result<(), ClusterError> {
    let name = migration.name_any();
    let only_this = DeleteParams::default().preconditions(Preconditions {
        uid: migration.uid(),
        resource_version: None,
    });
    match cluster.migrations().delete(&name, &only_this).await {
        Err(error) if outcome(&error) == Some(Outcome::Absent) => Ok(()),
        deleted => deleted.map(drop).map_err(|source| write(name, source)),
    }
}

fn write(name: String, source: kube::Error) -> ClusterError {
    ClusterError::Write {
        what: "storageversionmigration",
        name,
        source,
    }
}
