//! What cleanups have said of objects, and when they are called again. Calls none itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_model::deletion::Phase;
use tokio::time::Instant;

use crate::decide::{Left, Outside};
use crate::object::{Key, Object, Standing};

/// After a first call that was not the last one; each further one doubles it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const TIMES_DOUBLED: u32 = 6;
/// A cleanup that says to ask earlier is asked then.
const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
/// A cleanup that says to ask later is asked then.
const AGAIN_AFTER_MAX: Duration = Duration::from_hours(24);

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
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
    outside: Outside,
    again: Instant,
    /// How often in succession before something was left, or the call failed.
    times: u32,
}

impl Entry {
    /// What is known after one more call.
    fn after(known: Option<&Self>, uid: &str, said: Said, now: Instant) -> Self {
        let (outside, asked) = match said {
            Said::Gone => (Outside::Gone, None),
            Said::Pending(what, pause) => (Outside::Left(Left::Pending(what)), pause),
            Said::Failed(why) => (Outside::Left(Left::Failed(why)), None),
        };
        let known = known.filter(|entry| fails(&entry.outside) == fails(&outside));
        let times = known.map_or(0, |entry| (entry.times + 1).min(TIMES_DOUBLED));
        let pause = asked.unwrap_or(AGAIN_AFTER * 2_u32.pow(times));
        Self {
            uid: uid.to_owned(),
            outside,
            again: now + pause.clamp(AGAIN_AFTER_MIN, AGAIN_AFTER_MAX),
            times,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.outside != Outside::Gone && self.again <= now
    }
}

/// What an object has outside, of which this is known.
fn outside(object: &Object, entry: Option<&Entry>, now: Instant) -> Outside {
    // That phase is recorded only after it was confirmed.
    if object.phase >= Some(Phase::Finalizing) {
        return Outside::Gone;
    }
    match entry {
        Some(entry) if !entry.is_due(now) => entry.outside.clone(),
        Some(_) | None => Outside::Unconfirmed,
    }
}

/// What is known of all objects. It is forgotten with the process: the next one asks anew.
#[derive(Debug, Default)]
pub struct Outsides {
    entries: BTreeMap<Key, Entry>,
}

impl Outsides {
    /// What an object has outside whose kind has a cleanup.
    pub fn of(&self, object: &Object, now: Instant) -> Outside {
        outside(object, self.entry(object), now)
    }

    /// What came of a call for an object.
    pub fn said(&mut self, object: &Object, said: Said, now: Instant) {
        let entry = Entry::after(self.entry(object), &object.uid, said, now);
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
pub struct ArchivedOutsides {
    /// By uid, each with whether the walk that is under way has come to it.
    entries: BTreeMap<String, (Entry, bool)>,
}

impl ArchivedOutsides {
    /// What an object has outside whose kind has a cleanup.
    pub fn of(&self, object: &Object, now: Instant) -> Outside {
        outside(object, self.entry(&object.uid), now)
    }

    /// What came of a call for an object.
    pub fn said(&mut self, uid: &str, said: Said, now: Instant) {
        let entry = Entry::after(self.entry(uid), uid, said, now);
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

fn fails(outside: &Outside) -> bool {
    matches!(outside, Outside::Left(Left::Failed(_)))
}

/// Whether an object, as it was just read, is to be cleaned up: it is deleted, drains, and nothing else keeps it in
/// that phase.
pub fn is_due(object: &Object) -> bool {
    let drains = object.standing == Standing::Deleting && object.phase == Some(Phase::Draining);
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

    fn pending(pause: Option<Duration>) -> Said {
        Said::Pending("a machine".to_owned(), pause)
    }

    #[test]
    fn only_a_confirmation_for_that_very_object_counts() {
        let (draining, mut outsides) = (object("u1", Some(Phase::Draining)), Outsides::default());
        let now = Instant::now();
        assert_eq!(outsides.of(&draining, now), Outside::Unconfirmed, "nobody has asked");
        outsides.said(&draining, pending(None), now);
        let left = Outside::Left(Left::Pending("a machine".to_owned()));
        assert_eq!(outsides.of(&draining, now), left);
        outsides.said(&draining, Said::Failed("no route".to_owned()), now);
        let left = Outside::Left(Left::Failed("no route".to_owned()));
        assert_eq!(outsides.of(&draining, now), left);
        outsides.said(&draining, Said::Gone, now);
        let later = now + Duration::from_hours(100);
        assert_eq!(outsides.of(&draining, later), Outside::Gone);
        assert_eq!(
            outsides.of(&object("u2", Some(Phase::Draining)), later),
            Outside::Unconfirmed
        );
        outsides.forget(&draining.key);
        assert_eq!(outsides.of(&draining, later), Outside::Unconfirmed);
    }

    #[test]
    fn what_finalizes_was_confirmed_before() {
        let finalizing = object("u1", Some(Phase::Finalizing));
        assert_eq!(Outsides::default().of(&finalizing, Instant::now()), Outside::Gone);
    }

    #[test]
    fn a_cleanup_is_called_again_when_it_says_or_later_each_time() {
        let (draining, mut outsides) = (object("u1", Some(Phase::Draining)), Outsides::default());
        let now = Instant::now();
        let mut pause = |said| {
            outsides.said(&draining, said, now);
            let seconds = (0..).find(|&seconds| {
                let then = now + Duration::from_secs(seconds);
                let is_due = outsides.due(then).contains(&draining.key);
                assert_eq!(is_due, outsides.of(&draining, then) == Outside::Unconfirmed);
                is_due
            });
            seconds.expect("it is called again")
        };
        assert_eq!(pause(pending(None)), 1);
        assert_eq!(pause(pending(None)), 2);
        assert_eq!(pause(Said::Failed("no route".to_owned())), 1);
        assert_eq!(pause(Said::Failed("no route".to_owned())), 2);
        assert_eq!(pause(pending(Some(Duration::from_secs(7)))), 7);
        assert_eq!(pause(pending(None)), 2);
        for _ in 0..80 {
            assert!(pause(Said::Failed("no route".to_owned())) <= 64);
        }
        assert_eq!(pause(pending(Some(Duration::MAX))), 86_400);
        assert_eq!(pause(pending(Some(Duration::ZERO))), 1);
    }

    /// Without the uid, what is left of the one is confirmed by the other.
    #[test]
    fn archived_objects_that_had_one_name_are_told_apart_and_forgotten_once_no_walk_finds_them() {
        let [one, other] = ["u1", "u2"].map(|uid| object(uid, Some(Phase::Draining)));
        let (now, mut outsides) = (Instant::now(), ArchivedOutsides::default());
        outsides.said("u1", pending(None), now);
        outsides.said("u2", Said::Gone, now);
        let left = Outside::Left(Left::Pending("a machine".to_owned()));
        assert_eq!(
            (outsides.of(&one, now), outsides.of(&other, now)),
            (left, Outside::Gone)
        );
        let later = now + Duration::from_secs(1);
        assert_eq!(outsides.of(&one, later), Outside::Unconfirmed, "it is asked again");
        outsides.end_walk();
        outsides.found("u2");
        outsides.end_walk();
        assert_eq!(outsides.of(&one, now), Outside::Unconfirmed, "it is gone");
        assert_eq!(outsides.of(&other, now), Outside::Gone);
        let finalizing = object("u1", Some(Phase::Finalizing));
        assert_eq!(outsides.of(&finalizing, now), Outside::Gone, "it was confirmed before");
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
        for standing in [Standing::Live, Standing::Requested, Standing::Evicting] {
            assert!(!is_due(&Object {
                standing,
                ..draining.clone()
            }));
        }
    }
}
