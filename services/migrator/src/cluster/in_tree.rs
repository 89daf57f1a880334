//! A migration through the cluster's own migrator. Its success is not believed before a verification of our own: the
//! passes of [`work`] go over the objects after it, and write those that it left.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kindex_kube_client::{Outcome, look_up, outcome};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::settings::MigrationSettings;
use super::work::{give_up, work};
use super::{Cluster, ClusterError};
use crate::in_tree::{Ended, StoredVersions, StoredVersionsRepair, ended, put_back};
use crate::run::Verdict;
use crate::wire::definition::{self, StoredDefinition};
use crate::wire::{GroupResource, StorageVersionMigration};

const GROUP: &str = "storagemigration.k8s.io";
/// Versions whose `spec.resource` is a group and a resource, the newest first.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Where the cluster's migration keeps what its definition said before: the note has to outlive this process.
const NOTE: &str = "kindex/stored-versions-before";
/// How often another writer of the definition may come first.
const ATTEMPTS_MAX: u32 = 10;

/// How a migration through the cluster's own migrator went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTree {
    /// What that migrator says.
    pub ended: Ended,
    /// What the verification says; `None` where the migration was deleted or another process has it.
    pub verdict: Option<Verdict>,
    /// What it had taken from `storedVersions` and should not have.
    pub put_back: StoredVersionsRepair,
}

/// As [`work`], after the cluster's own migrator has gone over the objects. `storedVersions` that it narrowed are put
/// back unless the verification succeeds, also where the migration is deleted meanwhile; then, and where work is to
/// stop, the verdict is `None`. A cluster that has no such migrator at work gets a migration that failed and says so.
///
/// # Errors
/// What [`work`] fails for, and what is asked of the cluster beside it. The next attempt goes on with the same run of
/// the cluster's migrator.
pub async fn work_in_tree(
    cluster: &Cluster,
    migration: StorageVersionMigration,
    settings: impl Into<MigrationSettings>,
) -> Result<Option<InTree>, ClusterError> {
    let settings = settings.into();
    let api = match migrations(cluster).await {
        Ok(api) => api,
        Err(error @ ClusterError::Unserved { .. }) => return unavailable(cluster, &migration, error.to_string()).await,
        Err(error) => return Err(error),
    };
    let resource = GroupResource::from(&migration.spec.resource);
    let noted = begin(cluster, &api, &migration, &resource).await?;
    let waited = settings
        .stop
        .run_until_cancelled(wait(cluster, &api, &migration, &settings));
    let ended = match waited.await.transpose()? {
        Some(Waited::Ended(ended)) => ended,
        Some(Waited::Idle) => {
            delete(&api, &migration).await?;
            return unavailable(cluster, &migration, idle(&settings)).await;
        }
        Some(Waited::Deleted) | None => return abandon(cluster, &api, &migration, noted.as_ref()).await,
    };
    let mut restored = StoredVersionsRepair::default();
    if ended != Ended::Succeeded {
        restored = restore(cluster, &resource, noted.as_ref()).await?;
    }
    let Some(verdict) = work(cluster, migration.clone(), settings).await? else {
        return abandon(cluster, &api, &migration, noted.as_ref()).await;
    };
    if ended == Ended::Succeeded && verdict != Verdict::Succeeded {
        restored = restore(cluster, &resource, noted.as_ref()).await?;
    }
    Ok(Some(InTree {
        ended,
        verdict: Some(verdict),
        put_back: restored,
    }))
}

/// Ends the migration, since nobody goes over its objects.
async fn unavailable(
    cluster: &Cluster,
    migration: &StorageVersionMigration,
    why: String,
) -> Result<Option<InTree>, ClusterError> {
    let verdict = give_up(cluster, migration, Verdict::NoInTree { why: why.clone() }).await?;
    Ok(Some(InTree {
        ended: Ended::Failed { why },
        verdict,
        put_back: StoredVersionsRepair::default(),
    }))
}

fn idle(settings: &MigrationSettings) -> String {
    format!(
        "no kube-controller-manager has taken the migration of {GROUP} up within {} s: it needs the feature gate \
         StorageVersionMigrator; or migrate without --in-tree",
        settings.taken_up_within.as_secs()
    )
}

