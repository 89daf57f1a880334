//! A migration through the cluster's own migrator. Its success is not believed before a verification of our own: the
//! passes of [`work`] go over the objects after it, and write those that it left.

use futures::FutureExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use super::conduct::Conduct;
use super::work::work;
use super::{Cluster, ClusterError};
use crate::in_tree::{Ended, Noted, PutBack, ended, put_back};
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
    pub put_back: PutBack,
}

/// As [`work`], after the cluster's own migrator has gone over the objects. `storedVersions` that it narrowed are put
/// back unless the verification succeeds. `None` where the migration was deleted while that migrator was at work.
///
/// # Errors
/// [`ClusterError::Unserved`] where the cluster has no such migrator; otherwise what [`work`] fails for, and what is
/// asked of the cluster beside it. The next attempt goes on with the same run of the cluster's migrator.
pub async fn work_in_tree(
    cluster: &Cluster,
    migration: StorageVersionMigration,
    conduct: impl Into<Conduct>,
) -> Result<Option<InTree>, ClusterError> {
    let api = migrations(cluster).await?;
    let resource = GroupResource {
        group: migration.spec.resource.group.clone(),
        resource: migration.spec.resource.resource.clone(),
    };
    let noted = begin(cluster, &api, &migration, &resource).await?;
    let Some(ended) = wait(cluster, &api, &migration).await? else {
        return Ok(None);
    };
    let mut restored = PutBack::default();
    if ended != Ended::Succeeded {
        restored = restore(cluster, &resource, noted.as_ref()).await?;
    }
    let verdict = work(cluster, migration, conduct).await?;
    if ended == Ended::Succeeded && verdict != Some(Verdict::Succeeded) {
        restored = restore(cluster, &resource, noted.as_ref()).await?;
    }
    Ok(Some(InTree {
        ended,
        verdict,
        put_back: restored,
    }))
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
) -> Result<Option<Noted>, ClusterError> {
    let name = migration.name_any();
    let error = |source| write("storageversionmigration of storagemigration.k8s.io", &name, source);
    if let Some(begun) = api.get_opt(&name).await.map_err(error)? {
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
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(noted_in(&api.get(&name).await.map_err(error)?)),
        Err(source) => Err(error(source)),
    }
}

fn note(definition: &StoredDefinition) -> Noted {
    let stored = definition.status.as_ref().map(|status| status.stored().to_vec());
    Noted {
        uid: definition.metadata.uid.clone().unwrap_or_default(),
        stored: stored.unwrap_or_default(),
    }
}

fn noted_in(begun: &DynamicObject) -> Option<Noted> {
    let text = begun.annotations().get(NOTE)?;
    // Nobody else writes it.
    serde_json::from_str(text).ok()
}

/// Waits for the end of the cluster's migration; `None` where ours was deleted before.
async fn wait(
    cluster: &Cluster,
    api: &Api<DynamicObject>,
    migration: &StorageVersionMigration,
) -> Result<Option<Ended>, ClusterError> {
    let name = migration.name_any();
    let uid = migration.uid().unwrap_or_default();
    let own = cluster.migrations();
    let deleted = await_condition(own, &name, conditions::is_deleted(&uid));
    let over = |object: Option<&DynamicObject>| object.is_none_or(|object| ended_of(object).is_some());
    let over = await_condition(api.clone(), &name, over);
    let (deleted, over) = (deleted.fuse(), over.fuse());
    let waiting = |source| ClusterError::Watch {
        name: name.clone(),
        source,
    };
    tokio::select! {
        deleted = deleted => {
            deleted.map_err(waiting)?;
            // What it goes on to write are no-ops for objects in the storage version.
            let stopped = api.delete(&name, &DeleteParams::default()).await.map(drop);
            match stopped {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => other.map_err(|source| write("storageversionmigration", &name, source))?,
            }
            Ok(None)
        }
        over = over => {
            let gone = || Ended::Failed { why: "somebody deleted the migration of storagemigration.k8s.io".to_owned() };
            Ok(Some(over.map_err(waiting)?.as_ref().and_then(ended_of).unwrap_or_else(gone)))
        }
    }
}

fn ended_of(object: &DynamicObject) -> Option<Ended> {
    let conditions = object.data.get("status")?.get("conditions")?;
    let conditions: Vec<Condition> = serde_json::from_value(conditions.clone()).ok()?;
    ended(&conditions)
}

/// Puts back what was taken from `storedVersions`, on condition of the definition that was looked at.
async fn restore(cluster: &Cluster, resource: &GroupResource, noted: Option<&Noted>) -> Result<PutBack, ClusterError> {
    let Some(noted) = noted else {
        return Ok(PutBack::default());
    };
    let name = resource.to_string();
    let api: Api<StoredDefinition> = Api::all_with(cluster.first.clone(), &definition::resource());
    let error = |source| write("customresourcedefinition", &name, source);
    for attempt in 1.. {
        let Some(now) = api.get_opt(&name).await.map_err(error)? else {
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
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS_MAX => {}
            Err(source) => return Err(error(source)),
        }
    }
    Ok(PutBack::default())
}

fn write(what: &'static str, name: &str, source: kube::Error) -> ClusterError {
    ClusterError::Write {
        what,
        name: name.to_owned(),
        source,
    }
}
