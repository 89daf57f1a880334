//! One step, request by request. Each write depends on the version that it was decided on; what was read or written on
//! the way is given back, so that the next decision knows of it before any watch does.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;
use tokio::time::sleep;

use super::Cluster;
use super::archived;
use super::clean_up::clean_up;
use super::outcome::{Outcome, Task, holds_all, learn, read, sent, taken_off, written};
use super::sweep::sweep;
use crate::decide::{Cause, Seen, Step};
use crate::object::{DeletionState, Key, Object};
use crate::peer::Peer;

/// How long a reference that no field names stays on a target: a move has placed it, and writes the field next. One
/// that takes longer has to begin again, and nothing more.
const MOVE_TIME: Duration = Duration::from_secs(1);
/// Holders that are read at a time, of those whose references were placed.
const READS_AT_A_TIME: usize = 8;

/// Tries to release a reference at another service in the version that was read of its object: of a live holder, which
/// is decided on again, and of an archived one, which is not.
const RELEASES_MAX: usize = 4;
const TRIES_MAX: usize = 32;

/// Carries out a step.
pub async fn carry_out(cluster: &Cluster, task: &Task, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let object = &task.object;
    let result = match &task.step {
        Step::Adopt => {
            let mut finalizers = object.finalizers.clone();
            finalizers.push(cluster.kinds.names.finalizer.clone());
            written(cluster.set_finalizers(object, &finalizers).await, &mut outcome)
        }
        Step::Record(phase, holders) => written(cluster.record(object, *phase, holders, now).await, &mut outcome),
        Step::Place { .. } => place(cluster, task, &mut outcome).await,
        Step::Release(target) => release(cluster, task, target, &mut outcome).await,
        Step::Request(cause) => match is_still(cluster, object, cause, &mut outcome).await {
            Ok(true) => written(cluster.request(object).await, &mut outcome),
            other => other.map(drop),
        },
        Step::Delete(cause) => match is_still(cluster, object, cause, &mut outcome).await {
            Ok(true) => match cluster.delete(object).await {
                Ok(Some(left)) => written(Ok(left), &mut outcome),
                Ok(None) => {
                    outcome.gone.push((object.key.clone(), object.uid.clone()));
                    Ok(())
                }
                Err(error) => Err(error),
            },
            other => other.map(drop),
        },
        Step::Free { confirm } => free(cluster, task, confirm, now, &mut outcome).await,
        Step::Hold { target, .. } => match &cluster.archive {
            Some(archive) => archived::hold(cluster, &**archive, task, target, now, &mut outcome).await,
            None => Ok(()),
        },
        Step::Keep(names) => match &cluster.archive {
            Some(archive) => archived::keep(cluster, &**archive, task, names, now, &mut outcome).await,
            None => Ok(()),
        },
        Step::Sweep => match &cluster.archive {
            Some(archive) => sweep(cluster, &**archive, task, now, &mut outcome).await,
            None => Ok(()),
        },
        Step::CleanUp => clean_up(cluster, task, &mut outcome).await,
        Step::Wait(_) | Step::Rest(_) => Ok(()),
    };
    if let Err(error) = result {
        failed(cluster, task, error, &mut outcome).await;
    }
    outcome
}

/// Whether the deletion that causes this one is still what it was: of that very object, with a phase. If the object to
/// be deleted holds that one, it is: no deletion is ever taken back, no phase either, and what is held cannot go. Of
/// another service, that is true only until it is restored from a backup, and it is asked in any case. Only an answer
/// that makes a difference is worth a read of the whole object.
///
/// One that does not hold the object is deleted with it only if none from which it was moved holds it by a row. Of
/// finalizers in the cluster, the decision knows that, and one that has left since has left its references in the
/// archive before.
async fn is_still(
    cluster: &Cluster,
    object: &Object,
    cause: &Cause,
    outcome: &mut Outcome,
) -> Result<bool, ClusterError> {
    let (target, held) = match cause {
        Cause::Requested => return Ok(true),
        Cause::Target { target, held, .. } => (target, *held),
    };
    let is_certain = match cluster.peers.of(&target.key.kind) {
        Some(peer) => peer.deletes(&target.key, &target.uid).await?,
        None => held,
    };
    if !is_certain {
        let found = read(cluster, target, outcome).await?;
        if found.is_none_or(|found| !found.is_leaving() || found.phase.is_none()) {
            return Ok(false);
        }
    }
    if held {
        return Ok(true);
    }
    let has_former = cluster.has_archived_former(object).await?;
    outcome.has_former = Some(has_former);
    Ok(!has_former)
}

