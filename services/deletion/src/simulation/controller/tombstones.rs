//! A walk over the tombstones of a service, request by request. Nothing of it outlives a crash.

use std::collections::BTreeSet;

use kindex_model::deletion::Phase;

use super::moved::{moved_from, release_row};
use super::{Controller, TOMBSTONES};
use crate::answers::Swept;
use crate::archive::tombstone::decide;
use crate::archive::{Holder, HolderAction, action_on, is_deleted_with};
use crate::cleanup_states::{ArchivedCleanupStates, CallOutcome};
use crate::decide::{Archived, CleanupState, Step};
use crate::object::{DeletionState, Key, Object};
use crate::simulation::Bug;
use crate::simulation::world::{Refusal, World, has_cleanup};

/// The walk of one controller.
#[derive(Default)]
pub(super) struct Walk {
    /// The tombstone that it visits.
    visit: Option<Visit>,
    /// Of the cleanups of tombstones.
    cleanup_states: ArchivedCleanupStates,
}

/// One tombstone under way.
#[derive(Clone, Debug)]
struct Visit {
    uid: String,
    key: Key,
    version: u64,
    phase: Option<Phase>,
    object: Object,
    /// Whether fields with its name mean it.
    is_named: bool,
    holders: Vec<Holder>,
    /// Those that go, the live ones in the version in which they were read.
    going: Vec<Holder>,
    gone: BTreeSet<String>,
    /// Live ones whose fields name others by now, in the version in which they were read.
    former: Vec<Holder>,
    /// The same of archived ones.
    moved: Vec<Holder>,
    /// Whether its cleanup is to be called, and what came of the call.
    cleans_up: bool,
    outcome: Option<CallOutcome>,
    /// What it holds at other services and is to be released before its end, the next one last.
    elsewhere: Option<Vec<Key>>,
    /// Requests that were answered.
    done: usize,
}

impl Controller {
    /// Sends the next request of a walk. Whether one was under way, or could begin.
    pub(in super::super) fn walk(&mut self, world: &mut World, choice: usize, bug: Bug) -> bool {
        let Some(mut visit) = self.walk.visit.take() else {
            let mut uids = world.tombstones(&self.group);
            if bug == Bug::WalkOnePage {
                uids.truncate(TOMBSTONES);
            }
            let Some(at) = choice.checked_rem(uids.len()).filter(|_| bug != Bug::LeaveTombstones) else {
                return false;
            };
            let found = world.tombstone(&uids[at]).expect("it is one");
            self.walk.visit = Some(Visit {
                uid: found.uid.clone(),
                key: found.key.clone(),
                version: found.version,
                phase: found.phase,
                object: world.read(found, true),
                is_named: false,
                holders: Vec::new(),
                going: Vec::new(),
                gone: BTreeSet::new(),
                former: Vec::new(),
                moved: Vec::new(),
                cleans_up: false,
                outcome: None,
                elsewhere: None,
                done: 0,
            });
            return true;
        };
        if self.visit_on(world, &mut visit, bug) {
            visit.done += 1;
            self.walk.visit = Some(visit);
        }
        true
    }

    /// Visits all tombstones to the end.
    pub(in super::super) fn walk_all(&mut self, world: &mut World, bug: Bug) {
        for choice in 0..world.tombstones(&self.group).len() {
            while self.walk.visit.is_some() {
                self.walk(world, choice, bug);
            }
            self.walk(world, choice, bug);
        }
        while self.walk.visit.is_some() {
            self.walk(world, 0, bug);
        }
    }

    /// Whether another request follows.
    fn visit_on(&mut self, world: &mut World, visit: &mut Visit, bug: Bug) -> bool {
        if visit.cleans_up {
            return self.clean_up_archived(world, visit, bug);
        }
        if visit.elsewhere.is_some() {
            return release_elsewhere(world, visit, bug);
        }
        match visit.done {
            // Whether the cluster has the name is asked of it.
            0 => {
                visit.is_named = bug == Bug::TakeByName || world.has_its_name(&visit.key, &visit.uid);
                world.servers.get(&visit.key).is_ok()
            }
            1 => {
                visit.holders = world.tombstone_holders(&visit.key, &visit.uid, visit.is_named);
                true
            }
            2 => {
                if bug != Bug::TakeFromFormer {
                    let (key, phase) = (&visit.key, visit.phase);
                    visit.holders.retain(|holder| !self.stays(world, holder, key, phase));
                }
                visit.going = self.going(world, visit, bug);
                let holders = visit.holders.iter();
                visit.former = holders.filter_map(|holder| world.former(holder, &visit.key)).collect();
                if bug != Bug::LeaveMovedOnTombstone {
                    visit.moved = moved_from(&visit.holders, &visit.key);
                }
                true
            }
            3 => {
                let is_named = bug == Bug::TakeByName || world.has_its_name(&visit.key, &visit.uid);
                let answers = world.servers.get(&visit.key).is_ok();
                visit.going.is_empty() || (answers && is_named)
            }
            at => match visit.going.get(at - 4).cloned() {
                Some(holder) => {
                    self.take(world, visit, &holder, bug);
                    true
                }
                None if release_former(world, visit, at - 4 - visit.going.len(), bug) => true,
                None => {
                    let cleanup = self.archived_cleanup_state(&visit.object);
                    let is_early = bug == Bug::CleanUpArchivedEarly && cleanup == CleanupState::Unconfirmed;
                    let cleanup = if bug == Bug::EndUncleaned {
                        CleanupState::Gone
                    } else {
                        cleanup
                    };
                    let step = decide(&swept(visit), &cleanup, true);
                    visit.cleans_up = step == Step::CleanUp || is_early;
                    if !visit.cleans_up {
                        finish(world, visit, &step, bug);
                    }
                    visit.cleans_up || visit.elsewhere.is_some()
                }
            },
        }
    }

