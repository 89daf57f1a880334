//! What a consumer may conclude from a replay about the objects that it holds. Absence alone deletes nothing: the
//! replay has to end properly, each absence is looked up until the API says whether the object exists, and more
//! absences than the limits allow stop with an error. Who looks up is the consumer.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use kindex_model::object::Uid;

use crate::event::Message;
use crate::source::PartitionAssignment;

/// What was before a replay: how far its absences are trusted. The later ones are trusted less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Beginning {
    /// The consumer has no position, or all that it holds was there when all was replayed last.
    #[default]
    Fresh,
    /// Its position is not known any more: the database may have been restored from before it.
    AfterGone,
    /// A replay was stopped. What was absent may come again in parts, each of which has little enough.
    AfterStop,
}

/// What is known of an object when it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// It is there.
    Exists,
    /// The API says that there is none with this uid.
    Gone,
    /// The API does not say.
    Unknown,
}

/// Looks up objects by uid in the API of their service.
#[async_trait]
pub trait LookUp: Send + Sync {
    /// Whether the object is there at this moment.
    async fn look_up(&self, uid: &Uid) -> Existence;
}

/// How many objects one replay may delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Never more than this many.
    pub objects: usize,
    /// Never more than so many of a hundred that are held.
    pub percent: usize,
    /// Up to this many, whatever their share is: of two objects one is half of all.
    pub few: usize,
    /// Whether absences count although the position was not known any more.
    pub after_gone: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Limits {
    /// 1000 objects and 10 %, and up to 10 objects whatever their share is.
    pub const DEFAULT: Self = Self {
        objects: 1000,
        percent: 10,
        few: 10,
        after_gone: false,
    };

    fn allow(&self, gone: usize, held: usize) -> bool {
        gone <= self.objects && (gone <= self.few || gone * 100 <= self.percent * held)
    }
}

/// Why a replay deletes nothing, and somebody has to look.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// Nothing exists, and something was held.
    #[error(
        "the replay of {topic} has no object at all, and {held} are held: nothing is deleted. Is it the right service, \
         and does its database have its objects?"
    )]
    Empty {
        /// What was subscribed to.
        topic: String,
        /// How many objects are held.
        held: usize,
    },
    /// There is more than the limits allow. If it is right, a consumer with higher [`Limits`] accepts it.
    #[error(
        "{gone} of {held} objects of {topic} that are held are gone, first {first}; at most {objects} objects and \
         {percent} % are deleted at once: nothing is deleted"
    )]
    TooMany {
        /// What was subscribed to.
        topic: String,
        /// How many absences were confirmed when it stopped.
        gone: usize,
        /// How many objects are held.
        held: usize,
        /// One of those that are gone.
        first: Uid,
        /// The limit.
        objects: usize,
        /// The limit.
        percent: usize,
    },
    /// The database may be an older one. If it is right, a new consumer with [`Limits::after_gone`] accepts it.
    #[error(
        "{absent} of {held} objects of {topic} that are held are absent, first {first}, and the position was not known \
         any more, or an earlier replay was stopped: the database may have been restored. Nothing is deleted"
    )]
    Restored {
        /// What was subscribed to.
        topic: String,
        /// How many are absent and not known to exist, as far as they were looked up.
        absent: usize,
        /// How many objects are held.
        held: usize,
        /// One of them.
        first: Uid,
    },
}

/// The objects of a topic that a consumer holds something of.
#[derive(Clone, Debug, Default)]
pub struct HeldUids {
    uids: BTreeSet<Uid>,
    replay: Option<Replay>,
    /// Those of the subscription; none where it has all of the topic without saying so.
    partitions: BTreeSet<u32>,
    /// How far absences in a partition are trusted less, until a replay of it ends without a stop; also in one that has
    /// left.
    doubts: BTreeMap<u32, Beginning>,
}

/// A replay that was seen from its beginning.
#[derive(Clone, Debug)]
struct Replay {
    beginning: Beginning,
    /// Held when it began, and not seen in it.
    unseen: BTreeSet<Uid>,
    /// What it is of.
    partitions: BTreeSet<u32>,
    /// Whether it is one of all that is held.
    is_whole: bool,
    is_empty: bool,
}

/// What is held and was not in a replay that ended properly, until the API has said of each whether it exists.
#[derive(Clone, Debug)]
pub struct Absent {
    beginning: Beginning,
    /// Those that are to be looked up.
    uids: BTreeSet<Uid>,
    /// Those that were looked up without an answer: they are again, after the others.
    unknown: BTreeSet<Uid>,
    /// Those that do not exist, and were not returned yet.
    gone: Vec<Uid>,
    /// Whether the end of the replay was returned.
    is_said: bool,
    /// How many objects were held when the replay ended, without those of partitions that have left.
    held: usize,
    partitions: BTreeSet<u32>,
    is_whole: bool,
    is_empty: bool,
}

