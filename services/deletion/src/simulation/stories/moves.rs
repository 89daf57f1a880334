//! Fields that change while a controller knows little of what they name, or past the server that would refuse it, or
//! while a reference is being released.

use super::calm;
use crate::decide::{RefusalReason, Step, Wait};
use crate::object::Key;
use crate::simulation::mover::{Ended, Move};
use crate::simulation::world::fields;
use crate::simulation::{Bug, Controller, Play};

/// A live holder, what its fields name, and its former target are read, the holder is written, and then that target.
pub(super) const RELEASE_REQUESTS: usize = 4;

#[test]
fn a_holder_that_comes_back_is_held_there_before_it_is_released() {
    come_back(Bug::None).expect("nothing is broken");
}

impl Play {
    fn name(&mut self, holder: &Key, project: &str) {
        let written = self.world.write(holder, None, None, |holder| {
            holder.named.insert("project", project.to_owned());
        });
        written.expect("it is there");
    }

    fn has_reference(&self, target: &Key, holder: &Key) -> bool {
        self.world.servers.objects[target].has_finalizer(&self.world.servers.objects[holder].reference())
    }

    /// Whether a target that was deleted is there, and waits for a holder that is there.
    fn waits(&self, target: &Key, holder: &Key) -> bool {
        let objects = &self.world.servers.objects;
        let found = objects.get(target).zip(objects.get(holder));
        found.is_some_and(|(target, holder)| target.terminating && target.has_finalizer(&holder.reference()))
    }

    fn hear_all(&mut self, of: &Key) {
        for _ in 0..self.world.servers.log[&of.kind].len() {
            self.controllers[0].hear(&self.world, &of.kind, None, self.bug);
        }
    }
}

/// The answer to a release gets lost, and the field names that target again before anything is heard of it.
pub(in super::super) fn come_back(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let old = play.with("Project", "a", &[]);
    let new = play.with("Project", "b", &[]);
    let budget = play.with("Budget", "a", &[("project", "a")]);
    play.settle()?;
    play.bug = bug;
    play.name(&budget, "b");
    for _ in 0..40 {
        if !play.has_reference(&old, &budget) {
            break;
        }
        play.hear_all(&budget);
        play.hear_all(&old);
        play.controllers[0].decide(0, bug);
        play.controllers[0].send(&mut play.world, 0, true, true, bug);
    }
    play.name(&budget, "a");
    play.hear_all(&budget);
    for _ in 0..40 {
        play.controllers[0].decide(0, bug);
        play.controllers[0].send(&mut play.world, 0, false, true, bug);
        play.hold()?;
    }
    play.settle()?;
    match play.has_reference(&old, &budget) && !play.has_reference(&new, &budget) {
        true => play.hold(),
        false => Err(format!("{budget} is not held where it came back to")),
    }
}

impl Play {
    fn begin_move(&self, holder: &Key, field: &str, to: &str) -> Result<Move, String> {
        let field = fields(&holder.kind.kind).find(|known| known.name == field);
        let begun = Move::begin(&self.world, holder, field.expect("a field"), to);
        begun.ok_or_else(|| format!("{holder} cannot be moved to {to}"))
    }

    /// Somebody moves a holder, and nothing comes between.
    pub(super) fn move_to(&mut self, holder: &Key, field: &str, to: &str, bug: Bug) -> Result<(), String> {
        let mut moving = self.begin_move(holder, field, to)?;
        let placed = moving.send(&mut self.world, true, bug);
        let written = moving.send(&mut self.world, true, bug);
        match (placed, written) {
            (None, Some(Ended::Moved)) => self.hold(),
            refused => Err(format!("{holder} is not moved to {to}: {refused:?}")),
        }
    }

    /// A holder was moved: its controller decides to release the former target, and sends some of the requests.
    pub(super) fn begin_release(&mut self, holder: &Key, target: &Key, requests: usize) -> Result<usize, String> {
        let at = self.at_service(holder);
        let controller = &mut self.controllers[at];
        for key in [holder, target] {
            controller.hear_all(&self.world, &key.kind, self.bug);
        }
        controller.decide(0, self.bug);
        for _ in 0..requests {
            controller.send(&mut self.world, 0, false, true, self.bug);
        }
        self.hold().map(|()| at)
    }
}

