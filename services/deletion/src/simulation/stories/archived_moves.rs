//! Archived holders that are moved: nobody follows their fields, so whoever moves them places and releases their
//! references. Two do so at once, processes die after each request, and others delete what is concerned.

use std::collections::BTreeMap;

use super::calm;
use super::moves::RELEASE_REQUESTS;
use crate::object::Key;
use crate::simulation::mover::{ArchivedMove, Ended};
use crate::simulation::world::World;
use crate::simulation::{Bug, Controller, Play};

/// A move that meets nobody takes fewer.
pub(super) const REQUESTS: usize = 18;
/// One that meets others does.
pub(super) const REQUESTS_MAX: usize = 200;
/// Requests of walks that end most tombstones, and more than any of them takes.
const VISITS: usize = 16;
const VISITS_MAX: usize = 400;
/// Of a release at another service: the target is read, the archive is asked, and the reference is taken off.
const LATE: usize = 3;

/// All of these, at some of the moments.
pub(in super::super) fn all(bug: Bug) -> Result<(), String> {
    alone(bug)?;
    at_once(bug, false, 3)?;
    at_once(bug, true, 3)?;
    delete_holder(bug, 4)?;
    delete_targets(bug)?;
    release_late(bug, 4)
}

#[test]
fn an_archived_holder_that_is_moved_is_held_throughout_whenever_the_process_dies() {
    alone(Bug::None).expect("nothing is broken");
}

/// As if each of two moves could rely on what it had read.
#[test]
fn an_archived_holder_that_two_move_at_once_holds_what_it_names_and_nothing_else() {
    for is_archived in [false, true] {
        at_once(Bug::None, is_archived, 1).expect("nothing is broken");
    }
}

#[test]
fn the_deletion_of_an_archived_holder_that_is_moved_leaves_no_reference_behind() {
    delete_holder(Bug::None, 1).expect("nothing is broken");
}

#[test]
fn an_archived_holder_that_is_moved_while_a_target_is_deleted_holds_what_it_names() {
    delete_targets(Bug::None).expect("nothing is broken");
}

/// As if a holder that has left for the archive named what it named before.
#[test]
fn a_late_release_takes_nothing_from_an_archived_holder_that_came_back() {
    release_late(Bug::None, 1).expect("nothing is broken");
}

/// A budget that is archived and names the first one of three targets.
pub(super) struct ArchivedBudget {
    pub(super) key: Key,
    pub(super) uid: String,
    reference: String,
    field: &'static str,
    pub(super) targets: [Key; 3],
}

impl ArchivedBudget {
    pub(super) fn create(world: &mut World, kind: &str, field: &'static str, is_archived: bool) -> Self {
        let targets = ["a", "b", "c"].map(|name| world.services.key(kind, name));
        for target in &targets {
            world.create(target.clone(), BTreeMap::new(), false, false);
            if is_archived {
                archive(world, target);
            }
        }
        let key = world.services.key("Budget", "a");
        let named = BTreeMap::from([(field, "a".to_owned())]);
        world.create(key.clone(), named, false, false);
        let found = &world.servers.objects[&key];
        let (uid, reference) = (found.uid.clone(), found.reference());
        archive(world, &key);
        world.renew_reference(&targets[0], &reference).expect("it is there");
        Self {
            key,
            uid,
            reference,
            field,
            targets,
        }
    }

    pub(super) fn begin_moving(&self, world: &World, target: usize) -> ArchivedMove {
        ArchivedMove::new(world, &self.key, self.field, &self.targets[target])
    }

    /// A move to what it names already, after which it lacks nothing, whoever died before.
    fn move_again(&self, world: &mut World, bug: Bug) -> Result<(), String> {
        let name = &world.archives.rows[&self.uid].object.named[self.field];
        let target = self.targets.iter().position(|target| *target.name == **name);
        let mut moving = self.begin_moving(world, target.expect("one of these"));
        let ended = send(&mut moving, world, REQUESTS_MAX, bug);
        match ended == Some(Ended::Moved) && self.is_held_there(world) {
            true => Ok(()),
            false => Err(format!("{} lacks a reference after it was moved again", self.key)),
        }
    }

    /// Whether it names the first one of its targets.
    pub(super) fn names_first(&self, world: &World) -> bool {
        *world.archives.rows[&self.uid].object.named[self.field] == *self.targets[0].name
    }

