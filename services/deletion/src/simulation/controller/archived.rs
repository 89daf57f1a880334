//! The steps that concern the archive, request by request.

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::moved::{ROW_REQUESTS, moved_from, release_row};
use super::{Controller, HOLDERS, Progress, Task};
use crate::answers::Swept;
use crate::archive::{HolderAction, HolderState, PlacementOutcome, action_on};
use crate::decide::Archived;
use crate::object::{Key, Object};
use crate::simulation::Bug;
use crate::simulation::world::{Stored, World};
use crate::targets::Answer;

impl Controller {
    /// Time passes, and what is due is asked of the archive and of cleanups again.
    pub(in super::super) fn wait(&mut self, time: Duration) {
        self.now += time;
        let due = self.knowledge.due(&self.graph, self.now);
        self.wake(due);
    }

    /// What held these may be archived.
    pub(super) fn lose(&mut self, concerned: BTreeSet<Key>) {
        self.knowledge.answers.forget(&concerned);
        self.knowledge.targets.forget(&concerned);
        self.wake(concerned);
    }

    pub(super) fn apply(&mut self, object: Object) -> BTreeSet<Key> {
        let known = self.graph.get(&object.key);
        let known = known.filter(|known| known.uid == object.uid && known.version < object.version);
        if let Some(known) = known.filter(|known| known.key.kind.group == self.group) {
            self.knowledge.answers.compare(known, &object);
        }
        self.graph.apply(object)
    }

    /// The row, then both are read: the object may be back, and the holder may have released all that it held before.
    pub(super) fn hold(&mut self, world: &mut World, task: &mut Task, target: &Key, bug: Bug) -> Progress {
        let Some(name) = ReferenceName::of_finalizer(&task.reference) else {
            return Progress::Done;
        };
        if task.done == 0 {
            if world.servers.get(&task.key).is_err() {
                return Progress::Again;
            }
            let held = world.place_row(target, &name);
            let answer = match &held {
                PlacementOutcome::By { is_new: true, .. } => None,
                PlacementOutcome::By { is_new: false, .. } => Some(Answer::Held),
                PlacementOutcome::Leaving => Some(Answer::Leaving),
                PlacementOutcome::Absent => Some(Answer::Absent),
            };
            task.held = Some(held);
            return match answer {
                None => Progress::Next,
                Some(answer) => self.answered(task, target, answer),
            };
        }
        let Some(PlacementOutcome::By { target: held, .. }) = &task.held else {
            return Progress::Done;
        };
        let (Ok(live), Ok(holder)) = (world.servers.get(target), world.servers.get(&task.key)) else {
            return Progress::Again;
        };
        let holder = holder.filter(|found| found.uid == task.uid);
        let stays = holder.is_some_and(|found| !(found.terminating && found.asked));
        let stays = live.is_none() && (stays || world.archives.is_archived(&task.uid));
        let (live, uid) = (live.cloned(), held.uid.clone());
        if stays || bug == Bug::HoldUnread {
            return self.answered(task, target, Answer::Held);
        }
        world.archives.references.remove(&(uid, name));
        self.observe_and_repeat(world, live)
    }

    fn answered(&mut self, task: &Task, target: &Key, answer: Answer) -> Progress {
        if let Some(holder) = self.graph.get(&task.key).filter(|holder| holder.uid == task.uid) {
            self.knowledge
                .targets
                .answered(holder, target.clone(), answer, self.now);
        }
        Progress::Done
    }

    /// Whether what is archived holds an object that was moved from there: then what it names does not wait for it.
    pub(super) fn has_archived_former(&mut self, world: &World, object: &Stored, bug: Bug) -> bool {
        let has_former = bug != Bug::ForgetArchivedFormer && world.has_archived_former(object);
        let Some(holder) = self.graph.get(&object.key).filter(|holder| holder.uid == object.uid) else {
            return has_former;
        };
        self.knowledge.targets.asked_for_former(holder, has_former, self.now);
        if has_former {
            let named = holder.edges.iter().map(|edge| edge.target.clone()).collect();
            self.wake(named);
        }
        has_former
    }

