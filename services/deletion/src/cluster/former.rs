//! References of archived holders on objects from which these were moved. Nobody follows the fields of an archived
//! holder: what a move has left that died early, or that came right before the eviction of the holder, goes once its
//! object is deleted.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;

use super::outcome::Unanswered;
use super::{Cluster, failed};
use crate::archive::{Archive, Holder};
use crate::decide::Seen;
use crate::object::Key;

/// What became of an archived holder that may have been moved from an object.
pub(super) enum Detached {
    /// It was, and is written: its reference can be released.
    Written,
    /// It may use the object, or has changed since it was read.
    Not,
    /// This service does not say whether the holder holds what it names now.
    Unanswered(Unanswered),
}

/// Whether an archived holder, as it was read, was moved from an object that has its reference.
pub(super) fn was_moved(cluster: &Cluster, holder: &Holder, former: &Key) -> bool {
    let is_archived = holder.version.is_some() && holder.reference.is_some();
    let key = holder.key.as_ref().filter(|_| is_archived);
    key.is_some_and(|key| cluster.kinds.was_moved_from(&key.kind, &holder.edges, former))
}

/// Writes to an archived holder that was moved from an object, which is being deleted, in the version that was read. A
/// move that was about to let it name the object again begins anew, and finds that the object is being deleted.
pub(super) async fn detach(
    cluster: &Cluster,
    archive: &dyn Archive,
    former: &Seen,
    holder: &Holder,
    now: Timestamp,
) -> Result<Detached, ClusterError> {
    let (Some(key), Some(name), Some(version)) = (&holder.key, &holder.reference, holder.version) else {
        return Ok(Detached::Not);
    };
    if !was_moved(cluster, holder, &former.key) {
        return Ok(Detached::Not);
    }
    // One that is still leaving the cluster is asked about again.
    let live = cluster.get(key).await?;
    if live.is_some_and(|live| live.uid == holder.uid) {
        return Ok(Detached::Not);
    }
    match holds_elsewhere(cluster, holder, name).await {
        Ok(true) => {}
        Ok(false) => return Ok(Detached::Not),
        Err(service) => return Ok(Detached::Unanswered(service)),
    }
    // A second write says something else than the first one: it has to change the version.
    let written = archive.detach(holder, &format!("{}@{version}", former.uid), now).await;
    Ok(match written.map_err(|error| failed(&error))? {
        true => Detached::Written,
        false => Detached::Not,
    })
}

/// Whether all objects of other services that a holder names have its reference. Those of its own service are found by
/// its fields without one.
async fn holds_elsewhere(cluster: &Cluster, holder: &Holder, name: &ReferenceName) -> Result<bool, Unanswered> {
    for edge in &holder.edges {
        let Some(peer) = cluster.peers.of(&edge.target.kind) else {
            continue;
        };
        let found = peer.look(&edge.target).await;
        let found = found.map_err(|error| Unanswered::by(peer.place(), &error))?;
        if found.is_none_or(|found| !found.references.contains(name)) {
            return Ok(false);
        }
    }
    Ok(true)
}
