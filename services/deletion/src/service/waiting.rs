//! What objects wait for, since when, and what people were told of it. Sends nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::decide::{Cause, Claim, Step, Wait};
use crate::graph::Graph;
use crate::notice::{Notice, is_noticed, notice};
use crate::object::{Key, Object};
use crate::roots::roots;

/// Until an object is decided on again that waits for others which hold no reference on it.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// All objects that wait.
pub(crate) struct WaitingObjects {
    /// For how long an object may wait, for the same others, before somebody is told.
    blocked_after: Duration,
    objects: BTreeMap<Key, Waiting>,
}

impl WaitingObjects {
    /// None waits yet.
    pub(crate) fn new(blocked_after: Duration) -> Self {
        Self {
            blocked_after,
            objects: BTreeMap::new(),
        }
    }

    /// An object waits by this step, or rests.
    pub(crate) fn rests(&mut self, key: &Key, step: Step, now: Instant) {
        if !is_noticed(&step) {
            return self.forget(key);
        }
        match self.objects.get_mut(key) {
            Some(waiting) if waiting.is_of_the_same(&step) => waiting.step = step,
            Some(waiting) => waiting.turn_to(step, now),
            None => {
                self.objects.insert(key.clone(), Waiting::new(step, now));
            }
        }
    }

    /// An object takes a step, by which it may wait no more.
    pub(crate) fn goes_on(&mut self, key: &Key, step: &Step) {
        if !self.objects.get(key).is_some_and(|waiting| waiting.goes_on(step)) {
            self.forget(key);
        }
    }

    /// There is no such object any more.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.objects.remove(key);
    }

    /// Those that are to be decided on again, though nothing around them has changed.
    pub(crate) fn due(&mut self, now: Instant) -> impl Iterator<Item = Key> {
        let objects = self.objects.iter_mut();
        objects.filter_map(move |(key, waiting)| waiting.is_due(now).then(|| key.clone()))
    }

    /// How many objects of a kind have waited for too long to go, and for how long one of them has at most.
    pub(crate) fn blocked(&self, kind: &str, now: Instant) -> (usize, Duration) {
        let objects = self.objects.iter();
        let leaving = objects.filter(|(key, waiting)| key.kind.kind == kind && matches!(waiting.step, Step::Wait(_)));
        let (mut count, mut longest) = (0, Duration::ZERO);
        for (_, waiting) in leaving {
            count += usize::from(waiting.reported.is_some());
            longest = longest.max(now.duration_since(waiting.since));
        }
        (count, longest)
    }

    /// The objects that have waited for too long since somebody was told, with what to tell.
    pub(crate) fn overdue(&mut self, graph: &Graph, now: Instant, today: Timestamp) -> Vec<(Object, Notice)> {
        let mut overdue = Vec::new();
        for (key, waiting) in &mut self.objects {
            if !waiting.is_overdue(now, self.blocked_after) {
                continue;
            }
            let Some(object) = graph.get(key) else {
                continue;
            };
            let cycle = graph.cycle(key);
            waiting.reported = Some((waiting.step.clone(), now));
            if let Some(notice) = notice(&waiting.step, cycle.as_deref()) {
                let notice = notice.with_roots(&roots(graph, key), today);
                overdue.push((object.clone(), notice));
            }
        }
        overdue
    }
}

/// An object that waits.
struct Waiting {
    step: Step,
    /// Since when it waits for these others.
    since: Instant,
    /// Since when it waits for others than an event has named.
    unreported: Instant,
    /// What an event reported of it last, and when.
    reported: Option<(Step, Instant)>,
    /// When it may be decided on again, though nothing around it has changed.
    again: Instant,
}

impl Waiting {
    fn new(step: Step, now: Instant) -> Self {
        Self {
            step,
            since: now,
            unreported: now,
            reported: None,
            again: now + AGAIN_AFTER,
        }
    }

    /// The same object, which waits for others from now on.
    fn turn_to(&mut self, step: Step, now: Instant) {
        if self.is_reported() {
            self.unreported = now;
        }
        (self.step, self.since) = (step, now);
    }

    fn is_reported(&self) -> bool {
        self.reported.as_ref().is_some_and(|(step, _)| *step == self.step)
    }

    /// Whether it still waits for the same while it is asked about that once more.
    fn goes_on(&self, step: &Step) -> bool {
        match step {
            Step::CleanUp => matches!(self.step, Step::Wait(Wait::Cleanup(_))),
            Step::Sweep => matches!(self.step, Step::Wait(Wait::Archived(_))),
            // One that does not hold it takes it along only if the archive does not hold it either.
            Step::Hold { .. }
            | Step::Request(Cause::Target { held: false, .. })
            | Step::Delete(Cause::Target { held: false, .. }) => matches!(self.step, Step::Rest(_)),
            Step::Keep(_) => !claims(&self.step).is_empty(),
            _ => false,
        }
    }

    /// Whether it waits for the same, of which more may be known now.
    fn is_of_the_same(&self, step: &Step) -> bool {
        match (&self.step, step) {
            (Step::Wait(Wait::Cleanup(_)), Step::Wait(Wait::Cleanup(_))) => true,
            (Step::Wait(Wait::Holders(before, missing)), Step::Wait(Wait::Holders(now, others)))
            | (Step::Wait(Wait::Owned(before, missing)), Step::Wait(Wait::Owned(now, others))) => {
                let (before, now) = (before.iter(), now.iter());
                let names = before.map(|claim| &claim.name);
                missing == others && names.eq(now.map(|claim| &claim.name))
            }
            (before, now) => before == now,
        }
    }

    /// Whether it is decided on again, though nothing around it has changed. Whether it waits for others that hold no
    /// reference on it depends on whom those wait for, over any number of objects.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = match &self.step {
            Step::Wait(Wait::Holders(_, missing) | Wait::Owned(_, missing)) => !missing.is_empty() && self.again <= now,
            _ => false,
        };
        if is_due {
            self.again = now + AGAIN_AFTER;
        }
        is_due
    }

    /// Whether an event is to tell of it: after so long with the same others, or after twice that if they change all
    /// the time. What cleanups say may change with every call.
    fn is_overdue(&self, now: Instant, blocked_after: Duration) -> bool {
        let is_early = |(_, at): &(Step, Instant)| now.duration_since(*at) < blocked_after;
        if self.is_reported() || self.reported.as_ref().is_some_and(is_early) {
            return false;
        }
        now.duration_since(self.since) >= blocked_after || now.duration_since(self.unreported) >= 2 * blocked_after
    }
}

/// The references that an object waits for.
pub(crate) fn claims(step: &Step) -> &[Claim] {
    match step {
        Step::Wait(Wait::Holders(claims, _) | Wait::Owned(claims, _)) => claims,
        _ => &[],
    }
}
