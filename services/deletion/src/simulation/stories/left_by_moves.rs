//! References that moves of an archived holder have left on its former target, live or archived, of its own service or
//! of another one: they go once that is deleted. Meanwhile somebody moves the holder back, or to what has the name by
//! then.

use std::time::Duration;

use super::archived_moves::{ArchivedBudget, REQUESTS, REQUESTS_MAX, across, go_on, send};
use crate::object::Key;
use crate::simulation::world::World;
use crate::simulation::{Bug, Controller, Play};

/// A kind of former targets, the field that names them, and whether they are archived.
type Former = (&'static str, &'static str, bool);

/// Those of the holder's own service, and of another one.
const FORMER: [Former; 4] = [
    ("Project", "project", false),
    ("Project", "project", true),
    ("Cluster", "cluster", false),
    ("Cluster", "cluster", true),
];
/// Of a move, up to the write of the field: the holder is read, the reference is placed, and all three are read.
const WRITTEN: usize = 4;
/// Turns of single controllers within which a reference that was left is released.
const TURNS: usize = 96;

/// All of these, at some of the moments.
pub(in super::super) fn all(bug: Bug) -> Result<(), String> {
    delete_former(bug)?;
    come_back(bug, 24)?;
    take_the_name(bug)
}

/// As if nobody found what a move has left that died early: the former target would wait for ever.
#[test]
fn the_former_target_of_an_archived_holder_goes_once_it_is_deleted_whenever_the_process_dies() {
    delete_former(Bug::None).expect("nothing is broken");
}

/// As if the field could be written that names the former target after its reference there was released.
#[test]
fn an_archived_holder_that_is_moved_back_while_its_former_target_is_deleted_holds_it_or_names_it_no_more() {
    come_back(Bug::None, 3).expect("nothing is broken");
}

/// As if a request that was held back for long were meant for whatever has the name by then.
#[test]
fn a_late_release_takes_nothing_from_what_has_the_name_of_the_former_target_by_then() {
    take_the_name(Bug::None).expect("nothing is broken");
}

/// A budget is archived and names the first one of its targets.
fn archived((kind, field, is_archived): Former, bug: Bug) -> Result<(Play, ArchivedBudget), String> {
    let mut play = across();
    play.bug = bug;
    let budget = ArchivedBudget::create(&mut play.world, kind, field, is_archived);
    play.settle()?;
    Ok((play, budget))
}

/// It is moved to the second one, and the process dies after so many requests.
fn move_in_part(world: &mut World, budget: &ArchivedBudget, requests: usize, bug: Bug) {
    let mut moving = budget.begin_moving(world, 1);
    if send(&mut moving, world, requests, bug).is_none() {
        moving.die(world);
    }
}

/// A user deletes the first one.
fn delete_first(play: &mut Play, budget: &ArchivedBudget) {
    let former = &budget.targets[0];
    let uid = play.world.find_object(former).expect("it is there").object.uid;
    match play.world.archives.is_archived(&uid) {
        true => play.world.drop_row(&uid),
        false => play.delete(former),
    }
}

/// Once everybody rests, the first one is there if the budget names it, and has gone if it does not.
fn rests(play: &mut Play, budget: &ArchivedBudget) -> Result<(), String> {
    play.settle()?;
    let (former, is_named) = (&budget.targets[0], budget.names_first(&play.world));
    match play.world.find_object(former).is_some() == is_named {
        true => play.world.holds_what_it_names(&budget.uid),
        false => Err(format!(
            "{former} is held wrongly: that the budget names it is {is_named}"
        )),
    }
}

/// The former target is deleted after the process that moves the budget has died.
fn delete_former(bug: Bug) -> Result<(), String> {
    for former in FORMER {
        for requests in 0..=REQUESTS {
            let (mut play, budget) = archived(former, bug)?;
            move_in_part(&mut play.world, &budget, requests, bug);
            delete_first(&mut play, &budget);
            rests(&mut play, &budget).map_err(|rule| format!("{former:?}, after {requests} requests: {rule}"))?;
        }
    }
    Ok(())
}

/// Controllers take turns, each with one request for what is live and one for what is archived.
fn take_turns(play: &mut Play, turns: usize) -> Result<(), String> {
    for turn in 0..turns {
        let keys: Vec<Key> = play.world.servers.objects.keys().cloned().collect();
        keys.iter().for_each(|key| play.world.others(key, true));
        play.world.remove_outside();
        let at = turn % play.controllers.len();
        play.controllers[at].wait(Duration::from_secs(1));
        play.little(at);
        play.controllers[at].walk(&mut play.world, 0, play.bug);
    }
    play.hold()
}

/// A move has left its reference on the former target. Somebody moves the budget back, and stands still around the
/// write of the field while that target is deleted: for some turns, of which each `stride`-th one counts, or until all
/// that can go has gone.
fn come_back(bug: Bug, stride: usize) -> Result<(), String> {
    for former in FORMER {
        for requests in 1..=WRITTEN {
            for turns in (0..=TURNS).step_by(stride).map(Some).chain([None]) {
                let (mut play, budget) = archived(former, bug)?;
                move_in_part(&mut play.world, &budget, WRITTEN, bug);
                let mut moving = Some(budget.begin_moving(&play.world, 0));
                go_on(&mut moving, &mut play.world, requests, bug);
                delete_first(&mut play, &budget);
                match turns {
                    Some(turns) => take_turns(&mut play, turns)?,
                    None => play.settle()?,
                }
                go_on(&mut moving, &mut play.world, REQUESTS_MAX, bug);
                let when = format!("{former:?}, {requests} requests and {turns:?} turns");
                if moving.is_some() {
                    return Err(format!("{when}: the move does not end"));
                }
                rests(&mut play, &budget).map_err(|rule| format!("{when}: {rule}"))?;
            }
        }
    }
    Ok(())
}

/// A process stands still right before it releases at another service what a move has left on a cluster there. Another
/// process does so, the cluster goes, and the budget is moved to a new one of that name.
fn take_the_name(bug: Bug) -> Result<(), String> {
    let (mut play, budget) = archived(("Cluster", "cluster", false), bug)?;
    move_in_part(&mut play.world, &budget, WRITTEN, bug);
    let former = budget.targets[0].clone();
    let version = |play: &Play| play.world.archives.rows[&budget.uid].object.version;
    let (at, before) = (play.at_service(&budget.key), version(&play));
    play.delete(&former);
    for _ in 0..TURNS {
        if version(&play) > before {
            break;
        }
        let of_cluster = play.at_service(&former);
        play.little(of_cluster);
        play.little(at);
    }
    if version(&play) == before {
        return Err(format!(
            "{} is not written before its reference is released",
            budget.key
        ));
    }
    let next = Controller::new(&play.world, &budget.key.kind.group, bug);
    let mut superseded = std::mem::replace(&mut play.controllers[at], next);
    play.settle()?;
    if play.world.find_object(&former).is_some() {
        return Err(format!("{former} does not go"));
    }
    play.with("Cluster", &former.name, &[]);
    play.settle()?;
    let mut moving = Some(budget.begin_moving(&play.world, 0));
    go_on(&mut moving, &mut play.world, REQUESTS_MAX, bug);
    if !budget.names_first(&play.world) {
        return Err(format!("{} is not moved to the new {former}", budget.key));
    }
    while superseded.has_requests() {
        superseded.send(&mut play.world, 0, false, true, bug);
    }
    play.hold()?;
    play.world.holds_what_it_names(&budget.uid)
}