/// As if a request that was held back for long were as good as one that is sent at once.
#[test]
fn a_release_of_which_the_rest_comes_late_takes_nothing_from_a_holder_that_came_back() {
    come_back_meanwhile(Bug::None).expect("nothing is broken");
    for bug in [Bug::ReleaseUndetached, Bug::ReleaseAnyVersion, Bug::MoveWithoutWriting] {
        assert!(come_back_meanwhile(bug).is_err(), "{bug:?}");
    }
}

/// A process that releases the former target of a budget stands still after any of its requests. It sends the others
/// while the budget is moved back, and after that. Another process has taken over at once, or does so later.
pub(in super::super) fn come_back_meanwhile(bug: Bug) -> Result<(), String> {
    for sent in 0..RELEASE_REQUESTS {
        let left = RELEASE_REQUESTS - sent;
        for before in 0..=left {
            for between in 0..=left - before {
                for is_taken_over in [false, true] {
                    let come_back = come_back_between(bug, sent, [before, between], is_taken_over);
                    come_back.map_err(|rule| format!("{sent}, {before} and {between} requests: {rule}"))?;
                }
            }
        }
    }
    Ok(())
}

/// Some requests come before the target of the move is written, and some before the field is. Then that target is
/// deleted, and has to wait for the budget.
fn come_back_between(bug: Bug, sent: usize, late: [usize; 2], is_taken_over: bool) -> Result<(), String> {
    let mut play = calm(false);
    let [old, new] = ["a", "b"].map(|name| play.with("Project", name, &[]));
    let budget = play.with("Budget", "a", &[("project", "a")]);
    play.settle()?;
    play.move_to(&budget, "project", "b", Bug::None)?;
    play.bug = bug;
    let at = play.begin_release(&budget, &new, sent)?;
    let next = Controller::new(&play.world, &budget.kind.group, bug);
    let mut superseded = std::mem::replace(&mut play.controllers[at], next);
    if is_taken_over {
        play.settle()?;
    }
    let mut send = |play: &mut Play, requests: usize| {
        for _ in 0..requests {
            superseded.send(&mut play.world, 0, false, true, bug);
        }
        play.hold()
    };
    let mut moving = play.begin_move(&budget, "project", "a")?;
    send(&mut play, late[0])?;
    if moving.send(&mut play.world, true, bug).is_some() {
        return Err(format!("{old} takes no reference"));
    }
    send(&mut play, late[1])?;
    // Who finds that the budget was written begins again.
    if moving.send(&mut play.world, true, bug) != Some(Ended::Moved) {
        play.move_to(&budget, "project", "a", bug)?;
    }
    send(&mut play, RELEASE_REQUESTS)?;
    if play.erased(&old) {
        return Err(format!("{old} is gone before anybody has deleted it"));
    }
    play.delete(&old);
    play.settle()?;
    match play.waits(&old, &budget) {
        true => play.hold(),
        false => Err(format!("{old} does not wait for {budget}, which names it")),
    }
}

/// A budget names a cluster of another service, was moved to another one, and comes back while the release of the
/// former one is held back before its last request. The clusters, and the budget.
fn come_back_elsewhere(play: &mut Play, bug: Bug) -> [Key; 3] {
    let [old, new] = ["a", "b"].map(|name| play.with("Cluster", name, &[]));
    let budget = play.with("Budget", "a", &[("cluster", "a")]);
    play.settled();
    play.move_to(&budget, "cluster", "b", Bug::None).expect("it is moved");
    let at = play.begin_release(&budget, &new, RELEASE_REQUESTS - 1);
    let at = at.expect("nothing is broken");
    play.move_to(&budget, "cluster", "a", bug).expect("it is moved");
    play.controllers[at].send(&mut play.world, 0, false, true, Bug::None);
    [old, new, budget]
}

/// As if only the controller of the target itself sent the version that it has read: another service is asked to
/// release in that version, too, and a move writes to the target there in any case.
#[test]
fn a_late_release_takes_nothing_at_another_service() {
    for is_deleted in [false, true] {
        let mut play = calm(true);
        let [old, new, budget] = come_back_elsewhere(&mut play, Bug::None);
        assert!(play.has_reference(&old, &budget), "{is_deleted}: it came late");
        if is_deleted {
            play.delete(&old);
        }
        play.settled();
        assert!(
            play.has_reference(&old, &budget) && !play.has_reference(&new, &budget),
            "{is_deleted}"
        );
        assert_eq!(play.waits(&old, &budget), is_deleted);
    }
}

