//! What objects wait for, since when, and what people were told of it. Sends nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::decide::{Cause, HeldReference, Seen, Step, Wait};
use crate::graph::Graph;
use crate::holders::Holders;
use crate::notice::{Notice, is_noticed, notice, waits_for_objects};
use crate::object::{Key, Object};
use crate::roots::roots;

/// Until an object is decided on again that waits for others which hold no reference on it, and until the archive is
/// asked again for a cycle.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// An object that waits, with what to report of it.
#[derive(Debug)]
pub(crate) struct Overdue {
    pub(crate) object: Object,
    pub(crate) notice: Notice,
    /// Whether it may be on a cycle of which only the archive knows.
    pub(crate) may_be_cycle: bool,
    /// Whether the notice was reported before: only that cycle is worth another one.
    pub(crate) is_reported: bool,
}

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

    /// Another service says something else of a holder of these, or the archive has said nothing: what was reported of
    /// them is looked at again from then on, as they may be on a cycle.
    pub(crate) fn look_again<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>, from: Instant) {
        for key in keys {
            if let Some(reported) = self.objects.get_mut(key).and_then(|waiting| waiting.reported.as_mut()) {
                let before = reported.look_again.unwrap_or(from);
                reported.look_again = Some(from.min(before));
            }
        }
    }

    /// The objects that have waited for too long since somebody was told, and those of which it is known by now that
    /// they are on a cycle, with what to tell.
    pub(crate) fn overdue(&mut self, graph: &Graph, holders: &Holders, now: Instant, today: Timestamp) -> Vec<Overdue> {
        let blocked_after = self.blocked_after;
        let due = self.objects.iter();
        let due = due.filter(|(_, waiting)| waiting.is_to_be_reported(now, blocked_after));
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        let mut overdue = Vec::new();
        for key in due {
            let Some(object) = graph.get(&key) else {
                continue;
            };
            // One of those before may have reported its cycle.
            let waiting = self.objects.get(&key);
            if !waiting.is_some_and(|waiting| waiting.is_to_be_reported(now, blocked_after)) {
                continue;
            }
            let search = graph.search_cycle(&key, |name| holders.elsewhere(name));
            let mut looked_at = search.looked_at.iter();
            let may_be_archived = search.may_be_archived || looked_at.any(|other| self.waits_for_archived(other));
            let Some(waiting) = self.objects.get_mut(&key) else {
                continue;
            };
            let waits_for_objects = waits_for_objects(&waiting.step);
            let cycle = search.cycle.filter(|_| waits_for_objects);
            let may_be_cycle = cycle.is_none() && may_be_archived && waits_for_objects;
            let is_reported = !waiting.report(cycle.is_some(), now, blocked_after);
            if is_reported && cycle.is_none() && !may_be_cycle {
                continue;
            }
            let path = cycle.as_deref().map(Seen::keys);
            if let Some(notice) = notice(&waiting.step, path.as_deref()) {
                overdue.push(Overdue {
                    object: object.clone(),
                    notice: notice.with_roots(&roots(graph, &key), today),
                    may_be_cycle,
                    is_reported,
                });
            }
            if let Some(path) = cycle {
                overdue.extend(self.on_cycle(graph, &path, today));
            }
        }
        overdue
    }

    fn waits_for_archived(&self, key: &Key) -> bool {
        let waiting = self.objects.get(key);
        waiting.is_some_and(|waiting| matches!(waiting.step, Step::Wait(Wait::Archived(_))))
    }

    /// A cycle was found. The objects on it that were reported without it, each once for each set of others. The one
    /// with which the path begins is among them: what its search says is dropped if something newer is pending.
    pub(crate) fn on_cycle(&mut self, graph: &Graph, path: &[Seen], today: Timestamp) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for (at, Seen { key, uid }) in path.iter().enumerate() {
            let holder = &path[(at + 1) % path.len()];
            let object = graph.get(key).filter(|object| object.uid == *uid);
            let (Some(object), Some(waiting)) = (object, self.objects.get_mut(key)) else {
                continue;
            };
            if !waiting.turns_to_cycle(holder, graph) {
                continue;
            }
            let mut path = Seen::keys(path);
            path.rotate_left(at);
            if let Some(notice) = notice(&waiting.step, Some(&path)) {
                overdue.push(Overdue {
                    object: object.clone(),
                    notice: notice.with_roots(&roots(graph, key), today),
                    may_be_cycle: false,
                    is_reported: false,
                });
            }
        }
        overdue
    }
}