/// Places references. Another process may have deleted a holder meanwhile, in the belief that it holds nothing: then
/// its reference is taken back.
async fn place(cluster: &Cluster, task: &Task, outcome: &mut Outcome) -> Result<(), ClusterError> {
    let names = task.references();
    let Some(target) = task.target.as_ref().filter(|_| !names.is_empty()) else {
        return Ok(());
    };
    match cluster.peers.of(&target.key.kind) {
        Some(peer) => {
            for name in &names {
                peer.place_reference(&target.key, name).await?;
            }
            read(cluster, &Seen::of(target), outcome).await?;
        }
        None => {
            let finalizers = [&target.finalizers[..], &names].concat();
            written(cluster.set_finalizers(target, &finalizers).await, outcome)?;
        }
    }
    let reads = task.objects().map(async |holder| {
        let _turn = cluster.limits.read().await;
        (holder, cluster.get(&holder.key).await)
    });
    let reads: Vec<_> = reads.collect();
    let mut reads = stream::iter(reads).buffered(READS_AT_A_TIME);
    let (mut gone, mut result) = (Vec::new(), Ok(()));
    while let Some((holder, found)) = reads.next().await {
        match found.map(|found| learn(&Seen::of(holder), found, outcome)) {
            Ok(None) => gone.push(holder),
            Ok(Some(found)) if found.is_freed() => gone.push(holder),
            Ok(Some(_)) => {}
            Err(error) => result = Err(error),
        }
    }
    if !gone.is_empty() {
        take_off(cluster, &Seen::of(target), &gone, outcome).await?;
    }
    result
}

/// Releases references.
///
/// Of holders that are leaving the cluster nothing is read again: they do not come back, and what had to go before them
/// is gone. The target loses their references in the version that is known.
///
/// One of a live holder stays where that has changed since: its field may name the target again. The holder may also
/// be about to name it, by a move that has placed the reference already. So the target is read, then the holder is
/// written, then the reference is released in the version of the target that was read. Either the move has written to
/// the target in between, and the release is refused; or it has read the holder before, and its own write is. The
/// archived objects of other services have no version, and neither has any of a service of an older version: there, a
/// late release takes the reference all the same, and it is placed again once the field is seen.
///
/// What the fields name now is read before that: of an earlier release nobody may know that it was done, and a field
/// may name that target again.
async fn release(cluster: &Cluster, task: &Task, target: &Seen, outcome: &mut Outcome) -> Result<(), ClusterError> {
    let names = task.references();
    if task.object.is_leaving() {
        return match &task.target {
            Some(known) => write_without(cluster, known, &names, None, outcome).await,
            None => Ok(()),
        };
    }
    sleep(MOVE_TIME).await;
    let Some(holder) = read(cluster, &Seen::of(&task.object), outcome).await? else {
        let holders: Vec<_> = task.objects().collect();
        return take_off(cluster, target, &holders, outcome).await;
    };
    if holder.version != task.object.version {
        return Ok(());
    }
    if !holds_all(cluster, &holder, outcome).await? {
        return Ok(());
    }
    detach_and_release(cluster, holder, target, &names, outcome).await
}

/// Many holders may release one object of another service at once, of which one alone finds the version that it has
/// read: the others try again at once.
async fn detach_and_release(
    cluster: &Cluster,
    mut holder: Object,
    target: &Seen,
    names: &[String],
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let mut overtaken = Ok(());
    for _ in 0..RELEASES_MAX {
        let Some(found) = read(cluster, target, outcome).await? else {
            return Ok(());
        };
        let at = match cluster.peers.of(&found.key.kind) {
            Some(peer) => peer.version(&found.key, &found.uid).await?,
            None => None,
        };
        let version = at.clone().unwrap_or_else(|| found.version.to_string());
        let former = format!("{}@{version}", found.uid);
        holder = cluster.detach(&holder, &former).await?;
        written(Ok(holder.clone()), outcome)?;
        release_rows(cluster, &found, names).await?;
        match write_without(cluster, &found, names, at.as_deref(), outcome).await {
            Err(ClusterError::Conflict(why)) if at.is_some() => overtaken = Err(ClusterError::Conflict(why)),
            released => return released,
        }
    }
    overtaken
}

/// A holder that was archived, and restored since, has a row beside the finalizer, which stays until that is released.
/// The archives of other services are theirs.
async fn release_rows(cluster: &Cluster, found: &Object, names: &[String]) -> Result<(), ClusterError> {
    let is_own = cluster.peers.of(&found.key.kind).is_none();
    let Some(archive) = cluster.archive.as_ref().filter(|_| is_own) else {
        return Ok(());
    };
    for name in names.iter().filter_map(|name| name.parse::<ReferenceName>().ok()) {
        let released = archive.release(&Seen::of(found), &name).await;
        released.map_err(|error| super::failed(&error))?;
    }
    Ok(())
}

