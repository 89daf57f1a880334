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
