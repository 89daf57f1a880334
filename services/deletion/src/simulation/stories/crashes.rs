//! Processes that die between two steps of a deletion. Whoever comes after them knows what the cluster has, and goes on
//! from there: nothing is left out, and nothing done twice.

use std::collections::BTreeMap;

use kindex_model::deletion::Phase;

use super::calm;
use crate::decide::{Step, Wait};
use crate::object::Key;
use crate::simulation::world::Event;
use crate::simulation::{Bug, Controller, Play};

/// Requests that follow from one decision on each of two objects, at most.
const DECIDED_MAX: usize = 16;
/// Turns within which a deleted object reaches DRAINING.
const DRAINING_MAX: usize = 400;
/// Rounds within which everything goes that nothing holds.
const ROUNDS: usize = 10;

impl Play {
    /// A controller hears one report of each kind, decides once and sends one request.
    pub(super) fn little(&mut self, at: usize) {
        let controller = &mut self.controllers[at];
        for kind in controller.kinds() {
            controller.hear(&self.world, &kind, None, self.bug);
        }
        controller.decide(0, self.bug);
        controller.send(&mut self.world, 0, false, true, self.bug);
    }

    /// A controller hears of everything and decides on everything, and sends nothing.
    fn decide_alone(&mut self, at: usize) {
        let controller = &mut self.controllers[at];
        for kind in controller.kinds() {
            controller.hear_all(&self.world, &kind, self.bug);
        }
        for _ in 0..self.world.servers.objects.len() {
            controller.decide(0, self.bug);
        }
    }

    /// One controller works alone, request by request, until something is so.
    pub(super) fn work_until(&mut self, at: usize, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..400 {
            if is_so(self) {
                return;
            }
            self.little(at);
        }
        panic!("it never is");
    }

    /// A process dies with all that it knows and has under way, and another one begins.
    pub(super) fn crash(&mut self, at: usize) {
        let group = self.controllers[at].group().to_owned();
        self.controllers[at] = Controller::new(&self.world, &group, self.bug);
    }

    pub(super) fn at_service(&self, of: &Key) -> usize {
        let mut controllers = self.controllers.iter();
        let at = controllers.position(|controller| controller.group() == of.kind.group);
        at.expect("a controller")
    }

    /// The writes to an object since a version that changed nothing of it.
    pub(super) fn needless_writes(&self, key: &Key, since: u64) -> usize {
        let log = self.world.servers.log.get(&key.kind).into_iter().flatten();
        let written: Vec<_> = log
            .filter_map(|event| match event {
                Event::Applied(object) if object.key == *key && object.version > since => {
                    Some((object.terminating, object.phase, &object.finalizers))
                }
                Event::Applied(_) | Event::Archived(_) | Event::Deleted(..) => None,
            })
            .collect();
        written.windows(2).filter(|two| two[0] == two[1]).count()
    }
}

/// Between the deletion of a project and the reports of it, and after any number of steps that follow.
#[test]
fn a_deletion_that_is_stored_before_a_crash_is_heard_of_after_it_and_recorded_once() {
    for steps in 0..40 {
        let mut play = calm(true);
        let project = play.with("Project", "a", &[]);
        let identity = play.with("Identity", "a", &[("project", "a")]);
        let network = play.with("Network", "a", &[("identity", "a")]);
        play.settled();
        let before = play.world.servers.version;
        play.delete(&project);
        let all = 0..play.controllers.len();
        for _ in 0..steps {
            all.clone().for_each(|at| play.little(at));
        }
        all.for_each(|at| play.crash(at));
        play.settled();
        for key in [&network, &identity, &project] {
            assert!(play.erased(key), "{steps}: {key}");
            assert_eq!(play.needless_writes(key, before), 0, "{steps}: {key}");
        }
    }
}

/// As if what was decided before somebody else went on overwrote what that one has done, or were done once more.
#[test]
fn what_a_process_decided_before_another_one_took_over_changes_nothing_any_more() {
    superseded(Bug::None).expect("nothing is broken");
}