    /// Whether what it names has its reference.
    fn is_held_there(&self, world: &World) -> bool {
        let name = &world.archives.rows[&self.uid].object.named[self.field];
        let mut targets = self.targets.iter();
        targets.any(|target| *target.name == **name && world.has_reference(target, &self.reference))
    }
}

fn archive(world: &mut World, key: &Key) {
    let object = world.servers.objects.remove(key).expect("it is there");
    world.archives.add(object);
}

/// So many requests of a move. How it ended, if it did.
pub(super) fn send(moving: &mut ArchivedMove, world: &mut World, requests: usize, bug: Bug) -> Option<Ended> {
    (0..requests).find_map(|_| moving.send(world, bug))
}

/// Nobody else moves the budget, and the process dies after any of its requests.
fn alone(bug: Bug) -> Result<(), String> {
    for (is_archived, requests) in [false, true]
        .into_iter()
        .flat_map(|is| (0..=REQUESTS).map(move |at| (is, at)))
    {
        let mut world = World::new(false);
        let budget = ArchivedBudget::create(&mut world, "Project", "project", is_archived);
        let mut moving = budget.begin_moving(&world, 1);
        let mut ended = None;
        for _ in 0..requests {
            ended = ended.or_else(|| moving.send(&mut world, bug));
            if !budget.is_held_there(&world) {
                return Err(format!(
                    "{} is not held where it is, after {requests} requests",
                    budget.key
                ));
            }
        }
        if ended.is_none() {
            moving.die(&mut world);
        }
        world.holds_what_it_names(&budget.uid)?;
        budget.move_again(&mut world, bug)?;
        if requests == REQUESTS && ended != Some(Ended::Moved) {
            return Err(format!("the move of {} does not end: {ended:?}", budget.key));
        }
    }
    Ok(())
}

/// The next requests of a move that is not over.
pub(super) fn go_on(moving: &mut Option<ArchivedMove>, world: &mut World, requests: usize, bug: Bug) {
    let ended = moving.as_mut().and_then(|moving| send(moving, world, requests, bug));
    if ended.is_some() {
        *moving = None;
    }
}

/// Two move the budget, to other targets, back, or to the same one. One of them stands still after any of its requests
/// while the other one sends some, and goes on with one. After that, one of them may die. Of the other one's requests,
/// each `stride`-th one is a moment at which it stands still.
fn at_once(bug: Bug, is_archived: bool, stride: usize) -> Result<(), String> {
    for targets in [[1, 2], [1, 0], [1, 1]] {
        for first in 0..=REQUESTS {
            for second in (0..=REQUESTS).step_by(stride) {
                for dying in [None, Some(0), Some(1)] {
                    let mut world = World::new(false);
                    let budget = ArchivedBudget::create(&mut world, "Project", "project", is_archived);
                    let mut moves = targets.map(|target| Some(budget.begin_moving(&world, target)));
                    for (at, requests) in [(0, first), (1, second), (0, 1)] {
                        go_on(&mut moves[at], &mut world, requests, bug);
                    }
                    if let Some(moving) = dying.and_then(|at: usize| moves[at].take()) {
                        moving.die(&mut world);
                    }
                    for moving in moves.iter_mut().rev() {
                        go_on(moving, &mut world, REQUESTS_MAX, bug);
                    }
                    let when = format!("to {targets:?}, after {first} and {second} requests, {dying:?} dies");
                    if moves.iter().any(Option::is_some) {
                        return Err(format!("{when}: a move does not end"));
                    }
                    let held = world.holds_what_it_names(&budget.uid);
                    let held = held.and_then(|()| budget.move_again(&mut world, bug));
                    held.map_err(|rule| format!("{when}: {rule}"))?;
                }
            }
        }
    }
    Ok(())
}

/// One of the targets is deleted after any request of a move.
fn delete_targets(bug: Bug) -> Result<(), String> {
    for victim in [0, 1] {
        for requests in 0..=REQUESTS {
            let mut world = World::new(false);
            let budget = ArchivedBudget::create(&mut world, "Project", "project", false);
            let mut moving = Some(budget.begin_moving(&world, 1));
            go_on(&mut moving, &mut world, requests, bug);
            world.delete(&budget.targets[victim]).expect("it is there");
            go_on(&mut moving, &mut world, REQUESTS_MAX, bug);
            let held = world.holds_what_it_names(&budget.uid);
            held.map_err(|rule| format!("{} is deleted after {requests}: {rule}", budget.targets[victim]))?;
        }
    }
    Ok(())
}

