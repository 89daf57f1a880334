//! Objects of other services: how they are looked up, how references are placed on them, and what is archived and is
//! deleted with one. Whoever is in the cluster decides on itself.

use std::collections::BTreeSet;

use kindex_model::reference_name::ReferenceName;

use super::moved::{PEER_REQUESTS, release_at_peer, was_moved};
use super::{Controller, Progress, Task, read};
use crate::decide::{Seen, Step};
use crate::object::{DeletionState, Key, Object};
use crate::simulation::Bug;
use crate::simulation::world::{Refusal, Stored, World};

impl Controller {
    /// Whether the archive is to be asked who is deleted with an object.
    pub(super) fn sweeps_holders(&self, key: &Key) -> bool {
        let known = self
            .graph
            .get(key)
            .filter(|_| self.across && key.kind.group != self.group);
        known.is_some_and(|known| {
            let is_deleted = known.state == DeletionState::Deleting && known.phase.is_some();
            is_deleted && self.knowledge.answers.is_due(known, self.now)
        })
    }

    /// Something happened to an object of another service: what its service shows of it counts.
    pub(super) fn look_up(&mut self, world: &World, key: &Key, bug: Bug) -> BTreeSet<Key> {
        if let Some(found) = world.shown(key) {
            return self.apply(read(world, &found, false, bug));
        }
        let known = self.graph.get(key).map(|known| known.uid.clone());
        known.map(|uid| self.gone(key, &uid)).unwrap_or_default()
    }

    /// An object went.
    pub(super) fn gone(&mut self, key: &Key, uid: &str) -> BTreeSet<Key> {
        let concerned = self.graph.remove(key, uid);
        self.knowledge.answers.forget(&concerned);
        self.knowledge.targets.forget(&concerned);
        concerned
    }

    /// A reference is placed on an object, or released: by a write where it is of this service, else by a request to
    /// its own.
    pub(super) fn write_target(
        &self,
        world: &mut World,
        target: &Seen,
        is_certain: bool,
        version: Option<u64>,
        change: impl FnOnce(&mut Stored),
    ) -> Result<Stored, Refusal> {
        let uid = is_certain.then_some(target.uid.as_str());
        match world.is_elsewhere(&target.key, &self.group) {
            true => world.write_elsewhere(&target.key, uid, version, change),
            false => world.write(&target.key, uid, version, change),
        }
    }

    /// Begins to ask.
    pub(super) fn begin_sweep(&mut self, object: &Object, bug: Bug) {
        if bug != Bug::LeaveCascade && self.sweeps_holders(&object.key) {
            self.queue.begin(Task::new(object, Step::Sweep, &[], None));
        }
    }

    /// The object is read, what deleted holders have left on it is released, then what moved ones have, and those that
    /// name it are deleted one by one.
    pub(super) fn sweep_holders(&mut self, world: &mut World, task: &mut Task, bug: Bug) -> Progress {
        match task.done {
            0 => {
                let Ok(found) = world.look(&task.key, &self.group) else {
                    return Progress::Again;
                };
                let Some(found) = found.filter(|found| found.uid == task.uid && found.terminating) else {
                    let concerned = self.graph.remove(&task.key, &task.uid);
                    self.wake(concerned);
                    return Progress::Done;
                };
                self.know(world, &found);
                task.phase = found.phase;
                let unnamed = world.archived_without_field(&found, &self.group).into_iter();
                (task.moved, task.holders) = unnamed.partition(|holder| was_moved(holder, &task.key));
                if bug == Bug::LeaveMoved {
                    task.moved.clear();
                }
                let own = found.references().filter(|name| name.group() == self.group);
                let is_left = |name: &ReferenceName| world.archives.rows.get(name.uid()).is_some_and(|row| row.deleted);
                let left: Vec<String> = own.filter(is_left).map(|name| name.to_string()).collect();
                if left.is_empty() {
                    return Progress::Next;
                }
                let written = world.write_elsewhere(&task.key, Some(&task.uid), None, |found| {
                    found.finalizers.retain(|finalizer| !left.contains(finalizer));
                });
                match written {
                    Ok(_) => Progress::Next,
                    Err(_) => Progress::Again,
                }
            }
            done => {
                let (at, requests) = (done - 1, PEER_REQUESTS * task.moved.len());
                if at < requests {
                    return release_at_peer(world, task, at, bug);
                }
                if at > requests {
                    return self.delete_next(world, task, at - requests - 1, bug);
                }
                task.holders.extend(world.namers_elsewhere(&self.group, &task.key));
                // Those that have not released it are asked about again.
                let left = task.moved.iter().filter(|holder| holder.reference.is_some());
                task.holders.extend(left.cloned());
                Progress::Next
            }
        }
    }
}
