//! A release, request by request.

use super::super::Bug;
use super::super::world::{Refusal, Stored, World};
use super::planted::counts_as_gone;
use super::task::Member;
use super::{Controller, Progress, Task};
use crate::decide::Seen;
use crate::object::Key;

impl Controller {
    /// Of a live holder, all that its fields name is read, then the target, the holder is written, and the target loses
    /// the reference in the version that was read. Those of holders that were on their way out are taken off at once
    /// in the version that is known, and that of one that is gone in any version.
    pub(super) fn release(
        &mut self,
        world: &mut World,
        task: &mut Task,
        target: &Seen,
        lost: bool,
        bug: Bug,
    ) -> Progress {
        if counts_as_gone(world, &target.key, bug) {
            let concerned = self.graph.remove(&target.key, &target.uid);
            self.wake(concerned);
            return Progress::Done;
        }
        if task.leaves {
            let members = task.members();
            let found = self.borne(world, target, task.read);
            if let Some(found) = found.filter(|found| found.uid == target.uid) {
                judge(world, &members, &found);
            }
            return self.take_off(world, &members, target, task.read, lost);
        }
        if task.done < 3 {
            let Ok(holder) = world.get(&task.key) else {
                return Progress::Again;
            };
            // The holder is read again: a field that changed may name the target again.
            let holder = holder.filter(|holder| holder.uid == task.uid).cloned();
            if holder.as_ref().is_some_and(|holder| holder.version != task.version) {
                return self.know_and_again(world, holder);
            }
            if holder.is_none() || bug == Bug::ReleaseUndetached {
                return self.take_off(world, &task.members(), target, None, lost);
            }
        }
        match task.done {
            0 if bug == Bug::ReleaseUnconfirmed => Progress::Next,
            0 => self.holds_all(world, task),
            1 => {
                let Ok(found) = world.look(&target.key, &self.group) else {
                    return Progress::Again;
                };
                task.read = found.filter(|found| found.uid == target.uid).map(|found| found.version);
                match task.read {
                    Some(_) => Progress::Next,
                    None => {
                        let concerned = self.graph.remove(&target.key, &target.uid);
                        self.wake(concerned);
                        Progress::Done
                    }
                }
            }
            2 => {
                // From here on, whoever lets the holder name the target again has placed the reference anew.
                let found = self.borne(world, target, None).filter(|found| found.uid == target.uid);
                if let Some(found) = found.filter(|found| found.bears(&task.reference)) {
                    world.judge_release(&task.uid, &found);
                }
                self.detach(world, task)
            }
            _ if bug == Bug::ReleaseAnyVersion => self.take_off(world, &task.members(), target, None, lost),
            _ => self.take_off(world, &task.members(), target, task.read, lost),
        }
    }

    /// What is about to lose references, wherever it is, in a version that is known.
    fn borne(&self, world: &World, target: &Seen, version: Option<u64>) -> Option<Stored> {
        let found = match world.is_elsewhere(&target.key, &self.group) {
            true => world.shown(&target.key),
            false => world.objects.get(&target.key).cloned(),
        };
        found.filter(|found| version.is_none_or(|version| version == found.version))
    }

    /// Whether all that its fields name bear the reference.
    fn holds_all(&mut self, world: &World, task: &Task) -> Progress {
        let holder = &world.objects[&task.key];
        let group = self.group.clone();
        let is_own = |target: &Key| target.kind.group == group;
        for edge in world.edges(holder) {
            let found = match world.look(&edge.target, &self.group) {
                Ok(Some(found)) => found,
                Ok(None) if is_own(&edge.target) && world.bears_as_row(&edge.target, &task.reference) => continue,
                Ok(None) | Err(_) => return Progress::Again,
            };
            self.know(world, &found);
            if !found.bears(&task.reference) {
                return Progress::Again;
            }
        }
        Progress::Next
    }

    /// Writes to the holder, on condition of the version that was decided on.
    fn detach(&mut self, world: &mut World, task: &Task) -> Progress {
        match world.write(&task.key, Some(&task.uid), Some(task.version), |_| ()) {
            Ok(object) => {
                self.know(world, &object);
                Progress::Next
            }
            Err(refusal) => self.refused(world, &task.key, refusal),
        }
    }

    /// In this version of the target, or in whatever version it is.
    pub(super) fn take_off(
        &mut self,
        world: &mut World,
        members: &[Member],
        target: &Seen,
        version: Option<u64>,
        lost: bool,
    ) -> Progress {
        if version.is_none()
            && let Some(found) = self.borne(world, target, None)
        {
            judge(world, members, &found);
        }
        let written = self.write_target(world, target, true, version, |object| {
            let released = |finalizer: &String| members.iter().any(|member| member.reference == *finalizer);
            object.finalizers.retain(|finalizer| !released(finalizer));
        });
        match written {
            Err(Refusal::Gone) => {
                let concerned = self.graph.remove(&target.key, &target.uid);
                self.wake(concerned);
                Progress::Done
            }
            written => self.learn(world, &target.key, written, lost),
        }
    }
}

fn judge(world: &mut World, members: &[Member], target: &Stored) {
    for member in members.iter().filter(|member| target.bears(&member.reference)) {
        world.judge_release(&member.uid, target);
    }
}
