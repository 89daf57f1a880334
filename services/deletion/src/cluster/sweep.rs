//! The step that asks who holds an object out of the archive. Nobody is deleted with it before it was read.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;

use super::archived::HolderSweep;
use super::former::{Detached, detach, was_moved};
use super::outcome::{Outcome, Task, read};
use super::refusals::NAMED_MAX;
use super::{Cluster, failed};
use crate::answers::Swept;
use crate::archive::{Archive, Holder, HolderPosition, HolderScope};
use crate::decide::{Archived, Seen};
use crate::object::Object;

/// Holders of which the archive is asked at a time.
const ASKED_AT_ONCE: usize = 200;

/// Reads who holds the object out of the archive, and deletes those that go with it in the phase that is recorded.
pub(super) async fn sweep(
    cluster: &Cluster,
    archive: &dyn Archive,
    task: &Task,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let target = Seen::of(&task.object);
    let is_own = cluster.peers.of(&target.key.kind).is_none();
    let _turn = if is_own {
        Some(cluster.limits.sweep().await)
    } else {
        None
    };
    if is_own && !is_held(archive, &target).await? {
        cluster.rounds.forget(&target.uid);
        outcome.swept = Some(Swept {
            phase: task.object.phase,
            archived: Archived::Remaining {
                plain: Vec::new(),
                owned: Vec::new(),
            },
            goes_on: false,
            refused: None,
        });
        return Ok(());
    }
    // A deletion that has begun never ends otherwise. Still, nothing is deleted on the word of a watch.
    let (phase, left) = match read(cluster, &target, outcome).await? {
        Some(found) if found.is_leaving() => {
            release_deleted(cluster, archive, &found).await?;
            (found.phase, release_moved(cluster, archive, &found, now).await?)
        }
        Some(_) | None => {
            cluster.rounds.forget(&target.uid);
            return Ok(());
        }
    };
    let holders = HolderSweep {
        target,
        phase,
        scope: HolderScope::Archived,
        follower: None,
    };
    outcome.swept = holders.sweep(cluster, archive, now).await?;
    if let Some(Swept {
        archived: Archived::Remaining { plain, .. },
        ..
    }) = &mut outcome.swept
    {
        plain.extend(left);
    }
    Ok(())
}

/// Whether anybody else has a row on an object, or is archived and names it. Rows come last: what is archived and names
/// it has one before it is restored.
async fn is_held(archive: &dyn Archive, target: &Seen) -> Result<bool, ClusterError> {
    let naming = HolderPosition::Naming(0, None);
    Ok(
        is_held_from(archive, target, HolderScope::Archived, Some(naming)).await?
            || is_held_from(archive, target, HolderScope::Rows, None).await?,
    )
}

/// Whether anybody else is among these holders of an object.
async fn is_held_from(
    archive: &dyn Archive,
    target: &Seen,
    scope: HolderScope,
    begin: Option<HolderPosition>,
) -> Result<bool, ClusterError> {
    let mut after = begin;
    loop {
        let page = archive.holders(target, scope, after.as_ref()).await;
        let page = page.map_err(|error| failed(&error))?;
        if page.holders.iter().any(|holder| holder.uid != target.uid) {
            return Ok(true);
        }
        after = page.next;
        if after.is_none() {
            return Ok(false);
        }
    }
}

/// Takes off an object of another service what holders have left on it that were deleted out of the archive.
async fn release_deleted(cluster: &Cluster, archive: &dyn Archive, target: &Object) -> Result<(), ClusterError> {
    let Some(peer) = cluster.peers.of(&target.key.kind) else {
        return Ok(());
    };
    for names in own_references(cluster, target).chunks(ASKED_AT_ONCE) {
        let deleted = archive.deleted(target, names).await.map_err(|error| failed(&error))?;
        for name in deleted {
            peer.release(&target.key, &name.to_string(), None).await?;
        }
    }
    Ok(())
}

/// Takes off an object of another service what archived holders have left on it that were moved from there. The first
/// ones of those that have references there still and do not name it, as people know them: they are looked at again.
async fn release_moved(
    cluster: &Cluster,
    archive: &dyn Archive,
    target: &Object,
    now: Timestamp,
) -> Result<Vec<String>, ClusterError> {
    let Some(peer) = cluster.peers.of(&target.key.kind) else {
        return Ok(Vec::new());
    };
    let (former, mut left, mut is_silent) = (Seen::of(target), Vec::new(), false);
    for names in own_references(cluster, target).chunks(ASKED_AT_ONCE) {
        let holders = archive.archived(names).await.map_err(|error| failed(&error))?;
        let unnamed = |holder: &&Holder| holder.edges.iter().all(|edge| edge.target != target.key);
        let holders: Vec<&Holder> = holders.iter().filter(unnamed).collect();
        for holder in holders {
            let may_go = !is_silent && was_moved(cluster, holder, &target.key);
            let Some(name) = holder.reference.as_ref().filter(|_| may_go) else {
                left.push(holder.to_string());
                continue;
            };
            // A move that comes back writes to the object, and then to the holder: either finds another version.
            let at = peer.version(&target.key, &target.uid).await?;
            match detach(cluster, archive, &former, holder, now).await? {
                Detached::Written => match peer.release(&target.key, &name.to_string(), at.as_deref()).await {
                    Err(ClusterError::Conflict(_)) => left.push(holder.to_string()),
                    released => released?,
                },
                Detached::Not => left.push(holder.to_string()),
                // It may take long to answer: nobody else is asked in this sweep.
                Detached::Unanswered(service) => {
                    is_silent |= service.is_silent;
                    left.push(format!("{holder} (waits for {})", service.place));
                }
            }
        }
    }
    left.truncate(NAMED_MAX);
    Ok(left)
}

/// The references of our own holders on an object.
fn own_references(cluster: &Cluster, target: &Object) -> Vec<ReferenceName> {
    let names = target.references.iter().filter(|name| cluster.kinds.has_holder(name));
    names.cloned().collect()
}