/// What follows from absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// To be treated as deleted: the API says that they do not exist.
    pub gone: Vec<Uid>,
    /// The API does not say whether they exist: it did not answer, or was not asked any further.
    pub unknown: Vec<Uid>,
}

impl HeldUids {
    /// These.
    pub fn new(uids: impl IntoIterator<Item = Uid>) -> Self {
        Self {
            uids: uids.into_iter().collect(),
            ..Self::default()
        }
    }

    /// One more. A replay under way says nothing of it: it may have begun before the object was there.
    pub fn add(&mut self, uid: Uid) {
        self.uids.insert(uid);
    }

    /// One less.
    pub fn remove(&mut self, uid: &Uid) {
        self.uids.remove(uid);
        if let Some(replay) = &mut self.replay {
            replay.unseen.remove(uid);
        }
    }

    /// Whether something of this object is held.
    pub fn contains(&self, uid: &Uid) -> bool {
        self.uids.contains(uid)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.uids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.uids.is_empty()
    }

    /// A subscription begins from nothing, to all events. A replay that was under way is of no use any more.
    pub fn begin(&mut self, beginning: Beginning) {
        self.doubt(beginning);
        self.replay = Some(Replay {
            beginning,
            unseen: self.uids.clone(),
            partitions: self.partitions.clone(),
            is_whole: true,
            is_empty: true,
        });
    }

    /// The position is not known any more. Partitions that leave before they are replayed are doubted as well.
    pub fn lost(&mut self) {
        self.doubt(Beginning::AfterGone);
    }

    fn doubt(&mut self, why: Beginning) {
        for partition in self.partitions.iter().filter(|_| why != Beginning::Fresh) {
            let doubt = self.doubts.entry(*partition).or_default();
            *doubt = why.max(*doubt);
        }
    }

    /// How far absences in these partitions are trusted. Where all is replayed in which something was stopped, the
    /// limits are about all of that once more.
    fn trust(&self, beginning: Beginning, partitions: &BTreeSet<u32>, is_whole: bool) -> Beginning {
        let is_stopped = |doubt: &Beginning| *doubt == Beginning::AfterStop;
        let mut outside = self
            .doubts
            .iter()
            .filter(|(partition, _)| !partitions.contains(partition));
        let has_all = is_whole && !outside.any(|(_, doubt)| is_stopped(doubt));
        let doubts = partitions.iter().filter_map(|partition| self.doubts.get(partition));
        let doubts = doubts.filter(|doubt| !(has_all && is_stopped(doubt)));
        doubts.copied().fold(beginning, Beginning::max)
    }

    /// A subscription begins that has a part of the objects. What is held of others is forgotten, and returned: nothing
    /// follows from that. Partitions that came anew are replayed, by themselves or with a replay that is under way.
    pub fn keep(&mut self, assignment: &PartitionAssignment) -> Vec<Uid> {
        let left: Vec<Uid> = self.uids.iter().filter(|uid| !assignment.has(uid)).cloned().collect();
        left.iter().for_each(|uid| self.remove(uid));
        self.partitions.clone_from(&assignment.partitions);
        if let Some(replay) = &mut self.replay {
            replay
                .partitions
                .retain(|partition| assignment.partitions.contains(partition));
        }
        if !assignment.added.is_empty() {
            let replay = self.replay.get_or_insert_with(|| Replay {
                beginning: Beginning::Fresh,
                unseen: BTreeSet::new(),
                partitions: BTreeSet::new(),
                is_whole: false,
                is_empty: false,
            });
            replay.partitions.extend(&assignment.added);
            // What was seen before says something of a set of which a part stays: a few partitions may have no object.
            // Of one that came anew as a whole, nothing was seen.
            replay.is_empty |= assignment.partitions.is_subset(&assignment.added);
            let added = self.uids.iter().filter(|uid| assignment.replays(uid));
            replay.unseen.extend(added.cloned());
        }
        left
    }

    /// A message of the subscription, or of one that resumed it. What is absent, once a replay has ended that was
    /// seen from its beginning.
    pub fn take(&mut self, message: &Message) -> Option<Absent> {
        match message {
            Message::Event(event, _) => {
                if let Some(replay) = &mut self.replay {
                    replay.unseen.remove(&event.resource_id);
                    replay.is_empty = false;
                }
                None
            }
            Message::Replayed(_) => self.replay.take().map(|replay| Absent {
                beginning: self.trust(replay.beginning, &replay.partitions, replay.is_whole),
                uids: replay.unseen,
                unknown: BTreeSet::new(),
                gone: Vec::new(),
                is_said: false,
                held: self.uids.len(),
                partitions: replay.partitions,
                is_whole: replay.is_whole,
                is_empty: replay.is_empty,
            }),
            Message::Alive(_) => None,
        }
    }