/// A process knows that nothing refers to a cluster any more, or anything else that leads to a step, and stands still
/// before it has written that. Another one takes over, and is at any point when the first one goes on.
pub(in super::super) fn superseded(bug: Bug) -> Result<(), String> {
    for steps in 0..40 {
        for later in [0, 1, 2, 4, 8, 16, 32] {
            take_over(bug, steps, later).map_err(|rule| format!("after {steps} steps and {later} more: {rule}"))?;
        }
    }
    Ok(())
}

fn take_over(bug: Bug, steps: usize, later: usize) -> Result<(), String> {
    let mut play = calm(false);
    let cluster = play.with("Cluster", "a", &[]);
    let budget = play.with("Budget", "a", &[("cluster", "a")]);
    play.settled();
    play.bug = bug;
    let before = play.world.servers.version;
    play.delete(&cluster);
    play.delete(&budget);
    for _ in 0..steps {
        play.little(0);
        play.hold()?;
    }
    play.decide_alone(0);
    let group = play.controllers[0].group().to_owned();
    let next = Controller::new(&play.world, &group, bug);
    let mut superseded = std::mem::replace(&mut play.controllers[0], next);
    for _ in 0..later {
        play.little(0);
        play.hold()?;
    }
    for _ in 0..DECIDED_MAX {
        superseded.send(&mut play.world, 0, false, true, bug);
        play.hold()?;
    }
    play.settle()?;
    for key in [&budget, &cluster] {
        if !play.erased(key) {
            return Err(format!("{key} stays"));
        }
        if play.needless_writes(key, before) > 0 {
            return Err(format!("{key} is written again, and nothing of it changes"));
        }
    }
    play.hold()
}

/// A server of the cluster `a`, which takes its time to go.
fn server(play: &mut Play, name: &str) -> Key {
    let key = play.world.services.key("Server", name);
    let named = BTreeMap::from([("cluster", "a".to_owned())]);
    play.world.create(key.clone(), named, true, false);
    key
}

/// Of five servers, two are deleted and take their time when the process dies.
#[test]
fn a_crash_while_an_owner_drains_leaves_out_nobody_and_deletes_nobody_twice() {
    let mut play = calm(false);
    let cluster = play.with("Cluster", "a", &[]);
    let servers = ["a", "b", "c", "d", "e"].map(|name| server(&mut play, name));
    play.settled();
    let going = |play: &Play| {
        let left = servers
            .iter()
            .filter_map(|server| play.world.servers.objects.get(server));
        left.filter(|server| server.terminating).count()
    };
    let before = play.world.servers.version;
    play.delete(&cluster);
    play.work_until(0, |play| going(play) == 2);
    assert_eq!(play.phase(&cluster), Some(Phase::Draining));
    play.crash(0);
    play.drain_queue(0).expect("nothing is broken");
    assert_eq!(going(&play), 5, "the other three follow");
    let Step::Wait(Wait::Owned(references, _)) = play.decided(&cluster) else {
        panic!("it waits for all of them");
    };
    assert_eq!(references.len(), 5);
    for server in &servers {
        assert_eq!(play.needless_writes(server, before), 0, "{server}");
    }
    play.settled();
    assert!(servers.iter().chain([&cluster]).all(|key| play.erased(key)));
}

/// As if only those were waited for whose references are there.
#[test]
fn what_is_created_while_its_owner_drains_goes_before_that_whenever_the_process_dies() {
    created_while_draining(Bug::None).expect("nothing is broken");
}

/// A cluster drains, and a server of it is created, which can place no reference any more. After any number of turns,
/// the process dies.
pub(in super::super) fn created_while_draining(bug: Bug) -> Result<(), String> {
    for turns in 0..40 {
        create_late(bug, turns).map_err(|rule| format!("after {turns} turns: {rule}"))?;
    }
    Ok(())
}

