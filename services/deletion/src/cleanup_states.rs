//! What came of the cleanups of objects, and when they are called again. Calls none itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_model::deletion::Phase;
use tokio::time::Instant;

use crate::decide::{CleanupState, Remaining};
use crate::object::{DeletionState, Key, Object};

/// After a first call that was not the last one; each further one doubles it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const TIMES_DOUBLED: u32 = 6;
/// A cleanup that says to ask earlier is asked then.
const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
/// A cleanup that says to ask later is asked then.
const AGAIN_AFTER_MAX: Duration = Duration::from_hours(24);

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// Nothing is left.
    Gone,
    /// Something is left, and when to ask again.
    Pending(String, Option<Duration>),
    /// There was no answer, and why.
    Failed(String),
}

/// What is known of one object.
#[derive(Debug)]
struct Entry {
    /// Who it is: others may have had its name before.
    uid: String,
    state: CleanupState,
    again: Instant,
    /// How often in succession before something was left, or the call failed.
    times: u32,
}

impl Entry {
    /// What is known after one more call.
    fn after(known: Option<&Self>, uid: &str, outcome: CallOutcome, now: Instant) -> Self {
        let (state, asked) = match outcome {
            CallOutcome::Gone => (CleanupState::Gone, None),
            CallOutcome::Pending(what, pause) => (CleanupState::Remaining(Remaining::Pending(what)), pause),
            CallOutcome::Failed(why) => (CleanupState::Remaining(Remaining::Failed(why)), None),
        };
        let known = known.filter(|entry| fails(&entry.state) == fails(&state));
        let times = known.map_or(0, |entry| (entry.times + 1).min(TIMES_DOUBLED));
        let pause = asked.unwrap_or(AGAIN_AFTER * 2_u32.pow(times));
        Self {
            uid: uid.to_owned(),
            state,
            again: now + pause.clamp(AGAIN_AFTER_MIN, AGAIN_AFTER_MAX),
            times,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.state != CleanupState::Gone && self.again <= now
    }
}

/// The cleanup of an object, of which this is known.
fn state(object: &Object, entry: Option<&Entry>, now: Instant) -> CleanupState {
    // That phase is recorded only after it was confirmed.
    if object.phase >= Some(Phase::Finalizing) {
        return CleanupState::Gone;
    }
    match entry {
        Some(entry) if !entry.is_due(now) => entry.state.clone(),
        Some(_) | None => CleanupState::Unconfirmed,
    }
}

/// What is known of all objects. It is forgotten with the process: the next one asks anew.
#[derive(Debug, Default)]
pub struct CleanupStates {
    entries: BTreeMap<Key, Entry>,
}

impl CleanupStates {
    /// The state of the cleanup of an object whose kind has one.
    pub fn of(&self, object: &Object, now: Instant) -> CleanupState {
        state(object, self.entry(object), now)
    }

    /// What came of a call for an object.
    pub fn record(&mut self, object: &Object, outcome: CallOutcome, now: Instant) {
        let entry = Entry::after(self.entry(object), &object.uid, outcome, now);
        self.entries.insert(object.key.clone(), entry);
    }

    /// The objects whose cleanups are to be called again.
    pub fn due(&self, now: Instant) -> BTreeSet<Key> {
        let due = self.entries.iter().filter(|(_, entry)| entry.is_due(now));
        due.map(|(key, _)| key.clone()).collect()
    }

    /// It is gone.
    pub fn forget(&mut self, key: &Key) {
        self.entries.remove(key);
    }

    fn entry(&self, object: &Object) -> Option<&Entry> {
        self.entries.get(&object.key).filter(|entry| entry.uid == object.uid)
    }
}

/// What is known of archived objects that are deleted: several of them may have had one name. It is forgotten with the
/// process too.
#[derive(Debug, Default)]
pub struct ArchivedCleanupStates {
    /// By uid, each with whether the walk that is under way has come to it.
    entries: BTreeMap<String, (Entry, bool)>,
}

impl ArchivedCleanupStates {
    /// The state of the cleanup of an object whose kind has one.
    pub fn of(&self, object: &Object, now: Instant) -> CleanupState {
        state(object, self.entry(&object.uid), now)
    }

    /// What came of a call for an object.
    pub fn record(&mut self, uid: &str, outcome: CallOutcome, now: Instant) {
        let entry = Entry::after(self.entry(uid), uid, outcome, now);
        self.entries.insert(uid.to_owned(), (entry, true));
    }

    /// A walk has come to this one.
    pub fn found(&mut self, uid: &str) {
        if let Some((_, is_found)) = self.entries.get_mut(uid) {
            *is_found = true;
        }
    }

    /// A walk is over: what it has not come to is gone.
    pub fn end_walk(&mut self) {
        self.entries.retain(|_, (_, is_found)| std::mem::take(is_found));
    }

    fn entry(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid).map(|(entry, _)| entry)
    }
}

fn fails(state: &CleanupState) -> bool {
    matches!(state, CleanupState::Remaining(Remaining::Failed(_)))
}

