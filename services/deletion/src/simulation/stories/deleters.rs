//! Several who delete the same objects: the first deletion of each one counts, and watches hear of no other.

use super::calm;
use crate::object::Key;
use crate::simulation::world::Refusal;
use crate::simulation::{Bug, Play};

/// Up to so many steps of each service, the others delete. By then the network waits for nobody but its ingester.
const STEPS: usize = 32;

/// As if a later deletion began anew: with its own time, from the first phase, or for all who hear of deletions.
#[test]
fn of_several_deletions_the_first_one_counts_whenever_the_others_come() {
    all(Bug::None).expect("nothing is broken");
}

/// After any number of steps, and with processes that die then or live on.
pub(in super::super) fn all(bug: Bug) -> Result<(), String> {
    for steps in 0..STEPS {
        for dies in [false, true] {
            delete_again(bug, steps, dies).map_err(|rule| format!("after {steps} steps: {rule}"))?;
        }
    }
    Ok(())
}

/// Two users delete a project at once, and it takes its identity and its network along. Later, another one deletes all
/// three, whether they are leaving the cluster or not.
fn delete_again(bug: Bug, steps: usize, dies: bool) -> Result<(), String> {
    let mut play = calm(true);
    let project = play.with("Project", "a", &[]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    play.settled();
    play.bug = bug;
    let (before, all) = (play.world.servers.version, 0..play.controllers.len());
    play.delete_by_users(&[&project, &project])?;
    for _ in 0..steps {
        all.clone().for_each(|at| play.little(at));
        play.hold()?;
    }
    play.delete_by_users(&[&network, &identity, &project, &network])?;
    if dies {
        all.for_each(|at| play.crash(at));
    }
    play.settle()?;
    for key in [&network, &identity, &project] {
        if !play.erased(key) {
            return Err(format!("{key} stays"));
        }
        if play.needless_writes(key, before) > 0 {
            return Err(format!("watches hear once more that {key} is being deleted"));
        }
    }
    play.hold()
}

impl Play {
    /// Users delete these, as far as they are still there.
    fn delete_by_users(&mut self, keys: &[&Key]) -> Result<(), String> {
        for key in keys {
            match self.world.delete(key) {
                Ok(()) | Err(Refusal::Gone) => {}
                Err(refusal) => return Err(format!("{key} is not deleted: {refusal:?}")),
            }
        }
        self.hold()
    }
}
