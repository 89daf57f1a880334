//! Fields that change while a controller knows little of what they name, or past the server that would refuse it.

use super::super::{Bug, Play};
use super::calm;
use crate::decide::{RefusalReason, Step, Wait};
use crate::object::Key;

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

    fn bears(&self, target: &Key, holder: &Key) -> bool {
        self.world.objects[target].bears(&self.world.objects[holder].reference())
    }

    fn hear_all(&mut self, of: &Key) {
        for _ in 0..self.world.log[&of.kind].len() {
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
        if !play.bears(&old, &budget) {
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
    match play.bears(&old, &budget) && !play.bears(&new, &budget) {
        true => play.hold(),
        false => Err(format!("{budget} is not held where it came back to")),
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
        let found = play.world.objects.get(&identity).filter(|found| !found.terminating);
        let found = found.zip(play.world.objects.get(&old));
        if !found.is_some_and(|(identity, old)| old.bears(&identity.reference())) {
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
    let uids = projects.each_ref().map(|key| play.world.objects[key].uid.clone());
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
    !play.world.objects.contains_key(project) && !play.world.archives.is_archived(uid)
}

fn stays_with(play: &Play, old: &Key, identity: &Key) -> Result<(), String> {
    let found = play.world.objects.get(identity).filter(|found| !found.terminating);
    let is_held = found.is_some_and(|found| {
        let reference = found.reference();
        let live = play.world.objects.get(old);
        live.is_some_and(|old| old.bears(&reference)) || play.world.bears_as_row(old, &reference)
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
        assert!(!play.world.objects[&identity].terminating, "{archived:?}");
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
    assert!(!play.world.objects[&identity].terminating);
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
        assert!(!play.world.objects[&identity].terminating && play.bears(&old, &identity));
        play.delete(&keeps);
        play.rest().expect("nothing is broken");
        assert!(play.erased(&new) && play.bears(&old, &identity), "{divided}");
        let Step::Rest(refused) = play.decided(&identity) else {
            panic!("it rests");
        };
        let said: Vec<_> = refused.iter().map(|one| (&one.target, one.why)).collect();
        assert_eq!(said, [(&new, RefusalReason::Absent)], "it is reported");
        play.delete(&old);
        play.rest().expect("nothing is broken");
        assert!(
            !play.world.objects[&identity].terminating,
            "nothing follows from absence"
        );
        assert!(matches!(play.decided(&old), Step::Wait(Wait::Holders(claims, _)) if claims.len() == 1));
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
