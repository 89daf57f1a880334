//! Several references of one target, placed or released by one write.

use std::collections::BTreeSet;

use kindex_model::reference_name::ReferenceName;

use super::task::Member;
use super::{Controller, Progress, Task};
use crate::cluster::outcome::go_together;
use crate::decide::{Seen, Step};
use crate::object::Object;
use crate::simulation::Bug;
use crate::simulation::world::{Stored, World};

impl Controller {
    /// Others of the queue whose step the same write does for. Another service is asked for each by itself.
    pub(super) fn gather(&mut self, object: &Object, step: &Step, bug: Bug) -> Vec<Object> {
        let (Step::Place { target, .. } | Step::Release(target)) = step else {
            return Vec::new();
        };
        if target.key.kind.group != self.group {
            return Vec::new();
        }
        let queue = self.queue.queued().filter_map(|key| self.graph.get(key));
        let known = self.graph.get(&target.key).into_iter();
        let holders: BTreeSet<&str> = known
            .flat_map(|known| &known.references)
            .map(ReferenceName::uid)
            .collect();
        let concerns = |other: &Object| {
            other.edges.iter().any(|edge| edge.target == target.key) || holders.contains(other.uid.as_str())
        };
        let queue: Vec<Object> = queue.filter(|other| concerns(other)).cloned().collect();
        let mut others = Vec::new();
        for other in queue {
            let is_busy = self.queue.is_busy(&other.key);
            let too_early = bug == Bug::ReleaseTogether && object.is_leaving() && other.is_leaving();
            let joins = too_early || go_together((object, step), (&other, &self.step_of(&other, bug)));
            if joins && !is_busy {
                self.queue.join(&other.key);
                others.push(other);
            }
        }
        others
    }

    /// The version of a step's target as it is decided on, where it is of this service.
    pub(super) fn known_target(&self, step: &Step) -> Option<u64> {
        let (Step::Place { target, .. } | Step::Release(target)) = step else {
            return None;
        };
        let known = self.graph.get(&target.key);
        let known = known.filter(|known| known.key.kind.group == self.group);
        known.map(|known| known.version.0)
    }

    /// Places references, then takes back that of each holder which is gone by then, or freed.
    pub(super) fn place(&mut self, world: &mut World, task: &Task, target: &Seen, bug: Bug) -> Progress {
        let members = task.members();
        let Some(before) = task.done.checked_sub(1) else {
            return self.place_all(world, task, &members, target);
        };
        let is_last = before + 1 == members.len() || bug == Bug::PlaceUnread;
        let member = &members[before];
        let holder = world.servers.get(&member.key);
        let stays = |found: &Stored| {
            let freed = world.read(found, true).is_freed() && bug != Bug::PlaceForFreed;
            found.uid == member.uid && !freed
        };
        let is_there = holder.map(|found| found.is_some_and(stays));
        let progress = match is_there {
            Ok(true) => Progress::Done,
            Ok(false) if self.is_named_elsewhere(world, member, target) => Progress::Done,
            Ok(false) => self.take_off(world, std::slice::from_ref(member), target, None, false),
            Err(_) => Progress::Again,
        };
        match progress {
            Progress::Done if !is_last => Progress::Next,
            progress => progress,
        }
    }

    /// Whether a holder has left for the archive, and goes on holding a target at another service.
    fn is_named_elsewhere(&self, world: &World, member: &Member, target: &Seen) -> bool {
        let is_elsewhere = world.is_elsewhere(&target.key, &self.group);
        is_elsewhere && world.is_named_by_archived(&member.uid, &target.key) == Some(true)
    }

    fn place_all(&mut self, world: &mut World, task: &Task, members: &[Member], target: &Seen) -> Progress {
        let is_own = target.key.kind.group == self.group;
        let written = self.write_target(world, target, is_own, task.read, |object| {
            for member in members {
                if !object.has_finalizer(&member.reference) {
                    object.finalizers.push(member.reference.clone());
                }
            }
        });
        match written {
            // Where the answer is lost, the target is read again: else a reference might be left behind.
            Ok(object) => {
                self.know(world, &object);
                Progress::Next
            }
            Err(refusal) => self.refused(world, &target.key, refusal),
        }
    }
}
