//! The steps that concern holders in the archive. Those that write to the archive and to the cluster begin with the
//! archive: a process that ends in between leaves a reference in two places, and never in none.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::follower::Follower;
use super::former::{Row, release_row};
use super::outcome::{Outcome, Task, holds_all, read, taken_off};
use super::remaining::RemainingHolders;
use super::waiting::Waiting;
use super::{Cluster, failed};
use crate::answers::Swept;
use crate::archive::{
    Archive, Holder, HolderAction, HolderScope, HolderState, PlacementOutcome, action_on, is_deleted_with,
};
use crate::decide::{Archived, Seen};
use crate::object::{DeletionState, Edge, Key, Object};
use crate::targets::Answer;

/// After so many pages, a sweep that has deleted something leaves the rest to the next one.
const PAGES_MAX: usize = 64;

/// Keeps references as rows, then takes them off in the version of the object in which they were seen.
pub(super) async fn keep(
    cluster: &Cluster,
    archive: &dyn Archive,
    task: &Task,
    names: &[ReferenceName],
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let places = archive.keep(&Seen::of(&task.object), names, now).await;
    let places = places.map_err(|error| failed(&error))?;
    let mut off = Vec::new();
    for (name, place) in names.iter().zip(places) {
        match place {
            HolderState::Archived | HolderState::Deleted => off.push(name.to_string()),
            HolderState::Unknown => outcome.missing.push(name.clone()),
        }
    }
    if off.is_empty() {
        return Ok(());
    }
    let finalizers = task.object.finalizers.iter();
    let left: Vec<_> = finalizers.filter(|one| !off.contains(*one)).cloned().collect();
    taken_off(cluster.set_finalizers(&task.object, &left).await, outcome)
}

/// Places its reference on an archived object. After that, both are read: the object may be in the cluster again, and
/// whoever has released all that the holder has may have done so before.
pub(super) async fn hold(
    cluster: &Cluster,
    archive: &dyn Archive,
    task: &Task,
    target: &Key,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let Some(name) = task.object.reference_name() else {
        return Ok(());
    };
    let held = archive.hold(target, &name, now).await.map_err(|error| failed(&error))?;
    if let PlacementOutcome::By { target, is_new: true } = &held {
        let stays = may_stay(cluster, archive, task, target, &name, now, outcome).await;
        if !matches!(stays, Ok(true)) {
            let released = archive.release(target, &name).await;
            released.map_err(|error| failed(&error))?;
            return stays.map(drop);
        }
    }
    let answer = match held {
        PlacementOutcome::By { .. } => Answer::Held,
        PlacementOutcome::Leaving => Answer::Leaving,
        PlacementOutcome::Absent => Answer::Absent,
    };
    outcome.held = Some((target.clone(), answer));
    Ok(())
}

/// Whether the object that has a new row is in no cluster, and the holder is there or archived itself.
async fn may_stay(
    cluster: &Cluster,
    archive: &dyn Archive,
    task: &Task,
    target: &Seen,
    name: &ReferenceName,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<bool, ClusterError> {
    if let Some(live) = cluster.get(&target.key).await? {
        outcome.know(live);
        return Ok(false);
    }
    let holder = read(cluster, &Seen::of(&task.object), outcome).await?;
    if holder.is_some_and(|holder| holder.state != DeletionState::Deleting) {
        return Ok(true);
    }
    let states = archive.keep(target, std::slice::from_ref(name), now).await;
    let states = states.map_err(|error| failed(&error))?;
    Ok(states == [HolderState::Archived])
}

/// A sweep over the holders of an object, as it was read.
pub(super) struct HolderSweep<'a> {
    pub(super) target: Seen,
    pub(super) phase: Option<Phase>,
    /// Which of them: those in the cluster decide on themselves where it is there too. If only its rows count, because
    /// another object has its name, nobody is deleted with this one.
    pub(super) scope: HolderScope,
    /// Who knows of the live ones what holds them else.
    pub(super) follower: Option<&'a Follower>,
}

