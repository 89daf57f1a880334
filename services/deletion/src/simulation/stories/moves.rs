//! Fields that change while a controller knows little of what they name.

use super::super::{Bug, Play};
use super::calm;
use crate::object::Key;

#[test]
fn a_holder_that_comes_back_is_held_there_before_it_is_released() {
    come_back(Bug::None).expect("nothing is broken");
}

impl Play {
    fn name(&mut self, budget: &Key, project: &str) {
        let written = self.world.write(budget, None, None, |budget| {
            budget.named.insert("project", project.to_owned());
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
