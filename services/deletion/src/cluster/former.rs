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
use crate::object::{Edge, Key, Object};
use crate::peer::Peer;

/// What becomes of the row of a holder whose fields may name others by now, or of its reference at another service.
pub(super) enum Row {
    Stays,
    Released,
    /// It stays as long as this service does not say that the holder holds what it names now.
    Unanswered(Unanswered),
}

/// Whether an archived holder, as it was read, was moved from an object that has its reference.
fn was_moved(cluster: &Cluster, holder: &Holder, former: &Key) -> bool {
    let is_archived = holder.version.is_some() && holder.reference.is_some();
    let key = holder.key.as_ref().filter(|_| is_archived);
    key.is_some_and(|key| cluster.kinds.was_moved_from(&key.kind, &holder.edges, former))
}

/// Releases the row of an archived holder on an object of our own from which it was moved.
pub(super) async fn release_row(
    cluster: &Cluster,
    archive: &dyn Archive,
    former: &Seen,
    holder: &Holder,
    now: Timestamp,
) -> Result<Row, ClusterError> {
    let detached = detach(cluster, archive, former, holder, now).await?;
    if let (Row::Released, Some(name)) = (&detached, &holder.reference) {
        let released = archive.release(former, name).await;
        released.map_err(|error| failed(&error))?;
    }
    Ok(detached)
}

/// Releases the reference of an archived holder on an object of another service from which it was moved. What that
/// service refuses stays, and keeps no other holder waiting.
pub(super) async fn release_at(
    peer: &Peer,
    (cluster, archive): (&Cluster, &dyn Archive),
    former: &Object,
    holder: &Holder,
    now: Timestamp,
) -> Result<Row, ClusterError> {
    let Some(name) = holder.reference.as_ref().map(ToString::to_string) else {
        return Ok(Row::Stays);
    };
    if !was_moved(cluster, holder, &former.key) {
        return Ok(Row::Stays);
    }
    // A move that comes back writes to the object, and then to the holder: either finds another version.
    let at = match peer.version(&former.key, &former.uid).await {
        Ok(at) => at,
        Err(error) => return Ok(stays(peer, &error)),
    };
    let detached = detach(cluster, archive, &Seen::of(former), holder, now).await?;
    if !matches!(detached, Row::Released) {
        return Ok(detached);
    }
    let released = async {
        // Without a version, another object that has taken the name would lose the reference.
        if at.is_none() && !peer.deletes(&former.key, &former.uid).await? {
            return Ok(Row::Stays);
        }
        let released = peer.release_reference(&former.key, &name, at.as_deref()).await;
        released.map(|()| Row::Released)
    };
    let released: Result<Row, ClusterError> = released.await;
    Ok(released.unwrap_or_else(|error| stays(peer, &error)))
}

/// What is written meanwhile is looked at again; else people are told who does not answer.
fn stays(peer: &Peer, error: &ClusterError) -> Row {
    match error {
        ClusterError::Conflict(_) => Row::Stays,
        ClusterError::NotFound(_)
        | ClusterError::Unserved { .. }
        | ClusterError::Expired(_)
        | ClusterError::Retryable { .. }
        | ClusterError::Refused(_) => Row::Unanswered(Unanswered::by(peer.service_description(), error)),
    }
}

/// Writes to an archived holder that was moved from an object, which is being deleted, in the version that was read. A
/// move that was about to let it name the object again begins anew, and finds that the object is being deleted. Whether
/// its reference can be released.
async fn detach(
    cluster: &Cluster,
    archive: &dyn Archive,
    former: &Seen,
    holder: &Holder,
    now: Timestamp,
) -> Result<Row, ClusterError> {
    let (Some(key), Some(name)) = (&holder.key, &holder.reference) else {
        return Ok(Row::Stays);
    };
    if !was_moved(cluster, holder, &former.key) {
        return Ok(Row::Stays);
    }
    // One that is still leaving the cluster is asked about again.
    let live = cluster.get(key).await?;
    if live.is_some_and(|live| live.uid == holder.uid) {
        return Ok(Row::Stays);
    }
    let edges = cluster.kinds.instead(&key.kind, &holder.edges, &former.key);
    if let Err(service) = hold_elsewhere(cluster, edges, name).await {
        return Ok(Row::Unanswered(service));
    }
    // No deletion is ever taken back: that is written once. What a live holder was detached from has a version there.
    let written = archive.detach(holder, &format!("{}@deleting", former.uid), now).await;
    Ok(match written.map_err(|error| failed(&error))? {
        true => Row::Released,
        false => Row::Stays,
    })
}

/// Lets the objects of other services that a holder names instead have its reference. Those of its own service are
/// found by its fields without one.
async fn hold_elsewhere(
    cluster: &Cluster,
    edges: impl Iterator<Item = &Edge>,
    name: &ReferenceName,
) -> Result<(), Unanswered> {
    for edge in edges {
        let Some(peer) = cluster.peers.of(&edge.target.kind) else {
            continue;
        };
        let held = peer.place_reference(&edge.target, &name.to_string()).await;
        held.map_err(|error| match error {
            // It is absent, or being deleted.
            error if error.is_absence() || matches!(error, ClusterError::Conflict(_)) => Unanswered {
                place: format!("{} to take its reference", edge.target),
                why: error.to_string(),
                is_silent: false,
            },
            error => Unanswered::by(peer.service_description(), &error),
        })?;
    }
    Ok(())
}