/// What becomes of a holder in the cluster.
enum LiveAction {
    /// The object does not wait for it.
    Stays,
    /// The object waits for it.
    Holds,
    /// It is deleted with another one, as it was read.
    Goes(Box<Object>),
}

impl HolderSweep<'_> {
    /// Page by page, deletes the holders that go and names the others. Nothing where nobody may go any more, because
    /// another object has taken the target's name.
    pub(super) async fn sweep(
        &self,
        cluster: &Cluster,
        archive: &dyn Archive,
        now: Timestamp,
    ) -> Result<Option<Swept>, ClusterError> {
        let mut left = RemainingHolders::of(cluster.rounds.of(&self.target.uid));
        let mut waiting = Waiting::of(&self.target);
        let (mut after, mut deleted, mut pages) = (None, false, 0);
        loop {
            let page = archive.holders(&self.target, self.scope, after.as_ref()).await;
            let mut page = page.map_err(|error| failed(&error))?;
            waiting.leave_out(archive, &mut page.holders).await?;
            if self.scope == HolderScope::All {
                left.leave_out_met(&mut page.holders);
            }
            let Some(gone) = self.take(cluster, archive, &page.holders, now, &mut left).await? else {
                cluster.rounds.forget(&self.target.uid);
                return Ok(None);
            };
            deleted |= gone;
            left.cut();
            (after, pages) = (page.next, pages + 1);
            if after.is_none() || (deleted && pages >= PAGES_MAX) {
                break;
            }
        }
        let goes_on = after.is_some();
        let has_missed = !goes_on && self.add_missed(cluster, archive, &mut left).await?;
        let RemainingHolders {
            mut plain,
            owned,
            refusals,
            ..
        } = left;
        let (refused, round) = refusals.end(!goes_on);
        cluster.rounds.set(&self.target.uid, round);
        if goes_on && plain.is_empty() {
            plain.push("more objects in the archive".to_owned());
        }
        Ok(Some(Swept {
            phase: self.phase,
            archived: Archived::Remaining { plain, owned },
            goes_on: goes_on || deleted || has_missed,
            refused,
        }))
    }

    /// Where nobody is left who holds the object in this phase, adds who has a row by now. Whether there are new ones,
    /// whom the next sweep meets.
    ///
    /// What is archived and only names the object may be restored after the rows were read, and before that is read
    /// which names the object. It gets a row before the new object is created, so that a row is there afterwards. All
    /// whom the sweep has met are left, or have no row any more.
    async fn add_missed(
        &self,
        cluster: &Cluster,
        archive: &dyn Archive,
        left: &mut RemainingHolders,
    ) -> Result<bool, ClusterError> {
        let target = &self.target;
        // Objects of other services have no rows here. While it drains, nobody comes who holds it otherwise.
        let is_own = cluster.peers.of(&target.key.kind).is_none();
        let (mut after, known) = (None, (left.plain.len(), left.owned.len()));
        let may_miss = is_own && (known.1 == 0 || self.phase < Some(Phase::Draining));
        while may_miss && left.plain.is_empty() {
            let page = archive.holders(target, HolderScope::Rows, after.as_ref()).await;
            let page = page.map_err(|error| failed(&error))?;
            for holder in page.holders.iter().filter(|holder| holder.uid != target.uid) {
                left.add(action_on(holder, &target.key, None), holder);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        left.cut();
        Ok(known != (left.plain.len(), left.owned.len()))
    }

    /// Whether some of these are gone.
    async fn take(
        &self,
        cluster: &Cluster,
        archive: &dyn Archive,
        holders: &[Holder],
        now: Timestamp,
        left: &mut RemainingHolders,
    ) -> Result<Option<bool>, ClusterError> {
        let key = &self.target.key;
        let phase = self.phase.filter(|_| self.scope != HolderScope::Rows);
        let others = holders.iter().filter(|holder| holder.uid != self.target.uid);
        let actions = others.map(|holder| (action_on(holder, key, phase), holder));
        let (going, staying): (Vec<_>, Vec<_>) = actions.partition(|(action, _)| *action == HolderAction::Delete);
        let going: Vec<&Holder> = going.into_iter().map(|(_, holder)| holder).collect();
        let (mut live, mut released) = (Vec::new(), false);
        for (action, holder) in staying {
            let turn = left.refusals.next_turn();
            // One whose turn is past is sent nothing, and need not be read. That a service keeps it waiting would not
            // be shown: those that were refused are named before.
            let row = match left.is_silent || left.refusals.is_past(turn) {
                true => Row::Stays,
                false => self.release_former(cluster, archive, (turn, holder), left, now).await?,
            };
            match row {
                Row::Stays => {}
                Row::Released => {
                    released = true;
                    continue;
                }
                Row::Unanswered(service) => {
                    left.wait_for(&service, holder);
                    continue;
                }
            }
            if self.scope == HolderScope::All && holder.version.is_none() {
                match self.live_action(cluster, holder, phase).await? {
                    LiveAction::Stays => continue,
                    LiveAction::Holds => {}
                    LiveAction::Goes(found) => {
                        let has_turn = left.refusals.reserve(turn);
                        live.extend(has_turn.then_some((turn, holder, *found)));
                    }
                }
            }
            left.add(action, holder);
        }
        let goes = !going.is_empty() || !live.is_empty();
        // All of them were read before this: what names another object by now has another version.
        if goes && self.scope == HolderScope::All {
            let is_taken = cluster.get(key).await?.is_some();
            if is_taken || !has_its_name(archive, &self.target).await? {
                return Ok(None);
            }
        }
        let gone = match going.is_empty() {
            true => Vec::new(),
            false => archive
                .delete(&self.target, &going, now)
                .await
                .map_err(|error| failed(&error))?,
        };
        delete_all(cluster, live, left).await?;
        for holder in going.into_iter().filter(|holder| !gone.contains(&holder.uid)) {
            left.add(HolderAction::Delete, holder);
        }
        Ok(Some(released || !gone.is_empty()))
    }

    /// Without a reference, only what is deleted with it in one of the phases is waited for, and only if no object from
    /// which it was moved holds it. Whether one in the cluster does is asked first: it may leave for the archive
    /// meanwhile.
    async fn live_action(
        &self,
        cluster: &Cluster,
        holder: &Holder,
        phase: Option<Phase>,
    ) -> Result<LiveAction, ClusterError> {
        let key = &self.target.key;
        let goes = |phase| is_deleted_with(&holder.edges, key, phase);
        if holder.reference.is_none() && !goes(Some(Phase::Finalizing)) {
            return Ok(LiveAction::Stays);
        }
        let found = match goes(phase) {
            true => live_holder(cluster, holder, key, phase).await?,
            false => None,
        };
        let Some(found) = found else {
            return Ok(LiveAction::Holds);
        };
        if holder.reference.is_some() {
            return Ok(LiveAction::Goes(Box::new(found)));
        }
        let in_cluster = match self.follower {
            Some(follower) => follower.hold(&found).await,
            None => None,
        };
        match in_cluster {
            None => Ok(LiveAction::Holds),
            Some(true) => Ok(LiveAction::Stays),
            Some(false) => match cluster.has_archived_former(&found).await? {
                true => Ok(LiveAction::Stays),
                false => Ok(LiveAction::Goes(Box::new(found))),
            },
        }
    }

    /// Releases the row of a holder in the cluster whose fields name others by now, and which holds these.
    ///
    /// The holder is written before, in the version that was read: a move that was about to let it name the object
    /// again begins anew, and finds that the object is being deleted.
    async fn release_former(
        &self,
        cluster: &Cluster,
        archive: &dyn Archive,
        (turn, holder): (usize, &Holder),
        left: &mut RemainingHolders,
        now: Timestamp,
    ) -> Result<Row, ClusterError> {
        if holder.version.is_some() {
            return release_row(cluster, archive, &self.target, holder, now).await;
        }
        let (Some(key), Some(reference)) = (&holder.key, &holder.reference) else {
            return Ok(Row::Stays);
        };
        let target = &self.target.key;
        let names = |edges: &[Edge]| edges.iter().any(|edge| edge.target == *target);
        // What its fields cannot name, somebody else placed in its name.
        let may_be = !names(&holder.edges) && cluster.kinds.may_name(&key.kind, &target.kind);
        let found = if may_be { cluster.get(key).await? } else { None };
        let Some(found) = found.filter(|found| found.uid == holder.uid && !names(&found.edges)) else {
            return Ok(Row::Stays);
        };
        if found.state != DeletionState::Live || !found.has_deletion_finalizer {
            return Ok(Row::Stays);
        }
        let mut outcome = Outcome::default();
        let held = holds_all(cluster, &found, &mut outcome).await;
        match (held, outcome.unanswered) {
            (Ok(true), _) => {}
            (Ok(false), _) => return Ok(Row::Stays),
            (Err(error), Some(service)) => {
                tracing::warn!(%holder, %error, "Whether a row can be released is asked again");
                return Ok(Row::Unanswered(service));
            }
            (Err(error), None) => return Err(error),
        }
        if !left.refusals.may_send(turn) {
            return Ok(Row::Stays);
        }
        match cluster.detach(&found, &self.target.uid).await {
            Ok(_) => {
                let released = archive.release(&self.target, reference).await;
                released.map(|()| Row::Released).map_err(|error| failed(&error))
            }
            Err(ClusterError::Conflict(_)) => Ok(Row::Stays),
            Err(error) if error.is_absence() => Ok(Row::Stays),
            Err(error) => left.refusals.refuse(holder, error).map(|()| Row::Stays),
        }
    }
}

/// A holder in the cluster, as it is there, if it goes with the target and is not on its way yet.
async fn live_holder(
    cluster: &Cluster,
    holder: &Holder,
    target: &Key,
    phase: Option<Phase>,
) -> Result<Option<Object>, ClusterError> {
    let Some(key) = &holder.key else {
        return Ok(None);
    };
    let found = cluster.get(key).await?;
    Ok(found.filter(|found| {
        let stays = found.state == DeletionState::Live && found.has_deletion_finalizer;
        stays && found.uid == holder.uid && is_deleted_with(&found.edges, target, phase)
    }))
}

/// Deletes holders in the cluster whose turn was reserved, as far as it does not refuse too many of them.
async fn delete_all(
    cluster: &Cluster,
    live: Vec<(usize, &Holder, Object)>,
    left: &mut RemainingHolders,
) -> Result<(), ClusterError> {
    for (turn, holder, object) in live {
        if left.refusals.may_send_reserved(turn)
            && let Err(error) = delete_live(cluster, &object).await
        {
            left.refusals.refuse(holder, error)?;
        }
    }
    Ok(())
}

/// In the version that was read.
async fn delete_live(cluster: &Cluster, object: &Object) -> Result<(), ClusterError> {
    let deleted = match object.immutable {
        true => cluster.request(object).await.map(drop),
        false => cluster.delete(object).await.map(drop),
    };
    match deleted {
        Err(ClusterError::Conflict(_)) => Ok(()),
        Err(error) if error.is_absence() => Ok(()),
        deleted => deleted,
    }
}

/// Whether no other object has taken the name of an archived one in the archive.
pub(super) async fn has_its_name(archive: &dyn Archive, seen: &Seen) -> Result<bool, ClusterError> {
    archive.has_its_name(seen).await.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests;
