//! Single stories on the same ground, each with the end that the order of deletion demands.

use std::collections::BTreeMap;

use kindex_model::deletion::Phase;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

mod absent;

pub(super) mod blocked;

mod by_hand;

mod clocks;

pub(super) mod crashes;

mod cycles;

pub(super) mod deleters;

mod early;

mod every_request;

pub(super) mod freed;

pub(super) mod holds;

pub(super) mod lost;

pub(super) mod moves;

pub(super) mod archived_moves;

pub(super) mod left_by_moves;

mod redelivered;

pub(super) mod restored;

mod sql_only;

pub(super) mod together;

pub(super) mod tombstones;

use super::mover::{Ended, Move};
use super::world::{Event, fields};
use super::{Bug, Play, Setting, action};
use crate::decide::{CleanupState, HolderLocation, Step, Wait};
use crate::object::Key;

/// Services in which nothing goes wrong.
fn calm(divided: bool) -> Play {
    let setting = Setting {
        twofold: false,
        meddling: false,
        archiving: false,
    };
    let random = Xoshiro256PlusPlus::seed_from_u64(0);
    Play::of(random, divided, setting, action::SMALL, Bug::None)
}

impl Play {
    fn with(&mut self, kind: &str, name: &str, named: &[(&'static str, &str)]) -> Key {
        let key = self.world.services.key(kind, name);
        let named: BTreeMap<_, _> = named.iter().map(|(field, name)| (*field, (*name).to_owned())).collect();
        self.world.create(key.clone(), named, false, false);
        key
    }

    fn settled(&mut self) {
        self.settle().expect("everybody rests");
    }

    fn delete(&mut self, key: &Key) {
        let deleted = self.world.write(key, None, None, |object| {
            (object.terminating, object.asked) = (true, true);
        });
        deleted.expect("it is there");
    }

    /// What was erased, as the log of each kind reports it, in order of kinds that do not wait for each other.
    fn erased(&self, key: &Key) -> bool {
        let log = self.world.servers.log.get(&key.kind).into_iter().flatten();
        log.into_iter()
            .any(|event| matches!(event, Event::Deleted(gone, _) if gone == key))
    }

    fn phase(&self, key: &Key) -> Option<Phase> {
        self.world.servers.objects[key].phase
    }

    /// What a controller of its service decides on an object.
    fn decided(&self, key: &Key) -> Step {
        let mut own = self.controllers.iter().filter(|one| one.group() == key.kind.group);
        let graph = &own.next().expect("a controller").graph;
        crate::decide::decide(&graph.input(key, CleanupState::Gone).expect("it is known"))
    }
}

/// The graph of a project: a cluster on a network and a server group, which are of a cloud identity.
fn project(play: &mut Play) -> [Key; 5] {
    let project = play.with("Project", "a", &[]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    let group = play.with("Group", "a", &[("identity", "a")]);
    let cluster = play.with("Cluster", "a", &[("network", "a"), ("group", "a")]);
    play.settled();
    [cluster, network, group, identity, project]
}

#[test]
fn a_project_goes_after_its_cluster_network_server_group_and_identity() {
    for divided in [false, true] {
        let mut play = calm(divided);
        let keys = project(&mut play);
        play.delete(&keys[4]);
        let mut order = Vec::new();
        for _ in 0..200 {
            play.round().expect("nothing is broken");
            for key in &keys {
                if play.erased(key) && !order.contains(key) {
                    order.push(key.clone());
                }
            }
        }
        let at = |key: &Key| order.iter().position(|gone| gone == key).expect("it went");
        let [cluster, network, group, identity, project] = keys.each_ref().map(at);
        assert_eq!(cluster, 0, "{order:?}");
        assert!(network.max(group) < identity && identity < project, "{order:?}");
    }
}

#[test]
fn of_three_holders_the_last_one_is_named() {
    let mut play = calm(false);
    let project = play.with("Project", "a", &[]);
    let budgets = ["a", "b", "c"].map(|name| play.with("Budget", name, &[("project", "a")]));
    play.settled();
    play.delete(&project);
    play.settled();
    for gone in &budgets[..2] {
        play.delete(gone);
        play.settled();
        assert!(play.erased(gone));
    }
    assert_eq!(play.phase(&project), Some(Phase::Deleting));
    let Step::Wait(Wait::Holders(references, _)) = play.decided(&project) else {
        panic!("it waits");
    };
    assert_eq!(references.len(), 1);
    assert_eq!(references[0].at, HolderLocation::Seen(budgets[2].clone()));
    play.delete(&budgets[2]);
    play.settled();
    assert!(play.erased(&project));
}

#[test]
fn an_object_that_names_itself_holds_nothing() {
    let mut play = calm(false);
    let tree = play.with("Tree", "a", &[("parent", "a")]);
    play.settled();
    assert_eq!(play.world.servers.objects[&tree].references().count(), 0);
    play.delete(&tree);
    play.settled();
    assert!(play.erased(&tree));
}

#[test]
fn what_moved_before_its_old_target_is_deleted_stays() {
    let mut play = calm(true);
    let old = play.with("Identity", "a", &[]);
    let new = play.with("Identity", "b", &[]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    play.settled();
    let moved = play.world.write(&network, None, None, |network| {
        network.named.insert("identity", "b".to_owned());
    });
    moved.expect("it is there");
    play.settled();
    play.delete(&old);
    play.settled();
    assert!(play.erased(&old) && !play.erased(&network));
    let reference = play.world.servers.objects[&network].reference();
    assert!(play.world.servers.objects[&new].has_finalizer(&reference));
}

/// A move was given up once it had placed the reference. While the controller releases that one again, somebody begins
/// anew, request by request.
pub(super) fn move_again(seed: u64, bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    play.with("Project", "a", &[]);
    play.with("Project", "b", &[]);
    let budget = play.with("Budget", "a", &[("project", "a")]);
    play.settle()?;
    (play.random, play.bug) = (Xoshiro256PlusPlus::seed_from_u64(seed), bug);
    let field = fields("Budget").find(|field| field.name == "project").expect("a field");
    let begin = |play: &Play| Move::begin(&play.world, &budget, field, "b").expect("all are there");
    begin(&play).send(&mut play.world, true, Bug::None);
    let (mut moving, mut ended): (Option<Move>, _) = (None, None);
    for _ in 0..200 {
        match play.random.random_range(0..8) {
            0 => match &mut moving {
                None => moving = Some(begin(&play)),
                Some(moving) if ended.is_none() => ended = moving.send(&mut play.world, true, bug),
                Some(_) => {}
            },
            1..4 => {
                let kind = play.any_watched(0);
                play.controllers[0].hear(&play.world, &kind, None, bug);
            }
            4..6 => play.controllers[0].decide(0, bug),
            _ => play.controllers[0].send(&mut play.world, 0, false, true, bug),
        }
        play.hold()?;
    }
    play.bug = Bug::None;
    play.settle()
}

/// All orders of a move, of a release that has been decided already, and of the deletion of one of the three.
#[test]
fn a_move_and_a_deletion_end_with_one_of_them_refused_or_the_new_target_held() {
    for (seed, victim) in (0..400).flat_map(|seed| ["old", "new", "holder"].map(|victim| (seed, victim))) {
        let mut play = calm(seed % 2 == 0);
        let old = play.with("Project", "a", &[]);
        let new = play.with("Project", "b", &[]);
        let budget = play.with("Budget", "a", &[("project", "a")]);
        play.settled();
        play.random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let field = fields("Budget").find(|field| field.name == "project").expect("a field");
        let mut moving = Move::begin(&play.world, &budget, field, "b").expect("all are there");
        let (mut ended, mut deleted) = (None, false);
        while ended.is_none() || !deleted {
            match play.random.random_range(0..4) {
                0 if ended.is_none() => ended = moving.send(&mut play.world, true, Bug::None),
                1 if !deleted && play.random.random_bool(0.3) => {
                    deleted = true;
                    play.delete(match victim {
                        "old" => &old,
                        "new" => &new,
                        _ => &budget,
                    });
                }
                _ => play.round().expect("nothing is broken"),
            }
        }
        play.settle()
            .unwrap_or_else(|rule| panic!("{seed} {victim} {ended:?}: {rule}"));
        let is_there = |key: &Key| play.world.servers.objects.contains_key(key);
        match (victim, ended) {
            ("holder", _) => assert!(!is_there(&budget) && is_there(&old) && is_there(&new), "{seed}"),
            ("old", Some(Ended::Moved)) => assert!(!is_there(&old) && is_there(&budget), "{seed}"),
            ("new", Some(Ended::Moved)) => {
                assert!(
                    is_there(&new) && is_there(&budget),
                    "{seed}: it is held: {:?}",
                    play.phase(&new)
                );
            }
            // What is refused has left nothing behind.
            ("new", _) => assert!(!is_there(&new) && is_there(&old), "{seed}"),
            _ => assert!(is_there(&old) && is_there(&budget), "{seed}"),
        }
        play.hold().expect("nothing is broken");
    }
}

#[test]
fn a_move_to_what_is_going_is_refused_and_the_old_target_stays_held() {
    let mut play = calm(false);
    let old = play.with("Project", "a", &[]);
    let new = play.with("Project", "b", &[]);
    let keeps = play.with("Budget", "b", &[("project", "b")]);
    let moved = play.with("Budget", "a", &[("project", "a")]);
    play.settled();
    play.delete(&new);
    play.settled();
    let written = play.world.write(&moved, None, None, |budget| {
        budget.named.insert("project", "b".to_owned());
    });
    written.expect("it is there");
    play.settled();
    assert!(matches!(play.decided(&moved), Step::Rest(refused) if refused.len() == 1));
    let reference = play.world.servers.objects[&moved].reference();
    assert!(
        play.world.servers.objects[&old].has_finalizer(&reference)
            && !play.world.servers.objects[&new].has_finalizer(&reference)
    );
    play.delete(&keeps);
    play.settled();
    assert!(play.erased(&new) && !play.erased(&moved));
}

#[test]
fn a_holder_under_the_name_of_another_does_not_hold_by_its_reference() {
    let mut play = calm(false);
    let project = play.with("Project", "a", &[]);
    let budget = play.with("Budget", "a", &[("project", "a")]);
    play.settled();
    let first = play.world.servers.objects[&budget].reference();
    let gone = play.world.write(&budget, None, None, |budget| {
        (budget.terminating, budget.asked) = (true, true);
        budget.finalizers.clear();
    });
    gone.expect("it is there");
    play.with("Budget", "a", &[("project", "a")]);
    play.settled();
    let second = play.world.servers.objects[&budget].reference();
    assert_ne!(first, second);
    let project = &play.world.servers.objects[&project];
    assert!(
        project.has_finalizer(&first) && project.has_finalizer(&second),
        "references do not lapse"
    );
}

#[test]
fn what_leaves_for_the_archive_takes_nothing_along_and_goes_on_holding() {
    let mut play = calm(false);
    let identity = play.with("Identity", "a", &[]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    let cluster = play.with("Cluster", "a", &[("network", "a")]);
    play.settled();
    let reference = play.world.servers.objects[&network].reference();
    let written = play
        .world
        .write(&network, None, None, |network| network.immutable = true);
    written.expect("it is there");
    play.settled();
    assert!(!play.erased(&network), "the cluster needs it");
    assert!(!play.world.servers.objects[&cluster].terminating);
    play.delete(&cluster);
    play.settled();
    assert!(play.erased(&cluster) && play.erased(&network));
    let found = &play.world.servers.objects[&identity];
    assert!(!found.has_finalizer(&reference), "etcd has no room for all of them");
    let mut rows = play.world.archives.references.iter();
    assert!(rows.any(|(held, name)| *held == found.uid && name.to_string() == reference));
    play.delete(&identity);
    play.settled();
    assert!(play.erased(&identity), "the network is deleted with it");
    assert!(play.world.archives.references.is_empty());
}

impl Play {
    fn evict(&mut self, key: &Key) {
        let written = self.world.write(key, None, None, |object| object.immutable = true);
        written.expect("it is there");
        self.settled();
        assert!(self.erased(key));
    }
}

/// An archived network that an archived cluster holds goes after that, and their identity last.
pub(super) fn hold_in_the_archive(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let identity = play.with("Identity", "a", &[]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    let cluster = play.with("Cluster", "a", &[("network", "a")]);
    play.settled();
    play.evict(&cluster);
    play.evict(&network);
    play.bug = bug;
    play.delete(&identity);
    play.settle()?;
    match play.erased(&identity) && play.world.archives.references.is_empty() {
        true => play.hold(),
        false => Err(format!("{identity} is held by {:?}", play.world.archives.references)),
    }
}

/// Somebody lets an archived network name another identity while its own one is deleted.
pub(super) fn change_in_the_archive(seed: u64, bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let identity = play.with("Identity", "a", &[]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    play.settle()?;
    play.evict(&network);
    (play.random, play.bug) = (Xoshiro256PlusPlus::seed_from_u64(seed), bug);
    play.delete(&identity);
    for _ in 0..160 {
        match play.random.random_range(0..32) {
            0 => play
                .world
                .change_archived(0, BTreeMap::from([("identity", "b".to_owned())])),
            1..16 => {
                let kind = play.any_watched(0);
                play.controllers[0].hear(&play.world, &kind, None, bug);
            }
            16..24 => play.controllers[0].decide(0, bug),
            _ => play.controllers[0].send(&mut play.world, 0, false, true, bug),
        }
        play.hold()?;
    }
    play.settle()
}

/// A report from before an object was erased comes after that, while what it referred to is deleted.
pub(super) fn hear_late(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    play.bug = bug;
    let project = play.with("Project", "a", &[]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    play.settle()?;
    play.delete(&identity);
    play.settle()?;
    play.delete(&project);
    let reports = play.world.servers.log[&identity.kind].len();
    for back in 1..=reports {
        play.controllers[0].hear(&play.world, &identity.kind, Some(back), bug);
    }
    play.settle()?;
    match play.erased(&project) {
        true => Ok(()),
        false => Err(format!("{project} waits for {identity}, which is gone")),
    }
}

/// Of two controllers, one records the first phase when the other one is further already.
pub(super) fn record_late(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    play.setting.twofold = true;
    play.controllers.clear();
    play.employ();
    let project = play.world.services.key("Project", "a");
    play.world.create(project.clone(), BTreeMap::new(), true, false);
    let budget = play.with("Budget", "a", &[("project", "a")]);
    play.settle()?;
    play.delete(&project);
    let slow = &mut play.controllers[0];
    slow.hear(&play.world, &project.kind, None, bug);
    for _ in 0..play.world.servers.objects.len() {
        slow.decide(0, bug);
    }
    play.delete(&budget);
    play.drain_queue(1)?;
    play.world.others(&budget, true);
    play.drain_queue(1)?;
    if play.phase(&project) != Some(Phase::Draining) {
        return Err(format!("{project} does not drain"));
    }
    play.controllers[0].send(&mut play.world, 0, false, false, bug);
    play.hold()
}