/// Stops the cluster's migration where ours was deleted, and puts back what it narrowed. Where work is merely to stop,
/// everything stays for the next process.
async fn abandon(
    cluster: &Cluster,
    api: &Api<DynamicObject>,
    migration: &StorageVersionMigration,
    noted: Option<&StoredVersions>,
) -> Result<Option<InTree>, ClusterError> {
    let name = migration.name_any();
    let own = cluster.migration(&name).await;
    let own = own.map_err(|source| write("storageversionmigration", &name, source))?;
    if own.is_some_and(|own| own.uid() == migration.uid() && own.metadata.deletion_timestamp.is_none()) {
        return Ok(None);
    }
    // The note goes with the cluster's migration: it is made good before, and once more for what is narrowed meanwhile.
    let resource = GroupResource::from(&migration.spec.resource);
    let before = restore(cluster, &resource, noted).await?;
    delete(api, migration).await?;
    let after = restore(cluster, &resource, noted).await?;
    let put_back = if before.narrowed.is_empty() { after } else { before };
    Ok(Some(InTree {
        ended: Ended::Failed {
            why: "the migration was deleted".to_owned(),
        },
        verdict: None,
        put_back,
    }))
}

/// Deletes the cluster's migration. What it goes on to write are no-ops for objects in the storage version.
async fn delete(api: &Api<DynamicObject>, migration: &StorageVersionMigration) -> Result<(), ClusterError> {
    let name = migration.name_any();
    match api.delete(&name, &DeleteParams::default()).await.map(drop) {
        Err(refused) if outcome(&refused) == Some(Outcome::Absent) => Ok(()),
        other => other.map_err(|source| write("storageversionmigration of storagemigration.k8s.io", &name, source)),
    }
}

/// The migrations of the cluster's own migrator, in a version that is served.
async fn migrations(cluster: &Cluster) -> Result<Api<DynamicObject>, ClusterError> {
    let groups = cluster
        .first
        .list_api_groups()
        .await
        .map_err(|source| ClusterError::List {
            what: "API groups",
            source,
        })?;
    let group = groups.groups.into_iter().find(|group| group.name == GROUP);
    let served: Vec<String> = group
        .into_iter()
        .flat_map(|group| group.versions)
        .map(|one| one.version)
        .collect();
    let version = VERSIONS.iter().find(|version| served.iter().any(|one| one == *version));
    let Some(version) = version else {
        return Err(ClusterError::Unserved { group: GROUP });
    };
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: (*version).to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: "StorageVersionMigration".to_owned(),
        plural: "storageversionmigrations".to_owned(),
    };
    Ok(Api::all_with(cluster.first.clone(), &resource))
}

/// Starts the cluster's migration, under the name of ours and owned by it, unless it was started before. Returns what
/// was noted then; `None` for a resource without a definition.
async fn begin(
    cluster: &Cluster,
    api: &Api<DynamicObject>,
    migration: &StorageVersionMigration,
    resource: &GroupResource,
) -> Result<Option<StoredVersions>, ClusterError> {
    let name = migration.name_any();
    let error = |source| write("storageversionmigration of storagemigration.k8s.io", &name, source);
    if let Some(begun) = look_up(api, &name).await.map_err(error)? {
        return Ok(noted_in(&begun));
    }
    let definition = cluster.definition(resource).await;
    let definition = definition.map_err(|source| write("customresourcedefinition", &resource.to_string(), source))?;
    let noted = definition.as_ref().map(note);
    let text = noted.as_ref().map(|noted| json!(noted).to_string());
    let object = json!({
        "metadata": {
            "name": name,
            "annotations": text.map(|text| json!({NOTE: text})),
            "ownerReferences": migration.owner_ref(&()).map(|owner| vec![owner]),
        },
        "spec": {"resource": {"group": resource.group, "resource": resource.resource}},
    });
    let object: DynamicObject = serde_json::from_value(object).expect("of this shape");
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => {
            // Where no kube-controller-manager takes it up, this is the last line for long.
            tracing::info!(migration = name, %resource, "the cluster's own migrator is asked for a migration");
            Ok(noted)
        }
        // Another process was faster. What it noted counts.
        Err(refused) if outcome(&refused).is_some_and(Outcome::is_conflict) => {
            Ok(noted_in(&api.get(&name).await.map_err(error)?))
        }
        Err(source) => Err(error(source)),
    }
}