    /// Its cleanup is called, if it still drains, and then says what is left. In between, a crash leaves nobody who
    /// knows of the call. Whether another request follows.
    fn clean_up_archived(&mut self, world: &mut World, visit: &mut Visit, bug: Bug) -> bool {
        if let Some(outcome) = visit.outcome.take() {
            // Time goes on: what follows from that is done later.
            world.servers.version += 1;
            self.walk.cleanup_states.record(&visit.uid, outcome, self.now);
            return false;
        }
        let found = world.tombstone(&visit.uid);
        let drains = found.is_some_and(|found| found.phase == Some(Phase::Draining));
        if !drains && bug != Bug::CleanUpArchivedEarly {
            return false;
        }
        let is_left = world.clean_up_archived(&visit.uid) && bug != Bug::BelieveArchivedCleanup;
        visit.outcome = Some(match is_left {
            true => CallOutcome::Pending("machines".to_owned(), None),
            false => CallOutcome::Gone,
        });
        true
    }

    /// The cleanup of what a tombstone has outside, as far as is known.
    fn archived_cleanup_state(&self, object: &Object) -> CleanupState {
        match has_cleanup(&object.key.kind.kind) {
            true => self.walk.cleanup_states.of(object, self.now),
            false => CleanupState::Gone,
        }
    }

    /// Whether a holder stays, because an object from which it was moved holds it still.
    fn stays(&self, world: &World, holder: &Holder, target: &Key, phase: Option<Phase>) -> bool {
        let found = world.unheld(holder, target, phase);
        found.is_some_and(|found| {
            let in_cluster = self.has_former(&world.read(found, true));
            in_cluster == Some(true) || world.has_archived_former(found)
        })
    }

    /// Whether one of the cluster does, as far as is known.
    fn has_former(&self, holder: &Object) -> Option<bool> {
        let input = self.graph.input(&holder.key, CleanupState::Gone)?;
        let is_known = input.object.uid == holder.uid && input.object.edges == holder.edges;
        (is_known && input.targets_unknown.is_empty()).then_some(input.has_former)
    }

    /// The archived holders that go, and the live ones as they are in the cluster.
    fn going(&self, world: &World, visit: &Visit, bug: Bug) -> Vec<Holder> {
        let phase = match bug {
            Bug::TombstoneOwnedAtOnce => visit.phase.map(|_| Phase::Draining),
            _ => visit.phase,
        };
        let phase = phase.filter(|_| visit.is_named);
        let going = visit.holders.iter().filter_map(|holder| {
            if holder.version.is_some() {
                return (action_on(holder, &visit.key, phase) == HolderAction::Delete).then(|| holder.clone());
            }
            let found = world.servers.get(holder.key.as_ref()?).ok()??;
            let read = world.read(found, true);
            let is_sure = holder.reference.is_some() || self.has_former(&read) == Some(false);
            let stays = read.state == DeletionState::Live && read.has_deletion_finalizer && read.uid == holder.uid;
            let may_go = stays && (is_sure || bug == Bug::TakeFromFormer);
            (may_go && is_deleted_with(&read.edges, &visit.key, phase)).then(|| Holder {
                version: Some(read.version),
                edges: read.edges,
                ..holder.clone()
            })
        });
        going.collect()
    }