/// Whether an object, as it was just read, is to be cleaned up: it is deleted, drains, and nothing else keeps it in
/// that phase.
pub fn is_due(object: &Object) -> bool {
    let drains = object.state == DeletionState::Deleting && object.phase == Some(Phase::Draining);
    drains && object.references.is_empty() && object.others.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{deleting, key};

    fn object(uid: &str, phase: Option<Phase>) -> Object {
        Object {
            phase,
            ..deleting(key("Cluster", "a"), uid)
        }
    }

    fn pending(pause: Option<Duration>) -> CallOutcome {
        CallOutcome::Pending("a machine".to_owned(), pause)
    }

    #[test]
    fn only_a_confirmation_for_that_very_object_counts() {
        let (draining, mut states) = (object("u1", Some(Phase::Draining)), CleanupStates::default());
        let now = Instant::now();
        assert_eq!(states.of(&draining, now), CleanupState::Unconfirmed, "nobody has asked");
        states.record(&draining, pending(None), now);
        let left = CleanupState::Remaining(Remaining::Pending("a machine".to_owned()));
        assert_eq!(states.of(&draining, now), left);
        states.record(&draining, CallOutcome::Failed("no route".to_owned()), now);
        let left = CleanupState::Remaining(Remaining::Failed("no route".to_owned()));
        assert_eq!(states.of(&draining, now), left);
        states.record(&draining, CallOutcome::Gone, now);
        let later = now + Duration::from_hours(100);
        assert_eq!(states.of(&draining, later), CleanupState::Gone);
        assert_eq!(
            states.of(&object("u2", Some(Phase::Draining)), later),
            CleanupState::Unconfirmed
        );
        states.forget(&draining.key);
        assert_eq!(states.of(&draining, later), CleanupState::Unconfirmed);
    }

    #[test]
    fn what_finalizes_was_confirmed_before() {
        let finalizing = object("u1", Some(Phase::Finalizing));
        assert_eq!(
            CleanupStates::default().of(&finalizing, Instant::now()),
            CleanupState::Gone
        );
    }

    #[test]
    fn a_cleanup_is_called_again_when_it_says_or_later_each_time() {
        let (draining, mut states) = (object("u1", Some(Phase::Draining)), CleanupStates::default());
        let now = Instant::now();
        let mut pause = |outcome| {
            states.record(&draining, outcome, now);
            let seconds = (0..).find(|&seconds| {
                let then = now + Duration::from_secs(seconds);
                let is_due = states.due(then).contains(&draining.key);
                assert_eq!(is_due, states.of(&draining, then) == CleanupState::Unconfirmed);
                is_due
            });
            seconds.expect("it is called again")
        };
        assert_eq!(pause(pending(None)), 1);
        assert_eq!(pause(pending(None)), 2);
        assert_eq!(pause(CallOutcome::Failed("no route".to_owned())), 1);
        assert_eq!(pause(CallOutcome::Failed("no route".to_owned())), 2);
        assert_eq!(pause(pending(Some(Duration::from_secs(7)))), 7);
        assert_eq!(pause(pending(None)), 2);
        for _ in 0..80 {
            assert!(pause(CallOutcome::Failed("no route".to_owned())) <= 64);
        }
        assert_eq!(pause(pending(Some(Duration::MAX))), 86_400);
        assert_eq!(pause(pending(Some(Duration::ZERO))), 1);
    }

    /// Without the uid, what is left of the one is confirmed by the other.
    #[test]
    fn archived_objects_that_had_one_name_are_told_apart_and_forgotten_once_no_walk_finds_them() {
        let [one, other] = ["u1", "u2"].map(|uid| object(uid, Some(Phase::Draining)));
        let (now, mut states) = (Instant::now(), ArchivedCleanupStates::default());
        states.record("u1", pending(None), now);
        states.record("u2", CallOutcome::Gone, now);
        let left = CleanupState::Remaining(Remaining::Pending("a machine".to_owned()));
        assert_eq!(
            (states.of(&one, now), states.of(&other, now)),
            (left, CleanupState::Gone)
        );
        let later = now + Duration::from_secs(1);
        assert_eq!(states.of(&one, later), CleanupState::Unconfirmed, "it is asked again");
        states.end_walk();
        states.found("u2");
        states.end_walk();
        assert_eq!(states.of(&one, now), CleanupState::Unconfirmed, "it is gone");
        assert_eq!(states.of(&other, now), CleanupState::Gone);
        let finalizing = object("u1", Some(Phase::Finalizing));
        assert_eq!(
            states.of(&finalizing, now),
            CleanupState::Gone,
            "it was confirmed before"
        );
    }

    #[test]
    fn nothing_is_cleaned_up_before_its_time() {
        assert!(is_due(&object("u1", Some(Phase::Draining))));
        for phase in [None, Some(Phase::Deleting), Some(Phase::Finalizing)] {
            assert!(!is_due(&object("u1", phase)));
        }
        let others = BTreeSet::from(["a.b/c".to_owned()]);
        let draining = object("u1", Some(Phase::Draining));
        assert!(!is_due(&Object {
            others,
            ..draining.clone()
        }));
        for state in [DeletionState::Live, DeletionState::Requested, DeletionState::Evicting] {
            assert!(!is_due(&Object {
                state,
                ..draining.clone()
            }));
        }
    }
}
