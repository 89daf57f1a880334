//! Taking a version out of `status.storedVersions`.

use kindex_kube_client::{Outcome, outcome};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::survey::Survey;
use super::{Cluster, ClusterError};
use crate::wire::GroupResource;
use crate::wire::definition::{self, StoredDefinition};

/// What became of a prune.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// `status.storedVersions` is this now.
    Done(Vec<String>),
    /// It did not list the version.
    NotListed,
    /// The definition is not the one that was surveyed any more: whoever decided has to look again.
    Overtaken,
}

/// Takes a version out of the list, on condition that the definition is still the one of the survey: its uid, and its
/// resource version, which every change of its generation or of the list replaces.
///
/// # Assumptions
/// Nothing stands against it by this survey: [`against`](crate::verdict::against) is asked before.
///
/// # Errors
/// Where the status cannot be written.
pub async fn prune(
    cluster: &Cluster,
    resource: &GroupResource,
    survey: &Survey,
    version: &str,
) -> Result<Pruned, ClusterError> {
    let stored = &survey.stored.stored_versions;
    if !stored.iter().any(|listed| listed == version) {
        return Ok(Pruned::NotListed);
    }
    let remaining: Vec<String> = stored.iter().filter(|listed| *listed != version).cloned().collect();
    let name = resource.to_string();
    let api: Api<StoredDefinition> = Api::all_with(cluster.first.clone(), &definition::resource());
    let patch = json!({
        "metadata": {"uid": survey.stored.definition.uid, "resourceVersion": survey.resource_version},
        "status": {"storedVersions": remaining},
    });
    match api
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
    {
        Ok(_) => Ok(Pruned::Done(remaining)),
        Err(error) if outcome(&error).is_some_and(|said| said == Outcome::Absent || said.is_conflict()) => {
            Ok(Pruned::Overtaken)
        }
        Err(source) => Err(ClusterError::Write {
            what: "customresourcedefinition",
            name,
            source,
        }),
    }
}
