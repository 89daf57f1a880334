//! A release, request by request.

use super::planted::counts_as_gone;
use super::task::{Member, PeerRelease};
use super::{Controller, Progress, Task};
use crate::decide::Seen;
use crate::object::Key;
use crate::simulation::Bug;
use crate::simulation::world::{Refusal, Stored, World};

impl Controller {
    /// Of a live holder, all that its fields name is read, then the target, the holder is written, and the target loses
    /// the reference in the version that was read. Those of holders that were leaving the cluster are taken off at once
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
            let found = self.find_target(world, target, task.read);
            if let Some(found) = found.filter(|found| found.uid == target.uid) {
                judge(world, &members, &found);
            }
            return self.take_off(world, &members, target, task.read, lost);
        }
        if task.peer_release != PeerRelease::Unused {
            return self.take_off_peer(world, task, target, lost, bug);
        }
        if task.done < 3 {
            let Ok(holder) = world.servers.get(&task.key) else {
                return Progress::Again;
            };
            // The holder is read again: a field that changed may name the target again.
            let holder = holder.filter(|holder| holder.uid == task.uid).cloned();
            if holder.as_ref().is_some_and(|holder| holder.version != task.version) {
                return self.observe_and_repeat(world, holder);
            }
            if holder.is_none() && world.is_elsewhere(&target.key, &self.group) {
                return self.take_off_peer(world, task, target, lost, bug);
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
                let found = self.find_target(world, target, None);
                let found = found.filter(|found| found.uid == target.uid && found.has_finalizer(&task.reference));
                if let Some(found) = found {
                    world.judge_release(&task.uid, &found);
                }
                self.detach(world, task)
            }
            _ if bug == Bug::ReleaseAnyVersion => self.take_off(world, &task.members(), target, None, lost),
            _ => self.take_off(world, &task.members(), target, task.read, lost),
        }
    }

    /// What is about to lose references, wherever it is, in a version that is known.
    fn find_target(&self, world: &World, target: &Seen, version: Option<u64>) -> Option<Stored> {
        let found = match world.is_elsewhere(&target.key, &self.group) {
            true => world.shown(&target.key),
            false => world.servers.objects.get(&target.key).cloned(),
        };
        found.filter(|found| version.is_none_or(|version| version == found.version))
    }

    /// Whether all that its fields name have the reference.
    fn holds_all(&mut self, world: &World, task: &Task) -> Progress {
        let holder = &world.servers.objects[&task.key];
        let group = self.group.clone();
        let is_own = |target: &Key| target.kind.group == group;
        for edge in world.services.edges(holder) {
            let found = match world.look(&edge.target, &self.group) {
                Ok(Some(found)) => found,
                Ok(None) if is_own(&edge.target) && world.has_row_of(&edge.target, &task.reference) => continue,
                Ok(None) | Err(_) => return Progress::Again,
            };
            self.know(world, &found);
            if !found.has_finalizer(&task.reference) {
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

    /// Of a holder that has left for the archive, nobody places the reference anew. So the version of the target is
    /// read, then the archive is asked, and what it names stays held; else the reference goes in the version that was
    /// read, or all of this is done again.
    fn take_off_peer(&mut self, world: &mut World, task: &mut Task, target: &Seen, lost: bool, bug: Bug) -> Progress {
        let at = match task.peer_release {
            PeerRelease::Unused | PeerRelease::Begun => {
                let Ok(version) = world.version_of(&target.key) else {
                    return Progress::Again;
                };
                task.peer_release = PeerRelease::Read(version);
                return Progress::Next;
            }
            PeerRelease::Read(version) => {
                let at = match world.is_named_by_archived(&task.uid, &target.key) {
                    _ if bug == Bug::ReleaseUnasked => None,
                    Some(true) => return Progress::Done,
                    Some(false) => version,
                    // It is gone for good, and uses nothing any more.
                    None => None,
                };
                task.peer_release = PeerRelease::Asked(at);
                return Progress::Next;
            }
            PeerRelease::Asked(at) => at,
        };
        let released = world.release_at(&target.key, &task.reference, at);
        match (released, world.look(&target.key, &self.group)) {
            (Err(Refusal::Conflict), _) => {
                task.peer_release = PeerRelease::Begun;
                Progress::Next
            }
            (Ok(()), Ok(found)) if !lost => {
                if let Some(found) = found {
                    self.know(world, &found);
                } else {
                    let concerned = self.graph.remove(&target.key, &target.uid);
                    self.wake(concerned);
                }
                Progress::Done
            }
            (Ok(()) | Err(_), _) => Progress::Again,
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
            && let Some(found) = self.find_target(world, target, None)
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
    for member in members.iter().filter(|member| target.has_finalizer(&member.reference)) {
        world.judge_release(&member.uid, target);
    }
}
