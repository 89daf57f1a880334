//! The cleanup outside, request by request.

use super::super::Bug;
use super::super::world::{World, has_cleanup};
use super::{Controller, Progress, Task};
use crate::decide::Outside;
use crate::object::Object;
use crate::outside::{Said, is_due};

impl Controller {
    /// What an object has outside, as far as was said.
    pub(super) fn outside(&self, object: &Object) -> Outside {
        match has_cleanup(&object.key.kind.kind) {
            true => self.outsides.of(object, self.now),
            false => Outside::Gone,
        }
    }

    /// The same of an archived one.
    pub(super) fn archived_outside(&self, object: &Object) -> Outside {
        match has_cleanup(&object.key.kind.kind) {
            true => self.archived_outsides.of(object, self.now),
            false => Outside::Gone,
        }
    }

    /// The object is read, then its cleanup is called. Whether the call or its answer gets lost, nobody knows.
    pub(super) fn clean_up(&mut self, world: &mut World, task: &Task, lost: bool, bug: Bug) -> Progress {
        if task.done == 0 {
            let Ok(found) = world.get(&task.key) else {
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
        let said = match (lost, left) {
            (true, _) => Said::Failed("the answer is lost".to_owned()),
            (false, true) if bug == Bug::BelieveCleanup => Said::Gone,
            (false, true) => Said::Pending("machines".to_owned(), None),
            (false, false) => Said::Gone,
        };
        if let Some(object) = self.graph.get(&task.key).filter(|object| object.uid == task.uid) {
            self.outsides.said(object, said, self.now);
        }
        Progress::Done
    }
}