/// Releases the references of holders that have left the cluster. That the target is gone, or does not have them, is
/// success.
async fn take_off(
    cluster: &Cluster,
    target: &Seen,
    holders: &[&Object],
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let Some(found) = read(cluster, target, outcome).await? else {
        return Ok(());
    };
    if let Some(peer) = cluster.peers.of(&found.key.kind) {
        let mut result = Ok(());
        for holder in holders {
            let released = take_off_peer(cluster, peer, &found, holder, outcome).await;
            result = result.and(released);
        }
        read(cluster, target, outcome).await?;
        return result;
    }
    let names = holders.iter().filter_map(|holder| holder.reference_name());
    let names: Vec<_> = names.map(|name| name.to_string()).collect();
    write_without(cluster, &found, &names, None, outcome).await
}

/// The same of one holder, at another service. If it has left for the archive, it goes on holding what it names, and
/// nobody places its reference anew. So the version of the target is read, and then the archive is asked: a move of the
/// holder writes its field first, and then the target, and the release is refused if that came in between.
async fn take_off_peer(
    cluster: &Cluster,
    peer: &Peer,
    target: &Object,
    holder: &Object,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let Some(name) = holder.reference_name().map(|name| name.to_string()) else {
        return Ok(());
    };
    let mut overtaken = Ok(());
    for _ in 0..TRIES_MAX {
        let version = peer.version(&target.key, &target.uid).await?;
        let at = match cluster.archived_names(holder, &target.key).await? {
            Some(true) => return Ok(()),
            Some(false) => version,
            // It is gone for good, and uses nothing any more.
            None => None,
        };
        match sent(peer.release_reference(&target.key, &name, at.as_deref()).await, outcome) {
            Err(ClusterError::Conflict(why)) => overtaken = Err(ClusterError::Conflict(why)),
            released => {
                released?;
                outcome.writes.released.push(name);
                return Ok(());
            }
        }
    }
    overtaken
}

/// For the version of the target that is known; of another service, for the one that it has said, if any.
async fn write_without(
    cluster: &Cluster,
    found: &Object,
    names: &[String],
    at: Option<&str>,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    if let Some(peer) = cluster.peers.of(&found.key.kind) {
        for name in names {
            sent(peer.release_reference(&found.key, name, at).await, outcome)?;
            outcome.writes.released.push(name.clone());
        }
        return read(cluster, &Seen::of(found), outcome).await.map(drop);
    }
    let finalizers = found.finalizers.iter();
    let left: Vec<_> = finalizers
        .filter(|finalizer| !names.contains(finalizer))
        .cloned()
        .collect();
    match left.len() < found.finalizers.len() {
        true => taken_off(cluster.set_finalizers(found, &left).await, outcome),
        false => {
            outcome.writes.is_overtaken = true;
            Ok(())
        }
    }
}

async fn free(
    cluster: &Cluster,
    task: &Task,
    confirm: &[Key],
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    for key in confirm {
        let Some(found) = cluster.get(key).await? else {
            continue;
        };
        let name = task.object.reference_name();
        let has_reference = name.is_some_and(|name| found.references.contains(&name));
        outcome.know(found);
        if has_reference {
            return Ok(());
        }
    }
    if task.object.state == DeletionState::Deleting
        && let (Some(archive), Some(name)) = (&cluster.archive, task.object.reference_name())
    {
        let released = archive.release_all(&name, now).await;
        released.map_err(|error| super::failed(&error))?;
    }
    let own = &cluster.kinds.names.finalizer;
    let finalizers = task.object.finalizers.iter();
    let left: Vec<_> = finalizers.filter(|finalizer| *finalizer != own).cloned().collect();
    taken_off(cluster.set_finalizers(&task.object, &left).await, outcome)
}

/// After a write that failed, or of which nobody knows whether it did, both objects are read again. Where they cannot
/// be, what has come of it is seen later.
async fn failed(cluster: &Cluster, task: &Task, error: ClusterError, outcome: &mut Outcome) {
    match error {
        ClusterError::NotFound(_)
        | ClusterError::Unserved {
            in_other_version: false,
            ..
        }
        | ClusterError::Conflict(_) => outcome.writes.is_overtaken = true,
        ClusterError::Unserved {
            in_other_version: true, ..
        }
        | ClusterError::Expired(_)
        | ClusterError::Retryable { .. }
        | ClusterError::Refused(_) => {
            outcome.failed = Some(error.to_string());
        }
    }
    let may_be_done = outcome.writes.is_overtaken || !outcome.writes.released.is_empty();
    for object in std::iter::once(&task.object).chain(&task.target) {
        if let Err(error) = read(cluster, &Seen::of(object), outcome).await {
            outcome.writes.is_unclear |= may_be_done;
            outcome.failed = Some(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