    /// The rows first, then the finalizers.
    pub(super) fn keep(
        &mut self,
        world: &mut World,
        task: &mut Task,
        names: &[ReferenceName],
        lost: bool,
        bug: Bug,
    ) -> Progress {
        if task.done == 0 {
            task.places = world.keep(&task.uid, &self.group, names, bug != Bug::TakeOffWithoutRow);
            return Progress::Next;
        }
        let places = names.iter().zip(&task.places);
        let (off, missing): (Vec<_>, Vec<_>) = places.partition(|(_, place)| **place != HolderState::Unknown);
        for (name, _) in missing {
            self.holder_answered(name.clone(), None, bug);
        }
        let off: Vec<_> = off.into_iter().map(|(name, _)| name.to_string()).collect();
        match off.is_empty() {
            true => Progress::Done,
            false => {
                world.judge_kept(&task.key, &task.uid, &off);
                self.change(world, task, lost, |object| {
                    object.finalizers.retain(|finalizer| !off.contains(finalizer));
                })
            }
        }
    }

    /// Its holders are read. If there are any, the object is, then they are again. The rows of those that were moved
    /// are released, and those that go with it are deleted one by one.
    pub(super) fn sweep(&mut self, world: &mut World, task: &mut Task, bug: Bug) -> Progress {
        match task.done {
            0 => {
                task.holders = world.row_holders(&task.key, &task.uid);
                if bug == Bug::SweepRowsAlone {
                    task.holders.retain(|holder| holder.reference.is_some());
                }
                return Progress::Next;
            }
            1 if task.holders.is_empty() => {}
            1 => {
                let found = world.servers.get(&task.key).ok().flatten().cloned();
                let Some(found) = found.filter(|found| found.uid == task.uid && found.terminating) else {
                    return Progress::Again;
                };
                self.know(world, &found);
                task.phase = found.phase;
                return Progress::Next;
            }
            2 => {
                task.holders = world.row_holders(&task.key, &task.uid);
                match bug {
                    Bug::SweepOnePage => task.holders.truncate(HOLDERS),
                    Bug::SweepRowsAlone => task.holders.retain(|holder| holder.reference.is_some()),
                    _ => {}
                }
                if bug != Bug::LeaveMovedRow {
                    task.moved = moved_from(&task.holders, &task.key);
                }
                return Progress::Next;
            }
            _ => {}
        }
        let at = task.done.saturating_sub(3);
        if release_row(world, (&task.key, &task.uid), &task.moved, at, &mut task.gone, bug) {
            return Progress::Next;
        }
        self.delete_next(world, task, at.saturating_sub(ROW_REQUESTS * task.moved.len()), bug)
    }

    /// Deletes the next one of the holders that go, then says who is left.
    pub(super) fn delete_next(&mut self, world: &mut World, task: &mut Task, at: usize, bug: Bug) -> Progress {
        let phase = match bug {
            Bug::SweepOwnedAtOnce => task.phase.map(|_| Phase::Draining),
            _ => task.phase,
        };
        let going = task.holders.iter();
        let mut going = going.filter(|holder| action_on(holder, &task.key, phase) == HolderAction::Delete);
        if let Some(holder) = going.nth(at) {
            let stale = bug == Bug::CascadeByStaleRow;
            if world.delete_archived(&task.uid, holder, stale, bug) {
                task.gone.insert(holder.uid.clone());
            }
            return Progress::Next;
        }
        let (mut plain, mut owned) = (Vec::new(), Vec::new());
        for holder in task.holders.iter().filter(|holder| !task.gone.contains(&holder.uid)) {
            match action_on(holder, &task.key, task.phase) {
                HolderAction::WaitForOwned => owned.push(holder.to_string()),
                HolderAction::Delete | HolderAction::WaitFor => plain.push(holder.to_string()),
            }
        }
        let swept = Swept {
            phase: task.phase,
            archived: Archived::Remaining { plain, owned },
            goes_on: !task.gone.is_empty() && bug != Bug::SweepOnePage,
            refused: None,
        };
        if let Some(object) = self.graph.get(&task.key) {
            self.knowledge.answers.swept(object, swept, self.now);
        }
        Progress::Done
    }
}