/// A service of an older version knows no version in its API: where the reference is there already, a move writes
/// nothing to the target, and a release that was held back takes the reference all the same. It is placed again, unless
/// the target is deleted before anybody has seen that: then the holder stays, is held where it was moved from, and says
/// so.
#[test]
fn what_a_late_release_takes_at_a_service_of_an_older_version_is_placed_again_or_reported() {
    for is_deleted in [false, true] {
        let mut play = calm(true);
        let [old, new, budget] = come_back_elsewhere(&mut play, Bug::MoveWithoutWriting);
        assert!(!play.has_reference(&old, &budget), "{is_deleted}: it came late");
        if !is_deleted {
            play.settled();
            assert!(
                play.has_reference(&old, &budget) && !play.has_reference(&new, &budget),
                "it is seen"
            );
            continue;
        }
        play.delete(&old);
        play.settled();
        assert!(play.erased(&old) && play.has_reference(&new, &budget));
        assert!(
            !play.world.servers.objects[&budget].terminating,
            "nothing follows from absence"
        );
        let Step::Rest(refused) = play.decided(&budget) else {
            panic!("it rests");
        };
        let said: Vec<_> = refused.iter().map(|one| (&one.target, one.why)).collect();
        assert_eq!(said, [(&old, RefusalReason::Absent)], "it is reported");
    }
}

/// Two projects, one of which is being deleted and waits for a budget, and an identity of the other one.
fn one_that_goes(play: &mut Play) -> [Key; 4] {
    let old = play.with("Project", "a", &[]);
    let new = play.with("Project", "b", &[]);
    let keeps = play.with("Budget", "b", &[("project", "b")]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    play.settled();
    play.delete(&new);
    play.settled();
    [old, new, keeps, identity]
}

/// The field of an identity is written, past the server that would refuse it, so that it names the project that goes.
pub(in super::super) fn refused(bug: Bug) -> Result<(), String> {
    for divided in [false, true] {
        let mut play = calm(divided);
        let [old, _, _, identity] = one_that_goes(&mut play);
        play.bug = bug;
        play.name(&identity, "b");
        play.settle()?;
        let found = play
            .world
            .servers
            .objects
            .get(&identity)
            .filter(|found| !found.terminating);
        let found = found.zip(play.world.servers.objects.get(&old));
        if !found.is_some_and(|(identity, old)| old.has_finalizer(&identity.reference())) {
            return Err(format!("{identity} goes with a project that never held it"));
        }
        play.hold()?;
    }
    Ok(())
}

/// Which of two projects are archived, the one of an identity and the one that is being deleted.
const ARCHIVED: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];