    fn take(&self, world: &mut World, visit: &mut Visit, holder: &Holder, bug: Bug) {
        let archived = visit
            .holders
            .iter()
            .any(|one| one.uid == holder.uid && one.version.is_some());
        if archived {
            let stale = bug == Bug::CascadeByStaleRow;
            if world.delete_archived(&visit.uid, holder, stale, bug) {
                visit.gone.insert(holder.uid.clone());
            }
            return;
        }
        let (Some(key), Some(version)) = (&holder.key, holder.version) else {
            return;
        };
        let version = (bug != Bug::TakeLiveAnyway).then_some(version.0);
        let Ok(Some(found)) = world.servers.get(key) else {
            return;
        };
        if found.uid == holder.uid && version.is_none_or(|version| version == found.version) {
            let found = found.clone();
            world.judge_deletion(&found);
        }
        let written = world.write(key, Some(&holder.uid), version, |object| {
            object.asked = true;
            match object.immutable {
                true => object.requested = true,
                false => object.terminating = true,
            }
        });
        // It is read again in the next walk.
        drop(written);
    }
}

/// Writes to the next holder that uses the object no more, and then releases its row. Whether there was one.
fn release_former(world: &mut World, visit: &mut Visit, at: usize, bug: Bug) -> bool {
    let Some(holder) = visit.former.get(at / 2).cloned() else {
        let at = at - 2 * visit.former.len();
        return release_row(world, (&visit.key, &visit.uid), &visit.moved, at, &mut visit.gone, bug);
    };
    let Some((key, reference)) = holder.key.as_ref().zip(holder.reference.as_ref()) else {
        return true;
    };
    let is_written = visit.gone.contains(&holder.uid);
    match at % 2 {
        0 if bug == Bug::ReleaseRowUndetached => {
            visit.gone.insert(holder.uid.clone());
        }
        0 => {
            let version = holder.version.map(|version| version.0);
            if world.write(key, Some(&holder.uid), version, |_| ()).is_ok() {
                world.judge_row(&holder.uid, &visit.key);
                visit.gone.insert(holder.uid.clone());
            }
        }
        _ if is_written => {
            if bug == Bug::ReleaseRowUndetached {
                world.judge_row(&holder.uid, &visit.key);
            }
            world
                .archives
                .references
                .remove(&(visit.uid.clone(), reference.clone()));
        }
        _ => {}
    }
    true
}

/// Who is left.
fn swept(visit: &Visit) -> Swept {
    let phase = visit.phase.filter(|_| visit.is_named);
    let (mut plain, mut owned) = (Vec::new(), Vec::new());
    for holder in visit.holders.iter().filter(|holder| !visit.gone.contains(&holder.uid)) {
        match action_on(holder, &visit.key, phase) {
            HolderAction::WaitForOwned => owned.push(holder.to_string()),
            HolderAction::Delete | HolderAction::WaitFor => plain.push(holder.to_string()),
        }
    }
    Swept {
        phase: visit.phase,
        archived: Archived::Remaining { plain, owned },
        goes_on: !visit.gone.is_empty(),
        refused: None,
    }
}

/// Of so many requests to other services one does not arrive, and the answer to another one gets lost.
const FAILS_OF: u64 = 6;

/// Releases the next reference at another service, then ends the tombstone. Where there is no answer, another walk
/// begins again. Whether another request follows.
fn release_elsewhere(world: &mut World, visit: &mut Visit, bug: Bug) -> bool {
    let Some(target) = visit.elsewhere.as_mut().and_then(Vec::pop) else {
        world.end_tombstone(&visit.uid, visit.version, false);
        return false;
    };
    world.judge_release_elsewhere(&visit.uid, &target);
    let reference = visit.object.reference_name().expect("a name").to_string();
    let chance = world.servers.version % FAILS_OF;
    // Time goes on, and the next request has another chance.
    world.servers.version += 1;
    let arrives = chance != 0;
    let released = arrives.then(|| {
        world.write_elsewhere(&target, None, None, |found| {
            found.finalizers.retain(|finalizer| *finalizer != reference);
        })
    });
    let is_answered = chance > 1 && !matches!(released, Some(Err(Refusal::Down)));
    is_answered || bug == Bug::EndUnanswered
}

fn finish(world: &mut World, visit: &mut Visit, step: &Step, bug: Bug) {
    let elsewhere = world
        .tombstone(&visit.uid)
        .map(|found| world.named_elsewhere(found))
        .unwrap_or_default();
    if matches!(step, Step::Free { .. }) && !elsewhere.is_empty() && bug != Bug::EndUnreleased {
        visit.elsewhere = Some(elsewhere);
    } else if bug == Bug::EndHeld || matches!(step, Step::Free { .. }) {
        world.end_tombstone(&visit.uid, visit.version, bug == Bug::EndHeld);
    } else if let Step::Record(phase, _) = step {
        let version = (bug != Bug::TombstoneAnyway).then_some(visit.version);
        world.record_tombstone(&visit.uid, version, *phase);
    }
}