/// What an event reported of an object.
struct Reported {
    step: Step,
    at: Instant,
    /// Whether it had the path of a cycle.
    as_cycle: bool,
    /// From when on more may be known of those that hold it.
    look_again: Option<Instant>,
}

/// An object that waits.
struct Waiting {
    step: Step,
    /// Since when it waits for these others.
    since: Instant,
    /// Since when it waits for others than an event has named.
    unreported: Instant,
    /// What an event reported of it last.
    reported: Option<Reported>,
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
        self.reported
            .as_ref()
            .is_some_and(|reported| reported.step == self.step)
    }

    /// Whether what it waits for is to be reported, which counts as reported from now on. Else it is looked at again,
    /// and may turn out to be on a cycle.
    fn report(&mut self, as_cycle: bool, now: Instant, blocked_after: Duration) -> bool {
        if self.is_overdue(now, blocked_after) {
            self.reported = Some(Reported {
                step: self.step.clone(),
                at: now,
                as_cycle,
                look_again: None,
            });
            return true;
        }
        if let Some(reported) = &mut self.reported {
            (reported.as_cycle, reported.look_again) = (as_cycle, None);
        }
        false
    }

    /// It is on a cycle, on which this holder keeps it. Whether it was reported otherwise, and waits for that one: some
    /// other object, live or archived, may have had its name.
    fn turns_to_cycle(&mut self, holder: &Seen, graph: &Graph) -> bool {
        let is_known = self.reported.as_ref().is_none_or(|reported| reported.as_cycle);
        // There may be very many that it waits for: they are compared last.
        if is_known || !self.is_reported() || !self.waits_for(holder, graph) {
            return false;
        }
        if let Some(reported) = &mut self.reported {
            reported.as_cycle = true;
        }
        true
    }

    fn waits_for(&self, holder: &Seen, graph: &Graph) -> bool {
        match &self.step {
            Step::Wait(Wait::Holders(references, missing) | Wait::Owned(references, missing)) => {
                let is_known = |known: &Object| known.uid == holder.uid;
                references.iter().any(|reference| reference.name.uid() == holder.uid)
                    || (graph.get(&holder.key).is_some_and(is_known) && missing.contains(&holder.key))
            }
            // Only some of them are named, and as people know them. Whoever found the path has asked the archive.
            Step::Wait(Wait::Archived(_)) => true,
            _ => false,
        }
    }

    /// Whether an event is to report it, or it is looked at whether it is on a cycle by now.
    fn is_to_be_reported(&self, now: Instant, blocked_after: Duration) -> bool {
        self.is_overdue(now, blocked_after) || self.is_looked_at_again(now)
    }

    /// Whether it is looked at again though it was reported.
    fn is_looked_at_again(&self, now: Instant) -> bool {
        let reported = self.reported.as_ref().filter(|_| self.is_reported());
        let reported = reported.filter(|reported| !reported.as_cycle);
        reported.is_some_and(|reported| reported.look_again.is_some_and(|from| from <= now))
    }

    /// Whether it still waits for the same while it is asked about that once more.
    fn goes_on(&self, step: &Step) -> bool {
        match step {
            Step::CleanUp => matches!(self.step, Step::Wait(Wait::Cleanup(_))),
            Step::Sweep => matches!(self.step, Step::Wait(Wait::Archived(_))),
            // One that does not hold it cascades to it only if the archive does not hold it either.
            Step::Hold { .. }
            | Step::Request(Cause::Target { held: false, .. })
            | Step::Delete(Cause::Target { held: false, .. }) => matches!(self.step, Step::Rest(_)),
            Step::Keep(_) => !awaited_references(&self.step).is_empty(),
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
                let names = before.map(|reference| &reference.name);
                missing == others && names.eq(now.map(|reference| &reference.name))
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
        let is_early = |reported: &Reported| now.duration_since(reported.at) < blocked_after;
        if self.is_reported() || self.reported.as_ref().is_some_and(is_early) {
            return false;
        }
        now.duration_since(self.since) >= blocked_after || now.duration_since(self.unreported) >= 2 * blocked_after
    }
}

/// The references that an object waits for.
pub(crate) fn awaited_references(step: &Step) -> &[HeldReference] {
    match step {
        Step::Wait(Wait::Holders(references, _) | Wait::Owned(references, _)) => references,
        _ => &[],
    }
}