/// Two projects and an identity of the first one. A budget keeps the second one, which is being deleted. The uids of
/// the projects.
fn partly_archived(play: &mut Play, archived: [bool; 2]) -> ([Key; 4], [String; 2]) {
    let projects = ["a", "b"].map(|name| play.with("Project", name, &[]));
    play.settled();
    let uids = projects
        .each_ref()
        .map(|key| play.world.servers.objects[key].uid.clone());
    for (project, _) in projects.iter().zip(archived).filter(|(_, archived)| *archived) {
        play.evict(project);
    }
    let keeps = play.with("Budget", "b", &[("project", "b")]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    play.settled();
    let [old, new] = projects;
    delete_either(play, &new, &uids[1]);
    ([old, new, keeps, identity], uids)
}

/// A user deletes a project, in the cluster or in the archive.
fn delete_either(play: &mut Play, project: &Key, uid: &str) {
    match play.world.archives.is_archived(uid) {
        true => play.world.drop_row(uid),
        false => play.delete(project),
    }
    play.settled();
}

fn has_gone(play: &Play, project: &Key, uid: &str) -> bool {
    !play.world.servers.objects.contains_key(project) && !play.world.archives.is_archived(uid)
}

fn stays_with(play: &Play, old: &Key, identity: &Key) -> Result<(), String> {
    let found = play
        .world
        .servers
        .objects
        .get(identity)
        .filter(|found| !found.terminating);
    let is_held = found.is_some_and(|found| {
        let reference = found.reference();
        let live = play.world.servers.objects.get(old);
        live.is_some_and(|old| old.has_finalizer(&reference)) || play.world.has_row_of(old, &reference)
    });
    match is_held {
        true => play.hold(),
        false => Err(format!("{identity} goes with a project that never held it")),
    }
}

/// A project holds an identity that is moved, past the server, to one that is being deleted, and one of them is
/// archived, or both are. The one that is being deleted does not wait for the identity.
pub(in super::super) fn stay_with_former(bug: Bug) -> Result<(), String> {
    for archived in ARCHIVED {
        let mut play = calm(false);
        let ([old, new, keeps, identity], uids) = partly_archived(&mut play, archived);
        play.bug = bug;
        play.name(&identity, "b");
        play.settle()?;
        stays_with(&play, &old, &identity)?;
        play.delete(&keeps);
        play.rest()?;
        if !has_gone(&play, &new, &uids[1]) {
            return Err(format!("{new} waits for what stays"));
        }
        stays_with(&play, &old, &identity)?;
    }
    Ok(())
}

#[test]
fn what_is_moved_stays_held_by_its_former_target_if_one_of_the_two_is_archived() {
    stay_with_former(Bug::None).expect("nothing is broken");
}

/// As if the answer of the archive counted for ever: what the archive has released would never go.
#[test]
fn what_was_moved_goes_along_once_its_former_target_is_deleted_too_wherever_they_are() {
    for archived in ARCHIVED {
        let mut play = calm(false);
        let ([old, _, keeps, identity], uids) = partly_archived(&mut play, archived);
        play.name(&identity, "b");
        play.settled();
        assert!(!play.world.servers.objects[&identity].terminating, "{archived:?}");
        delete_either(&mut play, &old, &uids[0]);
        play.rest().expect("nothing is broken");
        assert!(play.erased(&identity), "{archived:?}");
        assert!(has_gone(&play, &old, &uids[0]), "{archived:?}");
        play.delete(&keeps);
        play.settled();
        assert!(!play.world.archives.is_archived(&uids[1]), "{archived:?}");
    }
}

/// As if what a controller does not know were not there: a restart would delete what was moved.
#[test]
fn who_is_not_known_yet_goes_along_with_nothing_that_is_deleted_in_the_archive() {
    let mut play = calm(false);
    let ([old, _, _, identity], _) = partly_archived(&mut play, [false, true]);
    play.name(&identity, "b");
    play.crash(0);
    for _ in 0..4 {
        play.controllers[0].walk_all(&mut play.world, Bug::None);
    }
    assert!(!play.world.servers.objects[&identity].terminating);
    play.rest().expect("nothing is broken");
    stays_with(&play, &old, &identity).expect("its former target is known now");
}

/// What becomes of it later: the project that goes does not wait for it, its own one does.
#[test]
fn what_is_moved_to_a_target_that_is_being_deleted_stays_held_by_its_former_one() {
    for divided in [false, true] {
        let mut play = calm(divided);
        let [old, new, keeps, identity] = one_that_goes(&mut play);
        play.name(&identity, "b");
        play.rest().expect("nothing is broken");
        assert!(!play.world.servers.objects[&identity].terminating && play.has_reference(&old, &identity));
        play.delete(&keeps);
        play.rest().expect("nothing is broken");
        assert!(play.erased(&new) && play.has_reference(&old, &identity), "{divided}");
        let Step::Rest(refused) = play.decided(&identity) else {
            panic!("it rests");
        };
        let said: Vec<_> = refused.iter().map(|one| (&one.target, one.why)).collect();
        assert_eq!(said, [(&new, RefusalReason::Absent)], "it is reported");
        play.delete(&old);
        play.rest().expect("nothing is broken");
        assert!(
            !play.world.servers.objects[&identity].terminating,
            "nothing follows from absence"
        );
        assert!(matches!(play.decided(&old), Step::Wait(Wait::Holders(references, _)) if references.len() == 1));
        play.delete(&identity);
        play.settled();
        assert!(play.erased(&identity) && play.erased(&old), "{divided}");
    }
}

#[test]
fn what_was_moved_goes_along_once_its_former_target_is_deleted_too() {
    for divided in [false, true] {
        let mut play = calm(divided);
        let [old, new, keeps, identity] = one_that_goes(&mut play);
        play.name(&identity, "b");
        play.settled();
        play.delete(&old);
        play.rest().expect("nothing is broken");
        assert!(play.erased(&identity) && play.erased(&old), "{divided}");
        play.delete(&keeps);
        play.settled();
        assert!(play.erased(&new), "{divided}");
    }
}
