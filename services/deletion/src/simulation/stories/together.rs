//! Several references that one write places.

use super::calm;
use crate::object::Key;
use crate::simulation::{Bug, Play};

#[test]
fn of_references_that_are_placed_together_that_of_a_holder_that_is_gone_is_taken_back() {
    place(Bug::None).expect("nothing is broken");
}

impl Play {
    /// A controller of its own sees all and decides on all, one after the other.
    fn decide_all(&mut self, kinds: [&Key; 2]) {
        for key in kinds {
            self.controllers[0].hear_all(&self.world, &key.kind, self.bug);
        }
        for _ in 0..self.world.servers.objects.len() {
            self.controllers[0].decide(0, self.bug);
        }
    }
}

/// One of two holders goes between the write that places both references and the reads that follow it.
pub(in super::super) fn place(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    play.bug = bug;
    let project = play.with("Project", "a", &[]);
    let budgets = ["a", "b"].map(|name| play.with("Budget", name, &[("project", "a")]));
    let add_finalizer = |object: &mut crate::simulation::world::Stored| {
        let own = crate::simulation::world::names(&object.key.kind.group)
            .finalizer
            .clone();
        object.finalizers.push(own);
    };
    for key in [&project, &budgets[0], &budgets[1]] {
        play.world.write(key, None, None, add_finalizer).expect("it is there");
    }
    play.decide_all([&project, &budgets[0]]);
    let send = |play: &mut Play| play.controllers[0].send(&mut play.world, 0, false, true, bug);
    send(&mut play);
    let references = budgets
        .each_ref()
        .map(|budget| play.world.servers.objects[budget].reference());
    let has_reference = |play: &Play| {
        references
            .each_ref()
            .map(|name| play.world.servers.objects[&project].has_finalizer(name))
    };
    if has_reference(&play) != [true, true] {
        return Err("one write places both".to_owned());
    }
    play.world
        .write(&budgets[1], None, None, |budget| {
            (budget.terminating, budget.asked) = (true, true);
            budget.finalizers.clear();
        })
        .expect("it is there");
    send(&mut play);
    send(&mut play);
    match has_reference(&play) {
        [true, false] => Ok(()),
        other => Err(format!("{project} has {other:?}")),
    }
}