    /// All that was absent after a replay is known. It says nothing of what was absent in other partitions.
    pub fn confirmed(&mut self, absent: &Absent) {
        self.doubts
            .retain(|partition, _| !absent.partitions.contains(partition));
    }

    /// A replay was stopped. What is absent stays held, and would be in each later replay of its part, among fewer.
    pub fn stopped(&mut self) {
        self.doubt(Beginning::AfterStop);
    }
}

impl Absent {
    /// The one to look up next.
    pub fn to_look_up(&self) -> Option<&Uid> {
        self.uids.first()
    }

    /// What the API says of one that was looked up. Says nothing where it is not absent any more.
    pub fn answered(&mut self, uid: &Uid, existence: Existence) {
        if !self.uids.remove(uid) {
            return;
        }
        match existence {
            Existence::Exists => {}
            Existence::Gone => self.gone.push(uid.clone()),
            Existence::Unknown => {
                self.unknown.insert(uid.clone());
            }
        }
    }

    /// What is known by now, if that is to be returned: once all is known, at the first look-up without an answer, and
    /// later whenever there is more.
    ///
    /// # Guarantees
    /// Nothing that exists, and nothing of which the API does not say so, is among what is gone. While all that is not
    /// known would be too much together with it, nothing is.
    ///
    /// # Errors
    /// [`Stop`] where it would be too much, or the replay is not to be trusted.
    pub fn confirmed(&mut self, topic: &str, limits: &Limits) -> Result<Option<Confirmed>, Stop> {
        self.check(topic, limits)?;
        let is_unreported = !self.is_said && !self.unknown.is_empty();
        let is_over = self.uids.is_empty();
        if !is_unreported && !is_over {
            return Ok(None);
        }
        if is_over {
            self.uids.append(&mut self.unknown);
        }
        let unknown: Vec<Uid> = self.uids.union(&self.unknown).cloned().collect();
        // Then what is returned now and later is not too much either.
        let gone = match limits.allow(self.gone.len() + unknown.len(), self.held) {
            true => std::mem::take(&mut self.gone),
            false => Vec::new(),
        };
        if self.is_said && gone.is_empty() && !unknown.is_empty() {
            return Ok(None);
        }
        self.is_said = true;
        Ok(Some(Confirmed { gone, unknown }))
    }

    /// There is an event of this object, which says more than its absence does.
    pub fn record_event(&mut self, uid: &Uid) {
        self.uids.remove(uid);
        self.unknown.remove(uid);
        self.gone.retain(|gone| gone != uid);
    }

    /// With what was absent after an earlier replay and is not known yet.
    pub fn absorb(&mut self, earlier: Self) {
        let uids = earlier.uids.into_iter().chain(earlier.unknown);
        self.uids.extend(uids.chain(earlier.gone));
        self.beginning = self.beginning.max(earlier.beginning);
        self.partitions.extend(earlier.partitions);
        self.is_whole |= earlier.is_whole;
    }

    /// So many of the objects were in partitions that have left: the limits are about those of the others.
    pub fn leave(&mut self, objects: usize) {
        self.held = self.held.saturating_sub(objects);
    }

    /// Leaves out what is held no more, and the partitions that have left.
    pub fn retain(&mut self, held: &HeldUids) {
        self.partitions.retain(|partition| held.partitions.contains(partition));
        self.beginning = held.trust(self.beginning, &self.partitions, self.is_whole);
        self.uids.retain(|uid| held.contains(uid));
        self.unknown.retain(|uid| held.contains(uid));
        self.gone.retain(|uid| held.contains(uid));
    }

    /// Whether as many as are gone so far may be deleted.
    fn check(&self, topic: &str, limits: &Limits) -> Result<(), Stop> {
        if self.is_empty && !self.uids.is_empty() {
            return Err(Stop::Empty {
                topic: topic.to_owned(),
                held: self.held,
            });
        }
        let Some(first) = self.gone.first().or(self.unknown.first()) else {
            return Ok(());
        };
        let is_trusted = match self.beginning {
            Beginning::Fresh => true,
            Beginning::AfterGone => limits.after_gone,
            Beginning::AfterStop => false,
        };
        if !is_trusted {
            return Err(Stop::Restored {
                topic: topic.to_owned(),
                absent: self.uids.len() + self.unknown.len() + self.gone.len(),
                held: self.held,
                first: first.clone(),
            });
        }
        let gone = self.gone.len();
        match limits.allow(gone, self.held) {
            true => Ok(()),
            false => Err(Stop::TooMany {
                topic: topic.to_owned(),
                gone,
                held: self.held,
                first: first.clone(),
                objects: limits.objects,
                percent: limits.percent,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