/// Services that hold objects of each other out of the archive.
pub(super) fn across() -> Play {
    let mut play = calm(true);
    play.world.archives.across = true;
    // The first ones did not know of this.
    play.controllers.clear();
    play.employ();
    play
}

/// The budget holds a cluster of another service, and is deleted after any request of a move. Its service visits the
/// tombstone, and does so to the end once the move is over. Each `stride`-th request of that is a moment at which it
/// stands still.
fn delete_holder(bug: Bug, stride: usize) -> Result<(), String> {
    for requests in 0..=REQUESTS {
        for visits in (0..=VISITS).step_by(stride) {
            let mut play = across();
            let budget = ArchivedBudget::create(&mut play.world, "Cluster", "cluster", false);
            let at = play.at_service(&budget.key);
            let mut moving = Some(budget.begin_moving(&play.world, 1));
            go_on(&mut moving, &mut play.world, requests, bug);
            play.world.drop_row(&budget.uid);
            for _ in 0..visits {
                play.controllers[at].walk(&mut play.world, 0, bug);
            }
            go_on(&mut moving, &mut play.world, REQUESTS_MAX, bug);
            for _ in 0..VISITS_MAX {
                if play.world.archives.is_archived(&budget.uid) {
                    play.controllers[at].walk(&mut play.world, 0, bug);
                }
            }
            play.hold()?;
            if play.world.archives.is_archived(&budget.uid) {
                return Err(format!("{} never goes", budget.key));
            }
            let held = play.world.holds_what_it_names(&budget.uid);
            held.map_err(|rule| format!("after {requests} requests and {visits} of a walk: {rule}"))?;
        }
    }
    Ok(())
}

/// A live budget was moved to another cluster, and a process that releases the former one stands still after its first
/// decision, or before its last request. The budget leaves for the archive, and comes back there. Each `stride`-th
/// request of that move is a moment at which the process goes on with some of its own.
fn release_late(bug: Bug, stride: usize) -> Result<(), String> {
    for sent in [0, RELEASE_REQUESTS - 1] {
        for moved in (0..=REQUESTS).step_by(stride) {
            for late in 0..=LATE {
                let come_back = come_back_archived(bug, sent, moved, late);
                come_back.map_err(|rule| format!("{sent} requests, {late} after {moved} of the move: {rule}"))?;
            }
        }
    }
    Ok(())
}

fn come_back_archived(bug: Bug, sent: usize, moved: usize, late: usize) -> Result<(), String> {
    let mut play = across();
    let [old, new] = ["a", "b"].map(|name| play.with("Cluster", name, &[]));
    let budget = play.with("Budget", "a", &[("cluster", "a")]);
    play.settle()?;
    play.move_to(&budget, "cluster", "b", Bug::None)?;
    let at = play.begin_release(&budget, &new, sent)?;
    if !play.controllers[at].has_requests() {
        return Err(format!("{old} is not released"));
    }
    let next = Controller::new(&play.world, &budget.kind.group, bug);
    let mut superseded = std::mem::replace(&mut play.controllers[at], next);
    let uid = play.world.servers.objects[&budget].uid.clone();
    let written = play.world.write(&budget, None, None, |budget| {
        (budget.immutable, budget.terminating) = (true, true);
    });
    written.expect("it is there");
    play.settle()?;
    if !play.world.archives.is_archived(&uid) {
        return Err(format!("{budget} stays in the cluster"));
    }
    let mut moving = Some(ArchivedMove::new(&play.world, &budget, "cluster", &old));
    go_on(&mut moving, &mut play.world, moved, bug);
    for _ in 0..late {
        superseded.send(&mut play.world, 0, false, true, bug);
    }
    go_on(&mut moving, &mut play.world, REQUESTS_MAX, bug);
    while superseded.has_requests() {
        superseded.send(&mut play.world, 0, false, true, bug);
    }
    play.hold()?;
    play.world.holds_what_it_names(&uid)
}
