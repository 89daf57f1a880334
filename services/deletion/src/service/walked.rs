//! What tombstones wait for, from one walk over them to the next, and of which one people are to be told. Asks nobody,
//! and sends nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::decide::{Remaining, Step};

/// Tombstones of which it is known since when they wait. Events tell of no more.
const WAITING_MAX: usize = 10_000;

/// What a tombstone waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Its holders, as this step names them.
    Holders(Step),
    /// Another service, which is to release what the tombstone holds there. What it answers may change every time.
    Service(String),
    /// What it has outside, as its cleanup has answered last. That may change with every call.
    Cleanup(Remaining),
}

/// What waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitCounts {
    /// Those of which an event told.
    pub(super) blocked: usize,
    /// For how long one of them has waited at most.
    pub(super) longest: Duration,
    /// Those with holders that the cluster refused to change when these were last looked at.
    pub(super) refused: usize,
}

/// One that waits.
#[derive(Debug)]
struct Waiting {
    kind: String,
    awaited: Awaited,
    since: Instant,
    /// Whether an event has reported it.
    reported: bool,
    /// Whether that had the path of a cycle.
    as_cycle: bool,
    /// When an event last reported that it waits.
    last_report: Option<Instant>,
    /// Whether the cluster refused to change holders in the last look.
    is_refused: bool,
}

impl Waiting {
    /// The same wait, of which more may be known now; nothing where it is another one.
    fn goes_on(self, awaited: &Awaited) -> Option<Self> {
        match (&self.awaited, awaited) {
            (before, now) if before == now => Some(self),
            (Awaited::Cleanup(_), Awaited::Cleanup(left)) => Some(Self {
                awaited: Awaited::Cleanup(left.clone()),
                reported: false,
                ..self
            }),
            _ => None,
        }
    }
}

/// All that wait, by uid.
#[derive(Debug)]
pub(super) struct Walked {
    blocked_after: Duration,
    /// As of the walk before, those that this one has not come to.
    before: BTreeMap<String, Waiting>,
    /// As of this walk.
    waiting: BTreeMap<String, Waiting>,
}