fn create_late(bug: Bug, turns: usize) -> Result<(), String> {
    let mut play = calm(false);
    let network = play.with("Network", "a", &[]);
    let cluster = play.with("Cluster", "a", &[("network", "a")]);
    let early = server(&mut play, "a");
    play.settled();
    play.bug = bug;
    let before = play.world.servers.version;
    play.delete(&cluster);
    let drains = |play: &Play| {
        let found = play.world.servers.objects.get(&cluster);
        found.is_some_and(|found| found.phase == Some(Phase::Draining))
    };
    for _ in 0..DRAINING_MAX {
        if drains(&play) {
            break;
        }
        play.little(0);
        play.hold()?;
    }
    let cluster_uid = play.world.servers.objects.get(&cluster).map(|found| found.uid.clone());
    let late = server(&mut play, "b");
    let late_uid = play.world.servers.objects[&late].uid.clone();
    for _ in 0..turns {
        play.little(0);
        play.hold()?;
    }
    play.crash(0);
    // All but the late one get what they wait for.
    for _ in 0..ROUNDS {
        for key in [&network, &cluster, &early] {
            play.world.others(key, true);
        }
        play.world.remove_outside();
        play.drain_queue(0)?;
    }
    let goes = play
        .world
        .servers
        .objects
        .get(&late)
        .is_some_and(|late| late.terminating);
    if !goes || !drains(&play) || !play.erased(&early) {
        return Err(format!("{cluster} does not drain until {late} has gone along"));
    }
    play.settle()?;
    let ends = &play.world.judge.ends;
    let cluster_end = cluster_uid.and_then(|uid| ends.get(&uid));
    if ends.get(&late_uid).is_none_or(|end| Some(end) >= cluster_end) {
        return Err(format!("{late} was not through before {cluster}"));
    }
    for key in [&early, &late, &cluster] {
        if !play.erased(key) || play.needless_writes(key, before) > 0 {
            return Err(format!("{key} stays, or is written again and nothing of it changes"));
        }
    }
    play.hold()
}

/// A budget that holds three, and is through.
fn holder_of_three(play: &mut Play) -> (Key, [Key; 3]) {
    let projects = ["a", "b"].map(|name| play.with("Project", name, &[]));
    let cluster = play.with("Cluster", "a", &[]);
    let budget = play.with("Budget", "a", &[("project", "a"), ("cluster", "a")]);
    play.settled();
    let reference = play.world.servers.objects[&budget].reference();
    play.delete(&budget);
    // Somebody has placed the third one by hand.
    let placed = play
        .world
        .write(&projects[1], None, None, |project| project.finalizers.push(reference));
    placed.expect("it is there");
    let [one, other] = projects;
    (budget, [one, other, cluster])
}

fn held(play: &Play, budget: &Key, targets: &[Key; 3]) -> usize {
    let Some(budget) = play.world.servers.objects.get(budget) else {
        return 0;
    };
    let targets = targets
        .iter()
        .filter_map(|target| play.world.servers.objects.get(target));
    targets
        .filter(|target| target.has_finalizer(&budget.reference()))
        .count()
}

#[test]
fn a_crash_between_two_releases_leaves_no_reference_behind() {
    for left in [2, 1] {
        let mut play = calm(true);
        let (budget, targets) = holder_of_three(&mut play);
        let (before, at) = (play.world.servers.version, play.at_service(&budget));
        let reference = play.world.servers.objects[&budget].reference();
        play.work_until(at, |play| held(play, &budget, &targets) == left);
        assert_eq!(play.phase(&budget), Some(Phase::Finalizing));
        play.crash(at);
        play.settled();
        assert!(play.erased(&budget), "{left}");
        for target in &targets {
            assert!(
                !play.world.servers.objects[target].has_finalizer(&reference),
                "{left}: {target}"
            );
            assert_eq!(play.needless_writes(target, before), 0, "{left}: {target}");
        }
    }
}

/// The service of one target is down, and the target has gone by force before it is back.
#[test]
fn a_release_waits_for_a_service_that_is_down_and_a_target_that_is_gone_counts_as_released() {
    for is_gone in [false, true] {
        let mut play = calm(true);
        let (budget, targets) = holder_of_three(&mut play);
        let (cluster, at) = (&targets[2], play.at_service(&budget));
        play.world.servers.down = Some(cluster.kind.group.to_string());
        play.drain_queue(at).expect("nothing is broken");
        assert_eq!(play.phase(&budget), Some(Phase::Finalizing));
        assert!(!play.erased(&budget) && held(&play, &budget, &targets) > 0);
        play.crash(at);
        play.world.servers.down = None;
        if is_gone {
            play.erase_by_force(cluster);
        }
        play.settled();
        assert!(play.erased(&budget) && play.erased(cluster) == is_gone);
    }
}
