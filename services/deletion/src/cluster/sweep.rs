//! The step that asks who holds an object out of the archive. Nobody is deleted with it before it was read.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;

use super::archived::HolderSweep;
use super::former::{Row, release_at};
use super::outcome::{Outcome, Task, Unanswered, read};
use super::remaining::RemainingHolders;
use super::{Cluster, failed};
use crate::answers::Swept;
use crate::archive::{Archive, Holder, HolderAction, HolderPosition, HolderScope};
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
        Some(found) if found.is_leaving() => (found.phase, release_left(cluster, archive, &found, now).await?),
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
        // Only an object of another service has such ones, and of its holders no change is refused.
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

/// Takes off an object of another service what our holders have left on it: those that were deleted out of the archive,
/// and archived ones that were moved from there. Returns, as people know them, some of the archived ones that still
/// have a reference there and do not name it, and of the others those whose release is refused: they are looked at
/// again.
async fn release_left(
    cluster: &Cluster,
    archive: &dyn Archive,
    target: &Object,
    now: Timestamp,
) -> Result<Vec<String>, ClusterError> {
    let Some(peer) = cluster.peers.of(&target.key.kind) else {
        return Ok(Vec::new());
    };
    let mut remaining = RemainingHolders::default();
    for names in own_references(cluster, target).chunks(ASKED_AT_ONCE) {
        let left = archive.left(target, names).await.map_err(|error| failed(&error))?;
        for name in left.deleted.iter().map(ToString::to_string) {
            match peer.release_reference(&target.key, &name, None).await {
                Err(error) if !error.is_silence() => {
                    remaining.wait_for(&Unanswered::by(peer.service_description(), &error), &name);
                }
                released => released?,
            }
        }
        let names_it = |holder: &Holder| holder.edges.iter().any(|edge| edge.target == target.key);
        for holder in left.archived.iter().filter(|holder| !names_it(holder)) {
            let row = match remaining.is_silent {
                true => Row::Stays,
                false => release_at(peer, (cluster, archive), target, holder, now).await?,
            };
            match row {
                Row::Stays => remaining.add(HolderAction::WaitFor, holder),
                Row::Released => {}
                Row::Unanswered(service) => remaining.wait_for(&service, holder),
            }
        }
        remaining.cut();
    }
    Ok(remaining.plain)
}

/// The references of our own holders on an object.
fn own_references(cluster: &Cluster, target: &Object) -> Vec<ReferenceName> {
    let names = target.references.iter().filter(|name| cluster.kinds.has_holder(name));
    names.cloned().collect()
}
