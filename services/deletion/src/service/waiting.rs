//! What an object waits for, since when, and what people were told of it.

use std::time::Duration;

use tokio::time::Instant;

use crate::decide::{Cause, Claim, Step, Wait};

/// Until an object is decided on again that waits for others which hold no reference on it.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// An object that waits.
pub(super) struct Waiting {
    pub(super) step: Step,
    /// Since when it waits for these others.
    pub(super) since: Instant,
    /// Since when it waits for others than an event has named.
    unreported: Instant,
    /// What an event reported of it last, and when.
    pub(super) reported: Option<(Step, Instant)>,
    /// When it may be decided on again, though nothing around it has changed.
    again: Instant,
}

impl Waiting {
    pub(super) fn new(step: Step, now: Instant) -> Self {
        Self {
            step,
            since: now,
            unreported: now,
            reported: None,
            again: now + AGAIN_AFTER,
        }
    }

    /// The same object, which waits for others from now on.
    pub(super) fn turn_to(&mut self, step: Step, now: Instant) {
        if self.is_reported() {
            self.unreported = now;
        }
        (self.step, self.since) = (step, now);
    }

    fn is_reported(&self) -> bool {
        self.reported.as_ref().is_some_and(|(step, _)| *step == self.step)
    }

    /// Whether it still waits for the same while it is asked about that once more.
    pub(super) fn goes_on(&self, step: &Step) -> bool {
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
    pub(super) fn is_of_the_same(&self, step: &Step) -> bool {
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
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
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
    pub(super) fn is_overdue(&self, now: Instant, blocked_after: Duration) -> bool {
        let is_early = |(_, at): &(Step, Instant)| now.duration_since(*at) < blocked_after;
        if self.is_reported() || self.reported.as_ref().is_some_and(is_early) {
            return false;
        }
        now.duration_since(self.since) >= blocked_after || now.duration_since(self.unreported) >= 2 * blocked_after
    }
}

/// The references that an object waits for.
pub(super) fn claims(step: &Step) -> &[Claim] {
    match step {
        Step::Wait(Wait::Holders(claims, _) | Wait::Owned(claims, _)) => claims,
        _ => &[],
    }
}
