//! Whether a cluster serves a kind, by its discovery. Does not know who asks.

use kindex_model::kind::Kind;
use kube::Client;

/// Where a cluster serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// In the version of the kind.
    Here,
    /// In other versions of its group alone.
    InOtherVersion,
    /// In no version of its group.
    Nowhere,
    /// What was answered is no discovery of a cluster.
    Unknown,
}

/// Asks for the groups first: a cluster has that list whatever it serves. It has no page of a group without kinds, as
/// a server that is no cluster has none.
///
/// # Errors
/// Where the cluster does not say all of it.
pub(super) async fn served(client: &Client, kind: &Kind) -> kube::Result<Served> {
    let groups = client.list_api_groups().await?.groups;
    // Every cluster has groups of its own. JSON of what stands before it reads as a list of none.
    if groups.is_empty() {
        return Ok(Served::Unknown);
    }
    let group = groups.into_iter().find(|group| group.name == kind.group);
    let mut served = Served::Nowhere;
    for version in group.into_iter().flat_map(|group| group.versions) {
        let list = client.list_api_group_resources(&version.group_version).await?;
        if list.group_version != version.group_version {
            return Ok(Served::Unknown);
        }
        if list.resources.iter().all(|resource| resource.name != kind.plural) {
            continue;
        }
        if version.version == kind.version {
            return Ok(Served::Here);
        }
        served = Served::InOtherVersion;
    }
    Ok(served)
}
