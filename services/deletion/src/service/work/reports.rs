//! What of the work people are told: what waits for too long, what vanished, and what is refused no more.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cluster::outcome::Task;
use crate::decide::Step;
use crate::notice::{Notice, notice};
use crate::object::Object;
use crate::roots::roots;
use crate::vanished::Lost;

use super::Work;

impl Work {
    /// What a step is about to take off is not taken off by somebody else.
    pub(super) fn expect(&mut self, task: &Task, now: Instant) {
        match &task.step {
            Step::Release(target) => {
                for name in task.objects().filter_map(Object::reference_name) {
                    self.vanished.expect(&target.uid, Lost::Reference(name), now);
                }
            }
            Step::Keep(names) => {
                for name in names {
                    self.vanished
                        .expect(&task.object.uid, Lost::Reference(name.clone()), now);
                }
            }
            Step::Free { .. } => self.vanished.expect(&task.object.uid, Lost::Guard, now),
            _ => {}
        }
    }

    /// How many objects of a kind have waited for too long to go, and for how long one of them has at most.
    pub(in super::super) fn blocked(&self, kind: &str, now: Instant) -> (usize, Duration) {
        let waiting = self.waiting.iter();
        let leaving = waiting.filter(|(key, waiting)| key.kind.kind == kind && matches!(waiting.step, Step::Wait(_)));
        let (mut count, mut longest) = (0, Duration::ZERO);
        for (_, waiting) in leaving {
            count += usize::from(waiting.reported.is_some());
            longest = longest.max(now.duration_since(waiting.since));
        }
        (count, longest)
    }

    /// The objects from which references vanished, or the holders of these, with what to tell.
    pub(in super::super) fn vanished(&mut self, now: Instant) -> Vec<(Object, Notice)> {
        self.vanished.judge(&self.graph, now)
    }

    /// The objects that have waited for too long since somebody was told, with what to tell.
    pub(in super::super) fn overdue(&mut self, now: Instant, today: Timestamp) -> Vec<(Object, Notice)> {
        let mut overdue = Vec::new();
        for (key, waiting) in &mut self.waiting {
            if !waiting.is_overdue(now, self.blocked_after) {
                continue;
            }
            let Some(object) = self.graph.get(key) else {
                continue;
            };
            let cycle = self.graph.cycle(key);
            waiting.reported = Some((waiting.step.clone(), now));
            if let Some(notice) = notice(&waiting.step, cycle.as_deref()) {
                let notice = notice.with_roots(&roots(&self.graph, key), today);
                overdue.push((object.clone(), notice));
            }
        }
        overdue
    }

    /// The live objects to which nothing is refused any more.
    pub(in super::super) fn placed(&mut self) -> Vec<Object> {
        let placed = std::mem::take(&mut self.placed);
        let known = placed.iter().filter_map(|key| self.graph.get(key));
        known.cloned().collect()
    }
}