fn note(definition: &StoredDefinition) -> StoredVersions {
    let stored = definition.status.as_ref().map(|status| status.stored().to_vec());
    StoredVersions {
        uid: definition.metadata.uid.clone().unwrap_or_default(),
        stored: stored.unwrap_or_default(),
    }
}

fn noted_in(begun: &DynamicObject) -> Option<StoredVersions> {
    let text = begun.annotations().get(NOTE)?;
    // Nobody else writes it.
    serde_json::from_str(text).ok()
}

/// How waiting for the cluster's migration ended.
enum Waited {
    /// With that migration.
    Ended(Ended),
    /// Ours was deleted before.
    Deleted,
    /// Nobody took it up.
    Idle,
}

/// Waits for the end of the cluster's migration.
async fn wait(
    cluster: &Cluster,
    api: &Api<DynamicObject>,
    migration: &StorageVersionMigration,
    settings: &MigrationSettings,
) -> Result<Waited, ClusterError> {
    let name = migration.name_any();
    let uid = migration.uid().unwrap_or_default();
    let own = cluster.migrations();
    let deleted = await_condition(own, &name, conditions::is_deleted(&uid));
    let over = |object: Option<&DynamicObject>| object.is_none_or(|object| ended_of(object).is_some());
    let over = await_condition(api.clone(), &name, over);
    let taken_up = |object: Option<&DynamicObject>| object.is_none_or(is_taken_up);
    let taken_up = timeout(settings.taken_up_within, await_condition(api.clone(), &name, taken_up));
    let idle = async {
        if taken_up.await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let waiting = |source| ClusterError::Watch {
        name: name.clone(),
        source,
    };
    tokio::select! {
        deleted = deleted => {
            deleted.map_err(waiting)?;
            Ok(Waited::Deleted)
        }
        () = idle => Ok(Waited::Idle),
        over = over => {
            let gone = || Ended::Failed { why: "somebody deleted the migration of storagemigration.k8s.io".to_owned() };
            let ended = over.map_err(waiting)?.as_ref().and_then(ended_of);
            Ok(Waited::Ended(ended.unwrap_or_else(gone)))
        }
    }
}

/// Whether it has any condition: those are its migrator's.
fn is_taken_up(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|conditions| !conditions.is_empty())
}

fn ended_of(object: &DynamicObject) -> Option<Ended> {
    let conditions = object.data.get("status")?.get("conditions")?;
    let conditions: Vec<Condition> = serde_json::from_value(conditions.clone()).ok()?;
    ended(&conditions)
}

/// Puts back what was taken from `storedVersions`, on condition of the definition that was looked at.
async fn restore(
    cluster: &Cluster,
    resource: &GroupResource,
    noted: Option<&StoredVersions>,
) -> Result<StoredVersionsRepair, ClusterError> {
    let Some(noted) = noted else {
        return Ok(StoredVersionsRepair::default());
    };
    let name = resource.to_string();
    let api: Api<StoredDefinition> = Api::all_with(cluster.first.clone(), &definition::resource());
    let error = |source| write("customresourcedefinition", &name, source);
    for attempt in 1.. {
        let Some(now) = look_up(&api, &name).await.map_err(error)? else {
            break;
        };
        let declared: Vec<String> = now.spec.declared().map(str::to_owned).collect();
        let back = put_back(noted, &note(&now), &declared);
        let Some(list) = &back.list else { return Ok(back) };
        let patch = json!({
            "metadata": {"uid": now.metadata.uid, "resourceVersion": now.metadata.resource_version},
            "status": {"storedVersions": list},
        });
        match api
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
        {
            Ok(_) => return Ok(back),
            Err(refused) if outcome(&refused).is_some_and(Outcome::is_conflict) && attempt < ATTEMPTS_MAX => {}
            Err(source) => return Err(error(source)),
        }
    }
    Ok(StoredVersionsRepair::default())
}

fn write(what: &'static str, name: &str, source: kube::Error) -> ClusterError {
    ClusterError::Write {
        what,
        name: name.to_owned(),
        source,
    }
}
