//! What the archive has answered, and how long that is of use. Asks nothing itself.

use std::collections::BTreeMap;
use std::time::Duration;

use kindex_model::deletion::Phase;
use tokio::time::Instant;

use crate::decide::{Archived, Input};
use crate::object::{Key, Object};

/// Until those are asked for again that hold an object out of the archive, if nothing tells of a change before.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Each answer that is the same doubles it.
const TIMES_DOUBLED: u32 = 5;

/// Holders in the cluster whose change it refuses, such as by a webhook, in one sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHolders {
    /// The first one, as people know it.
    pub first: String,
    /// What the cluster has said of that one.
    pub why: String,
    /// How many this sweep has come to. There may be more, which a sweep before has come to, or the next one will.
    pub count: usize,
    /// Whether others are left to the next sweep, because this one was refused too many.
    pub leaves_others: bool,
}

/// What a sweep has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The phase of the object that was looked at.
    pub phase: Option<Phase>,
    /// Who is left.
    pub archived: Archived,
    /// Whether the next sweep may do more: this one has deleted something, or not seen all.
    pub goes_on: bool,
    /// Those of them that cannot be changed. They keep no others from going, and are tried again in a later sweep.
    pub refused: Option<RefusedHolders>,
}

/// What the last sweep for an object has found, and when the next one is due.
#[derive(Debug)]
struct SweepRecord {
    uid: String,
    swept: Swept,
    again: Instant,
    /// How often in succession it was the same.
    same: u32,
    /// Whether the cluster refused to change holders.
    is_refused: bool,
}

/// All answers.
#[derive(Debug, Default)]
pub struct Answers {
    sweeps: BTreeMap<Key, SweepRecord>,
}

impl Answers {
    /// What held these in the cluster may hold them out of the archive now.
    pub fn forget<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) {
        for key in keys {
            self.sweeps.remove(key);
        }
    }

    /// An object is about to be known as `now`. A reference that went may be a row.
    pub fn compare(&mut self, known: &Object, now: &Object) {
        if known.references != now.references {
            self.sweeps.remove(&now.key);
        }
    }

    /// What a sweep has found.
    pub fn swept(&mut self, object: &Object, swept: Swept, now: Instant) {
        let refused = swept.refused.as_ref();
        let (is_refused, leaves_others) = (refused.is_some(), refused.is_some_and(|refused| refused.leaves_others));
        // Of the same holders, the cluster may say something else each time.
        let swept = Swept { refused: None, ..swept };
        let known = self.sweeps.get(&object.key).filter(|known| known.swept == swept);
        let same = known.map_or(0, |known| (known.same + 1).min(TIMES_DOUBLED));
        let (pause, same) = match swept.goes_on {
            true => (Duration::ZERO, same),
            // The same ones are named as long as others wait for their turn: that is no answer yet.
            false if leaves_others => (AGAIN_AFTER, known.map_or(0, |known| known.same)),
            false => (AGAIN_AFTER * 2_u32.pow(same), same),
        };
        let record = SweepRecord {
            uid: object.uid.clone(),
            swept,
            again: now + pause,
            same,
            is_refused,
        };
        self.sweeps.insert(object.key.clone(), record);
    }

    /// By kind, the objects with holders that the cluster refused to change when these were last looked at.
    pub(crate) fn refused(&self) -> BTreeMap<&str, usize> {
        let mut refused = BTreeMap::new();
        for (key, _) in self.sweeps.iter().filter(|(_, record)| record.is_refused) {
            *refused.entry(&*key.kind.kind).or_default() += 1;
        }
        refused
    }

    /// The objects that are to be asked about again.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = Key> {
        let records = self.sweeps.iter();
        let due = records.filter(move |(_, record)| record.again <= now && record.waits());
        due.map(|(key, _)| key.clone())
    }

    /// Whether the archive is to be asked for those that go with an object of another service, in its phase.
    pub fn is_due(&self, object: &Object, now: Instant) -> bool {
        let record = self.sweeps.get(&object.key);
        let mut record = record
            .filter(|record| record.uid == object.uid && record.swept.phase == object.phase)
            .into_iter();
        !record.any(|record| record.is_current(object, now))
    }

    /// Adds to the input what is known of those that hold the object out of the archive.
    pub fn complete(&self, input: &mut Input<'_>, now: Instant) {
        let object = input.object;
        let record = self.sweeps.get(&object.key);
        let record = record.filter(|record| record.uid == object.uid && record.is_current(object, now));
        input.archived = record.map_or(Archived::Unasked, |record| record.swept.archived.clone());
    }
}

impl SweepRecord {
    /// Whether somebody is left who may go.
    fn waits(&self) -> bool {
        match &self.swept.archived {
            Archived::Remaining { plain, owned } => !plain.is_empty() || !owned.is_empty(),
            Archived::Off | Archived::Unasked => true,
        }
    }

    /// Nobody comes to hold what is deleted. Of those that were left, some go in a later phase, and others at any time.
    fn is_current(&self, object: &Object, now: Instant) -> bool {
        !self.waits() || (self.swept.phase == object.phase && now < self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{deleting, key};

    /// What a sweep has found that was refused something of the only holder, or nothing.
    fn swept(leaves_others: Option<bool>) -> Swept {
        let holder = "cluster.x.example.com default/c".to_owned();
        Swept {
            phase: None,
            archived: Archived::Remaining {
                plain: vec![holder.clone()],
                owned: Vec::new(),
            },
            goes_on: false,
            refused: leaves_others.map(|leaves_others| RefusedHolders {
                first: holder,
                why: "admission webhook \"a.b.c\" denied the request: no".to_owned(),
                count: 64,
                leaves_others,
            }),
        }
    }

    /// For how many seconds nobody is asked after each of these answers.
    fn pauses(answers: &mut Answers, found: impl IntoIterator<Item = Swept>) -> Vec<u64> {
        let (object, now) = (deleting(key("Network", "n"), "u"), Instant::now());
        let pause = |swept| {
            answers.swept(&object, swept, now);
            let again = answers.sweeps[&object.key].again;
            again.duration_since(now).as_secs()
        };
        found.into_iter().map(pause).collect()
    }

    /// As if a round over thousands of refused holders took hours, because the same ones are named all the time.
    #[test]
    fn the_pause_is_not_doubled_before_all_holders_have_had_their_turn() {
        let round = [Some(true), Some(true), Some(true), Some(false)];
        let found = round.into_iter().cycle().take(12).map(swept);
        let pauses = pauses(&mut Answers::default(), found);
        assert_eq!(pauses, [2, 2, 2, 4, 2, 2, 2, 8, 2, 2, 2, 16]);
    }

    #[test]
    fn an_object_counts_as_refused_until_a_look_at_it_is_refused_nothing() {
        let mut answers = Answers::default();
        pauses(&mut answers, [swept(Some(false)), swept(Some(true))]);
        assert_eq!(answers.refused(), BTreeMap::from([("Network", 1)]));
        pauses(&mut answers, [swept(None)]);
        assert!(answers.refused().is_empty());
        pauses(&mut answers, [swept(Some(false))]);
        answers.forget([&key("Network", "n")]);
        assert!(answers.refused().is_empty(), "it is gone");
    }
}