impl Walked {
    pub(super) fn new(blocked_after: Duration) -> Self {
        Self {
            blocked_after,
            before: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// A tombstone waits. Whether an event is to tell of it: once, after it has waited for the same for long enough,
    /// and of what changes all the time not more often.
    pub(super) fn waits(&mut self, uid: &str, kind: &str, awaited: Awaited, now: Instant) -> bool {
        let known = self.waiting.remove(uid).or_else(|| self.before.remove(uid));
        let known = known.and_then(|known| known.goes_on(&awaited));
        let mut waiting = known.unwrap_or_else(|| Waiting {
            kind: kind.to_owned(),
            awaited,
            since: now,
            reported: false,
            as_cycle: false,
            last_report: None,
            is_refused: false,
        });
        waiting.is_refused = false;
        let quiet = now.duration_since(waiting.last_report.unwrap_or(waiting.since));
        let is_due = !waiting.reported && quiet >= self.blocked_after;
        if is_due {
            (waiting.reported, waiting.last_report) = (true, Some(now));
        }
        self.add(uid, waiting);
        is_due
    }

    /// Whether a tombstone of this walk waits for holders, and was reported without the path of a cycle that may have
    /// closed since.
    pub(super) fn may_turn_to_cycle(&self, uid: &str) -> bool {
        let waiting = self.waiting.get(uid);
        waiting.is_some_and(|one| one.reported && !one.as_cycle && matches!(one.awaited, Awaited::Holders(_)))
    }

    /// A tombstone of this walk is reported with the path of a cycle.
    pub(super) fn reported_as_cycle(&mut self, uid: &str) {
        if let Some(waiting) = self.waiting.get_mut(uid) {
            waiting.as_cycle = true;
        }
    }

    /// Whether the cluster has refused to change holders of a tombstone of this walk, which was looked at.
    pub(super) fn refused(&mut self, uid: &str, is_refused: bool) {
        if let Some(waiting) = self.waiting.get_mut(uid) {
            waiting.is_refused = is_refused;
        }
    }

    /// A step of a tombstone was carried out: what it waits for after that, it waits for from then on.
    pub(super) fn moves(&mut self, uid: &str) {
        self.waiting.remove(uid);
        self.before.remove(uid);
    }

    /// Nobody knows what a tombstone waits for now: until somebody does, it is what it waited for before.
    pub(super) fn unread(&mut self, uid: &str) {
        if let Some(waiting) = self.before.remove(uid) {
            self.add(uid, waiting);
        }
    }

    /// The same of all tombstones of a kind that this walk has not come to.
    pub(super) fn unread_kind(&mut self, kind: &str) {
        let before = std::mem::take(&mut self.before).into_iter();
        let (unread, others): (BTreeMap<_, _>, BTreeMap<_, _>) = before.partition(|(_, waiting)| waiting.kind == kind);
        self.before = others;
        for (uid, waiting) in unread {
            self.add(&uid, waiting);
        }
    }

    /// The walk is over. What waits of each kind.
    pub(super) fn end(&mut self, now: Instant) -> BTreeMap<String, WaitCounts> {
        let mut kinds: BTreeMap<String, WaitCounts> = BTreeMap::new();
        for waiting in self.waiting.values() {
            let counts = kinds.entry(waiting.kind.clone()).or_default();
            counts.blocked += usize::from(waiting.last_report.is_some());
            counts.longest = counts.longest.max(now.duration_since(waiting.since));
            counts.refused += usize::from(waiting.is_refused);
        }
        self.before = std::mem::take(&mut self.waiting);
        kinds
    }

    fn add(&mut self, uid: &str, waiting: Waiting) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.insert(uid.to_owned(), waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Wait;

    const BLOCKED_AFTER: Duration = Duration::from_secs(30);

    struct Stage {
        walked: Walked,
        begun: Instant,
    }

    impl Stage {
        fn new() -> Self {
            Self {
                walked: Walked::new(BLOCKED_AFTER),
                begun: Instant::now(),
            }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.begun + Duration::from_secs(seconds)
        }

        /// A walk after so many seconds, which finds that one tombstone waits. Whether an event tells of it.
        fn walk(&mut self, seconds: u64, awaited: Awaited) -> bool {
            let now = self.at(seconds);
            let is_due = self.walked.waits("u", "Cluster", awaited, now);
            self.walked.end(now);
            is_due
        }
    }

    fn holder(name: &str) -> Awaited {
        Awaited::Holders(Step::Wait(Wait::Archived(vec![name.to_owned()])))
    }

    fn service(place: &str) -> Awaited {
        Awaited::Service(place.to_owned())
    }

    #[test]
    fn a_tombstone_that_waits_for_another_service_is_reported_once_for_each_of_them() {
        let mut stage = Stage::new();
        assert!(!stage.walk(0, service("identity")));
        assert!(!stage.walk(29, service("identity")));
        assert!(stage.walk(30, service("identity")));
        assert!(!stage.walk(300, service("identity")), "it is reported");
        assert!(!stage.walk(310, service("region")), "it waits for that one from now on");
        assert!(stage.walk(340, service("region")));
    }

    #[test]
    fn holders_are_reported_once_for_each_set_of_them() {
        let mut stage = Stage::new();
        assert!(!stage.walk(0, holder("a")));
        assert!(stage.walk(30, holder("a")));
        assert!(!stage.walk(60, holder("a")));
        assert!(!stage.walk(61, holder("b")));
        assert!(!stage.walk(80, service("identity")), "that is something else");
        assert!(stage.walk(110, service("identity")));
    }

    #[test]
    fn what_was_reported_without_a_cycle_may_turn_to_one_once_for_each_set_of_holders() {
        let mut stage = Stage::new();
        let mut turns = |seconds, awaited: Awaited| {
            let now = stage.at(seconds);
            stage.walked.waits("u", "Cluster", awaited, now);
            let turns = stage.walked.may_turn_to_cycle("u");
            if turns {
                stage.walked.reported_as_cycle("u");
            }
            stage.walked.end(now);
            turns
        };
        assert!(!turns(0, holder("a")), "it was not reported yet");
        assert!(turns(30, holder("a")));
        assert!(!turns(60, holder("a")), "that is known");
        assert!(!turns(61, holder("b")), "it waits for that one from now on");
        assert!(turns(91, holder("b")));
        assert!(!turns(100, service("identity")));
        assert!(!turns(130, service("identity")), "no holder is waited for");
    }

    /// Otherwise a cleanup that says something else each time is never reported, or with every walk.
    #[test]
    fn what_a_cleanup_says_is_reported_as_it_changes_and_not_more_often_than_others() {
        let left = |what: String| Awaited::Cleanup(Remaining::Pending(what));
        let mut stage = Stage::new();
        let reports: Vec<u64> = (0..=70)
            .filter(|seconds| stage.walk(*seconds, left(format!("{seconds} machines"))))
            .collect();
        assert_eq!(reports, [30, 60]);
        assert!(!stage.walk(80, left("a disk".to_owned())));
        assert!(stage.walk(90, left("a disk".to_owned())));
        assert!(!stage.walk(150, left("a disk".to_owned())), "it is reported");
        assert!(!stage.walk(151, holder("a")), "that is something else");
        assert!(!stage.walk(152, left("a disk".to_owned())));
    }

    #[test]
    fn what_moves_on_or_is_gone_is_forgotten() {
        let mut stage = Stage::new();
        assert!(!stage.walk(0, service("identity")));
        stage.walked.moves("u");
        assert!(!stage.walk(30, service("identity")), "it has moved on meanwhile");
        assert!(stage.walk(60, service("identity")));
        // A walk that does not come to it.
        let later = stage.at(61);
        assert_eq!(stage.walked.end(later), BTreeMap::new());
        assert!(!stage.walk(62, service("identity")));
    }

    /// As if a webhook that denies one holder showed only while a walk looks at the object.
    #[test]
    fn a_tombstone_counts_as_refused_until_a_look_at_it_is_refused_nothing() {
        let mut stage = Stage::new();
        let now = stage.at(0);
        let mut refused = |look: &dyn Fn(&mut Walked)| {
            look(&mut stage.walked);
            stage
                .walked
                .end(now)
                .values()
                .map(|counts| counts.refused)
                .sum::<usize>()
        };
        let denied = |walked: &mut Walked| {
            walked.waits("u", "Cluster", holder("a"), now);
            walked.refused("u", true);
        };
        assert_eq!((refused(&denied), refused(&denied)), (1, 1));
        assert_eq!(
            refused(&|walked: &mut Walked| walked.unread("u")),
            1,
            "it was not looked at"
        );
        let passed = |walked: &mut Walked| {
            walked.waits("u", "Cluster", holder("a"), now);
        };
        assert_eq!(refused(&passed), 0);
        assert_eq!((refused(&denied), refused(&|_: &mut Walked| ())), (1, 0), "it is gone");
    }

    #[test]
    fn what_cannot_be_read_for_a_while_waits_on_and_is_not_reported_again() {
        let mut stage = Stage::new();
        assert!(!stage.walk(0, holder("a")));
        assert!(stage.walk(30, holder("a")));
        stage.walked.unread("u");
        let later = stage.at(40);
        let expected = WaitCounts {
            blocked: 1,
            longest: Duration::from_secs(40),
            refused: 0,
        };
        assert_eq!(
            stage.walked.end(later),
            BTreeMap::from([("Cluster".to_owned(), expected)])
        );
        assert!(!stage.walk(50, holder("a")));
        stage.walked.unread_kind("Cluster");
        stage.walked.unread_kind("Network");
        let later = stage.at(60);
        stage.walked.end(later);
        assert!(!stage.walk(70, holder("a")), "it was reported before");
    }
}
