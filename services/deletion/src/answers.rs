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
    /// How many there were.
    pub count: usize,
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
        // Of the same holders, the cluster may say something else each time.
        let swept = Swept { refused: None, ..swept };
        let known = self.sweeps.get(&object.key).filter(|known| known.swept == swept);
        let same = known.map_or(0, |known| (known.same + 1).min(TIMES_DOUBLED));
        let pause = match swept.goes_on {
            true => Duration::ZERO,
            false => AGAIN_AFTER * 2_u32.pow(same),
        };
        let record = SweepRecord {
            uid: object.uid.clone(),
            swept,
            again: now + pause,
            same,
        };
        self.sweeps.insert(object.key.clone(), record);
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
        !record.any(|record| record.is_of_use(object, now))
    }

    /// Adds to the input what is known of those that hold the object out of the archive.
    pub fn complete(&self, input: &mut Input<'_>, now: Instant) {
        let object = input.object;
        let record = self.sweeps.get(&object.key);
        let record = record.filter(|record| record.uid == object.uid && record.is_of_use(object, now));
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
    fn is_of_use(&self, object: &Object, now: Instant) -> bool {
        !self.waits() || (self.swept.phase == object.phase && now < self.again)
    }
}
