//! The step that asks who holds an object out of the archive. Nobody is deleted with it before it was read.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;

use super::archived::HolderSweep;
use super::outcome::{Outcome, Task, read};
use super::{Cluster, failed};
use crate::answers::Swept;
use crate::archive::{Archive, HolderPosition, HolderScope};
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
    let phase = match read(cluster, &target, outcome).await? {
        Some(found) if found.is_leaving() => {
            release_deleted(cluster, archive, &found).await?;
            found.phase
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
    let names = target.references.iter().filter(|name| cluster.kinds.has_holder(name));
    let names: Vec<_> = names.cloned().collect();
    for names in names.chunks(ASKED_AT_ONCE) {
        let deleted = archive.deleted(target, names).await.map_err(|error| failed(&error))?;
        for name in deleted {
            peer.release(&target.key, &name.to_string(), None).await?;
        }
    }
    Ok(())
}
