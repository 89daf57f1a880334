//! One controller of a service: what it knows, and how its steps are carried out, one request at a time, so that
//! anything can happen between two of them. What others have answered is kept by the production code. `queue` is what
//! is to be done, `reports` is what people are told, and `tombstones` has the walk over those.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_model::object::ResourceVersion;
use tokio::time::Instant;

mod task;

mod queue;

mod moved;

mod cascade;

mod lost;

mod archived;

mod outside;

mod place;

mod planted;

mod release;

mod tombstones;

mod reports;

use super::Bug;
use super::world::{Event, KINDS, Refusal, Stored, World, has_cleanup, names};
use crate::decide::{Cause, Step};
use crate::graph::Graph;
use crate::object::{DeletionState, Key, KindName, Object};
use crate::service::work::Setup;
use crate::service::work::knowledge::Knowledge;
use planted::{counts_as_gone, decide_with, release_rows};
use queue::Queue;
use reports::Reports;
use task::Task;
use tombstones::Walk;

/// Of what is wrong with large numbers, the number up to which nothing is: so many holders, objects that one change
/// concerns and tombstones.
const HOLDERS: usize = 8;
const CONCERNED: usize = 24;
const TOMBSTONES: usize = 6;
/// For how long an object may wait, for the same others, before somebody is told, and between two answers that a holder
/// is not there.
const BLOCKED_AFTER: Duration = Duration::from_secs(30);

/// What came of a request.
enum Progress {
    /// Another one follows.
    Next,
    /// The step is over.
    Done,
    /// It is decided again.
    Again,
}

pub(super) struct Controller {
    group: String,
    setup: Setup,
    /// Whether what is archived is deleted with objects of other services.
    across: bool,
    pub(super) graph: Graph,
    /// Of each kind that is watched, how much of the log was read; `None`: it is listed next.
    positions: BTreeMap<KindName, Option<usize>>,
    knowledge: Knowledge,
    queue: Queue,
    reports: Reports,
    walk: Walk,
    now: Instant,
}

