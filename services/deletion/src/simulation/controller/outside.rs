//! The cleanup outside, request by request.

use super::{Controller, Progress, Task};
use crate::cleanup_states::{CallOutcome, is_due};
use crate::simulation::Bug;
use crate::simulation::world::World;

impl Controller {
    /// The object is read, then its cleanup is called. Whether the call or its answer gets lost, nobody knows.
    pub(super) fn clean_up(&mut self, world: &mut World, task: &Task, lost: bool, bug: Bug) -> Progress {
        if task.done == 0 {
            let Ok(found) = world.servers.get(&task.key) else {
                return Progress::Again;
            };
            let Some(found) = found.filter(|found| found.uid == task.uid).cloned() else {
                let concerned = self.graph.remove(&task.key, &task.uid);
                self.lose(concerned);
                return Progress::Done;
            };
            let due = is_due(&world.read(&found, true)) || bug == Bug::CleanUpEarly;
            self.know(world, &found);
            return if due { Progress::Next } else { Progress::Done };
        }
        let left = world.clean_up(&task.key, &task.uid);
        let outcome = match (lost, left) {
            (true, _) => CallOutcome::Failed("the answer is lost".to_owned()),
            (false, true) if bug == Bug::BelieveCleanup => CallOutcome::Gone,
            (false, true) => CallOutcome::Pending("machines".to_owned(), None),
            (false, false) => CallOutcome::Gone,
        };
        if let Some(object) = self.graph.get(&task.key).filter(|object| object.uid == task.uid) {
            self.knowledge.cleanup_states.record(object, outcome, self.now);
        }
        Progress::Done
    }
}