impl Controller {
    pub(super) fn new(world: &World, group: &str, bug: Bug) -> Self {
        let declared = world.services.declared();
        let kinds = KINDS.iter().map(|kind| world.services.kind(kind));
        let (own, foreign): (BTreeSet<_>, BTreeSet<_>) = kinds.partition(|kind| kind.group == group);
        let outside = own.iter().chain(&foreign).filter(|kind| has_cleanup(&kind.kind));
        let setup = Setup {
            outside: outside.cloned().collect(),
            foreign,
            archives: true,
            ..Setup::default()
        };
        let mut watched = own;
        let targets = declared.iter().filter(|edge| edge.holder.group == group);
        watched.extend(targets.map(|edge| edge.target.clone()));
        // Of the holders that others have, a service knows nothing.
        let known = declared.into_iter().filter(|edge| edge.holder.group == group);
        Self {
            group: group.to_owned(),
            setup,
            across: world.archives.across,
            graph: Graph::new(known.collect()),
            positions: watched.into_iter().map(|kind| (kind, None)).collect(),
            knowledge: Knowledge::new(BLOCKED_AFTER),
            queue: Queue::new(bug),
            reports: Reports::new(BLOCKED_AFTER),
            walk: Walk::default(),
            now: Instant::now(),
        }
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    pub(super) fn kinds(&self) -> Vec<KindName> {
        self.positions.keys().cloned().collect()
    }

    /// Nothing more to do, as far as it knows.
    pub(super) fn is_idle(&self, world: &World) -> bool {
        let read = self.positions.iter().all(|(kind, position)| {
            let end = world.servers.log.get(kind).map_or(0, Vec::len);
            *position == Some(end)
        });
        read && self.queue.is_empty()
    }

    /// Whether it has a request to send.
    pub(super) fn has_requests(&self) -> bool {
        self.queue.has_tasks()
    }

    /// The watch of a kind breaks: it is listed anew.
    pub(super) fn relist(&mut self, kind: &KindName) {
        self.positions.insert(kind.clone(), None);
    }

    /// What a list shows that is empty, though it says that it is complete.
    pub(super) fn deceive(&mut self, kind: &KindName) {
        let concerned = self.graph.replace(kind, ResourceVersion(u64::MAX), Vec::new());
        self.lose(concerned);
        self.relist(kind);
    }

    /// What was known of another service's kind is not to be trusted until it is listed anew.
    pub(super) fn doubt(&mut self, kind: &KindName, bug: Bug) {
        if bug != Bug::TrustDoubted {
            self.graph.doubt(kind);
        }
    }

    fn wake(&mut self, concerned: BTreeSet<Key>) {
        let own = concerned.into_iter();
        let own = own.filter(|key| key.kind.group == self.group || self.sweeps_holders(key));
        let own: Vec<Key> = own.collect();
        self.queue.wake(own);
    }

    /// The next report of a kind, and at times one from before it.
    pub(super) fn hear(&mut self, world: &World, kind: &KindName, again: Option<usize>, bug: Bug) {
        if world.servers.is_down(&kind.group) {
            return;
        }
        let is_own = kind.group == self.group;
        let log = world.servers.log.get(kind).map_or(&[][..], Vec::as_slice);
        let Some(position) = self.positions[kind] else {
            let objects = world.listed(kind, &self.group).into_iter();
            let objects = objects.map(|object| read(world, &object, is_own, bug)).collect();
            let concerned = self
                .graph
                .replace(kind, ResourceVersion(world.servers.version), objects);
            self.lose(concerned);
            self.positions.insert(kind.clone(), Some(log.len()));
            return;
        };
        let (at, next) = match again {
            Some(back) => (position.saturating_sub(back), position),
            None => (position, position + 1),
        };
        let concerned = match log.get(at) {
            None => return,
            Some(event) if !is_own && self.across => self.look_up(world, event.about(), bug),
            Some(Event::Archived(_)) => BTreeSet::new(),
            Some(Event::Applied(object)) => self.apply(read(world, object, is_own, bug)),
            Some(Event::Deleted(key, uid)) => self.gone(key, uid),
        };
        if bug == Bug::ForgetTombstone {
            self.graph.forget_gone();
        }
        self.wake(concerned);
        self.positions.insert(kind.clone(), Some(next.min(log.len())));
    }

    /// The list of a kind, if it has none, and all reports since.
    pub(super) fn hear_all(&mut self, world: &World, kind: &KindName, bug: Bug) {
        loop {
            let before = self.positions[kind];
            self.hear(world, kind, None, bug);
            if self.positions[kind] == before {
                return;
            }
        }
    }

    /// Decides on one object of the queue.
    pub(super) fn decide(&mut self, choice: usize, bug: Bug) {
        let Some(key) = self.queue.next(choice) else {
            return;
        };
        let Some(object) = self.graph.get(&key).cloned() else {
            return self.reports.waiting.forget(&key);
        };
        // One step of an object at a time: it is decided on again once that is over.
        if self.queue.is_busy(&key) {
            return;
        }
        if key.kind.group != self.group {
            return self.begin_sweep(&object, bug);
        }
        let step = self.step_of(&object, bug);
        if matches!(step, Step::Wait(_) | Step::Rest(_)) {
            self.seek(&step);
            return self.reports.waiting.rests(&key, step, self.now);
        }
        let others = self.gather(&object, &step, bug);
        for one in others.iter().chain([&object]) {
            self.reports.waiting.goes_on(&one.key, &step);
        }
        let task = Task::new(&object, step.clone(), &others, self.known_target(&step));
        self.queue.begin(task);
    }

    fn step_of(&self, object: &Object, bug: Bug) -> Step {
        let input = self
            .knowledge
            .input(&self.graph, &self.setup, &object.key, self.now)
            .expect("it is there");
        decide_with(bug, input, &self.graph)
    }

    /// Sends one request of one task. Its answer may get lost.
    pub(super) fn send(&mut self, world: &mut World, choice: usize, lost: bool, strict: bool, bug: Bug) {
        let Some(mut task) = self.queue.take(choice) else {
            return;
        };
        match self.request(world, &mut task, lost, strict, bug) {
            Progress::Next => {
                task.done += 1;
                self.queue.begin(task);
            }
            Progress::Done | Progress::Again => self.queue.end(&task),
        }
    }

    fn request(&mut self, world: &mut World, task: &mut Task, lost: bool, strict: bool, bug: Bug) -> Progress {
        let own = names(&self.group);
        match &task.step.clone() {
            Step::Adopt => self.change(world, task, lost, |object| {
                object.finalizers.push(own.finalizer.clone())
            }),
            Step::Record(phase, _) => {
                let version = (bug != Bug::RecordAnyway).then_some(task.version);
                if let Some(object) = judged(world, task, version) {
                    world.judge_phase(&object, *phase);
                }
                let written = world.write(&task.key, Some(&task.uid), version, |object| {
                    object.phase = Some(*phase)
                });
                self.learn(world, &task.key, written, lost)
            }
            Step::Place { target, .. } => self.place(world, task, target, bug),
            Step::Release(target) => self.release(world, task, &target.clone(), lost, bug),
            Step::Request(cause) | Step::Delete(cause) => self.delete(world, task, cause, lost, bug),
            Step::Hold { target, .. } => self.hold(world, task, target, bug),
            Step::Keep(names) => self.keep(world, task, names, lost, bug),
            Step::Sweep if task.key.kind.group != self.group => self.sweep_holders(world, task, bug),
            Step::Sweep => self.sweep(world, task, bug),
            Step::CleanUp => self.clean_up(world, task, lost, bug),
            Step::Free { confirm } => match confirm.get(task.done) {
                Some(key) if counts_as_gone(world, key, bug) => Progress::Next,
                Some(key) => self.confirm(world, task, key),
                None => {
                    if let Some(object) = judged(world, task, Some(task.version)) {
                        if object.asked {
                            release_rows(world, &object, bug);
                        }
                        world.judge_free(&object, strict);
                    }
                    self.change(world, task, lost, |object| {
                        object.finalizers.retain(|finalizer| *finalizer != own.finalizer);
                    })
                }
            },
            Step::Wait(_) | Step::Rest(_) => Progress::Done,
        }
    }

    fn observe_and_repeat(&mut self, world: &World, object: Option<Stored>) -> Progress {
        if let Some(object) = object {
            self.know(world, &object);
        }
        Progress::Again
    }

    fn delete(&mut self, world: &mut World, task: &Task, cause: &Cause, lost: bool, bug: Bug) -> Progress {
        if let (Cause::Target { target, held, .. }, 0) = (cause, task.done)
            && (!held || (target.key.kind.group != self.group && bug != Bug::TrustHeld))
        {
            let deleted = match world.look(&target.key, &self.group) {
                Err(_) => return Progress::Again,
                Ok(None) => false,
                Ok(Some(found)) => found.uid == target.uid && found.terminating && found.phase.is_some(),
            };
            if !deleted && bug != Bug::CascadeByName {
                return Progress::Again;
            }
            // The write succeeds only if the holder is then as it is now: it is judged by what was read.
            if let Some(object) = judged(world, task, Some(task.version)) {
                if !held && self.has_archived_former(world, &object, bug) {
                    return Progress::Again;
                }
                world.judge_deletion(&object);
            }
            return Progress::Next;
        }
        let requests = matches!(task.step, Step::Request(_));
        self.change(world, task, lost, |object| {
            object.asked = true;
            match requests {
                true => object.requested = true,
                false => object.terminating = true,
            }
        })
    }

    /// Reads what a field names, which must not have the reference any more.
    fn confirm(&mut self, world: &World, task: &Task, key: &Key) -> Progress {
        match world.look(key, &self.group) {
            Err(_) => Progress::Again,
            Ok(None) => Progress::Next,
            Ok(Some(found)) => {
                let has_reference = found.has_finalizer(&task.reference);
                self.know(world, &found);
                match has_reference {
                    true => Progress::Again,
                    false => Progress::Next,
                }
            }
        }
    }

    fn change(&mut self, world: &mut World, task: &Task, lost: bool, change: impl FnOnce(&mut Stored)) -> Progress {
        let written = world.write(&task.key, Some(&task.uid), Some(task.version), change);
        self.learn(world, &task.key, written, lost)
    }

    /// Notes the answer. A lost one is as good as none: the object is read again later.
    fn learn(&mut self, world: &World, key: &Key, written: Result<Stored, Refusal>, lost: bool) -> Progress {
        match written {
            Ok(object) if !lost => {
                self.know(world, &object);
                Progress::Done
            }
            Ok(_) => Progress::Again,
            Err(refusal) => self.refused(world, key, refusal),
        }
    }

    fn refused(&mut self, world: &World, key: &Key, refusal: Refusal) -> Progress {
        if let (Refusal::Conflict | Refusal::Invalid, Ok(Some(object))) = (refusal, world.look(key, &self.group)) {
            self.know(world, &object);
        }
        Progress::Again
    }

    fn know(&mut self, world: &World, object: &Stored) {
        if object.terminating && object.finalizers.is_empty() {
            let concerned = self.graph.remove(&object.key, &object.uid);
            return self.lose(concerned);
        }
        let is_own = object.key.kind.group == self.group;
        let concerned = self.apply(world.read(object, is_own));
        self.wake(concerned);
    }
}

/// The object of a task, if the write will not be refused.
fn judged(world: &World, task: &Task, version: Option<u64>) -> Option<Stored> {
    let object = world.servers.get(&task.key).ok()??;
    let fits = object.uid == task.uid && version.is_none_or(|version| version == object.version);
    fits.then(|| object.clone())
}

fn read(world: &World, object: &Stored, is_own: bool, bug: Bug) -> Object {
    let mut read = world.read(object, is_own);
    if bug == Bug::EvictionIsDeletion && read.state == DeletionState::Evicting {
        read.state = DeletionState::Deleting;
    }
    read
}
