//! What a consumer may conclude from a replay about the objects that it holds. Absence alone deletes nothing: the
//! replay has to end properly, each absence is looked up, and more absences than the limits allow stop with an error.

use std::collections::BTreeSet;

use async_trait::async_trait;
use kindex_model::object::Uid;

use crate::event::Message;
use crate::source::Share;

/// Why a subscription begins from nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The consumer has no position.
    Fresh,
    /// Its position is not known any more: the database may have been restored from before it.
    AfterGone,
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
    /// The database may be an older one. If it is right, a consumer with [`Limits::after_gone`] accepts it.
    #[error(
        "{absent} of {held} objects of {topic} that are held are absent, first {first}, and the position was not known \
         any more: the database may have been restored. Nothing is deleted"
    )]
    Restored {
        /// What was subscribed to.
        topic: String,
        /// How many are absent.
        absent: usize,
        /// How many objects are held.
        held: usize,
        /// One of them.
        first: Uid,
    },
}

/// The objects of a topic that a consumer holds something of.
#[derive(Clone, Debug, Default)]
pub struct Held {
    uids: BTreeSet<Uid>,
    replay: Option<Replay>,
}

/// A replay that was seen from its beginning.
#[derive(Clone, Debug)]
struct Replay {
    beginning: Beginning,
    /// Held when it began, and not seen in it.
    unseen: BTreeSet<Uid>,
    is_empty: bool,
}

/// What is held and was not in a replay that ended properly.
#[derive(Clone, Debug)]
pub struct Absent {
    beginning: Beginning,
    uids: BTreeSet<Uid>,
    held: usize,
    is_empty: bool,
}

impl Held {
    /// These.
    pub fn new(uids: impl IntoIterator<Item = Uid>) -> Self {
        Self {
            uids: uids.into_iter().collect(),
            replay: None,
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
        self.replay = Some(Replay {
            beginning,
            unseen: self.uids.clone(),
            is_empty: true,
        });
    }

    /// A subscription begins that has a part of the objects. What is held of others is forgotten, and returned: nothing
    /// follows from that. Partitions that came anew are replayed, by themselves or with a replay that is under way.
    pub fn keep(&mut self, share: &Share) -> Vec<Uid> {
        let left: Vec<Uid> = self.uids.iter().filter(|uid| !share.has(uid)).cloned().collect();
        left.iter().for_each(|uid| self.remove(uid));
        if !share.added.is_empty() {
            let replay = self.replay.get_or_insert_with(|| Replay {
                beginning: Beginning::Fresh,
                unseen: BTreeSet::new(),
                // Others were seen before. That a few partitions have no object says nothing.
                is_empty: false,
            });
            let added = self.uids.iter().filter(|uid| share.replays(uid));
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
                beginning: replay.beginning,
                uids: replay.unseen,
                held: self.uids.len(),
                is_empty: replay.is_empty,
            }),
            Message::Alive(_) => None,
        }
    }
}

impl Absent {
    /// Those whose absence the API confirms, to be treated as deleted.
    ///
    /// # Guarantees
    /// Nothing that exists, and nothing of which the API does not say so, is among them.
    ///
    /// # Errors
    /// [`Stop`] where it would be too much, or the replay is not to be trusted.
    pub async fn confirm(self, topic: &str, limits: &Limits, look_up: &dyn LookUp) -> Result<Vec<Uid>, Stop> {
        let (held, topic) = (self.held, topic.to_owned());
        let Some(first) = self.uids.first().cloned() else {
            return Ok(Vec::new());
        };
        if self.is_empty {
            return Err(Stop::Empty { topic, held });
        }
        if self.beginning == Beginning::AfterGone && !limits.after_gone {
            let absent = self.uids.len();
            return Err(Stop::Restored {
                topic,
                absent,
                held,
                first,
            });
        }
        let mut gone = Vec::new();
        for uid in self.uids {
            if look_up.look_up(&uid).await == Existence::Gone {
                gone.push(uid);
            }
            if let Some(first) = gone.first().filter(|_| !limits.allow(gone.len(), held)) {
                return Err(Stop::TooMany {
                    topic,
                    gone: gone.len(),
                    held,
                    first: first.clone(),
                    objects: limits.objects,
                    percent: limits.percent,
                });
            }
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::event::Event;

    const TOPIC: &str = "runs.g";
    const LIMITS: Limits = Limits::DEFAULT;

    /// What the API says; gone where nothing is written.
    #[derive(Default)]
    struct Api {
        known: BTreeMap<Uid, Existence>,
        asked: Mutex<Vec<Uid>>,
    }

    #[async_trait]
    impl LookUp for Api {
        async fn look_up(&self, uid: &Uid) -> Existence {
            self.asked.lock().expect("no panic").push(uid.clone());
            self.known.get(uid).copied().unwrap_or(Existence::Gone)
        }
    }

    fn uid(number: usize) -> Uid {
        Uid::from(format!("{number:04}").as_str())
    }

    fn event(number: usize) -> Message {
        let event = Event {
            resource_id: uid(number),
            deletion_timestamp: None,
            topic: TOPIC.to_owned(),
            namespace: String::new(),
            name: String::new(),
            erased: false,
        };
        Message::Event(event, None)
    }

    /// What is absent of so many that are held where these are replayed.
    fn absent(held: usize, beginning: Beginning, replayed: impl IntoIterator<Item = usize>) -> Absent {
        let mut held = Held::new((0..held).map(uid));
        held.begin(beginning);
        for number in replayed {
            assert!(held.take(&event(number)).is_none());
        }
        held.take(&Message::Replayed(None)).expect("it has ended")
    }

    #[tokio::test]
    async fn an_absence_counts_once_the_api_confirms_it() {
        let api = Api {
            known: BTreeMap::from([(uid(3), Existence::Exists), (uid(4), Existence::Unknown)]),
            ..Api::default()
        };
        let gone = absent(6, Beginning::Fresh, [0, 1]).confirm(TOPIC, &LIMITS, &api);
        assert_eq!(gone.await, Ok(vec![uid(2), uid(5)]));
        let asked = api.asked.lock().expect("no panic").clone();
        assert_eq!(
            asked,
            [2, 3, 4, 5].map(uid),
            "each of them, and nothing that was replayed"
        );
    }

    #[tokio::test]
    async fn a_replay_that_deletes_more_than_the_limits_allow_deletes_nothing() {
        let confirm = async |held, replayed, limits: Limits| {
            let api = Api::default();
            let confirmed = absent(held, Beginning::Fresh, replayed)
                .confirm(TOPIC, &limits, &api)
                .await;
            confirmed.map(|gone| gone.len()).map_err(|stop| stop.to_string())
        };
        let limits = Limits {
            objects: 20,
            percent: 10,
            few: 2,
            after_gone: false,
        };
        assert_eq!(confirm(3, 0..1, limits).await, Ok(2), "few, whatever their share is");
        assert_eq!(confirm(100, 0..90, limits).await, Ok(10));
        let share = confirm(100, 0..89, limits).await.expect_err("more than a tenth");
        assert!(
            share.starts_with("11 of 100 objects of runs.g that are held are gone, first 0089"),
            "{share}"
        );
        assert!(share.ends_with("are deleted at once: nothing is deleted"), "{share}");
        assert_eq!(confirm(1000, 0..980, limits).await, Ok(20));
        assert!(confirm(1000, 0..979, limits).await.is_err(), "more than 20");
    }

    #[tokio::test]
    async fn an_empty_replay_deletes_nothing_and_looks_nothing_up() {
        let api = Api::default();
        let confirmed = absent(1, Beginning::Fresh, []).confirm(TOPIC, &LIMITS, &api).await;
        assert!(matches!(confirmed, Err(Stop::Empty { held: 1, .. })), "{confirmed:?}");
        assert!(api.asked.lock().expect("no panic").is_empty());
        let nothing_held = absent(0, Beginning::Fresh, []).confirm(TOPIC, &LIMITS, &api);
        assert_eq!(nothing_held.await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_replay_of_a_database_that_may_be_restored_deletes_nothing_until_somebody_allows_it() {
        let replay = || absent(3, Beginning::AfterGone, [0, 1]);
        let stopped = replay().confirm(TOPIC, &LIMITS, &Api::default()).await;
        assert!(
            matches!(stopped, Err(Stop::Restored { absent: 1, held: 3, .. })),
            "{stopped:?}"
        );
        let allowed = Limits {
            after_gone: true,
            ..LIMITS
        };
        assert_eq!(
            replay().confirm(TOPIC, &allowed, &Api::default()).await,
            Ok(vec![uid(2)])
        );
        let whole = absent(2, Beginning::AfterGone, [0, 1]);
        assert_eq!(whole.confirm(TOPIC, &LIMITS, &Api::default()).await, Ok(Vec::new()));
    }

    #[test]
    fn a_replay_that_was_not_seen_from_beginning_to_end_says_nothing() {
        let mut held = Held::new((0..3).map(uid));
        assert!(held.take(&event(0)).is_none());
        assert!(
            held.take(&Message::Replayed(None)).is_none(),
            "its beginning was not seen"
        );
        held.begin(Beginning::Fresh);
        held.take(&event(0));
        // Cut off, and begun again.
        held.begin(Beginning::Fresh);
        held.take(&event(1));
        let absent = held.take(&Message::Replayed(None)).expect("it has ended");
        assert_eq!(
            absent.uids,
            BTreeSet::from([uid(0), uid(2)]),
            "those of the second replay"
        );
        assert!(held.take(&Message::Replayed(None)).is_none(), "it ends once");
    }

    #[test]
    fn what_is_held_since_the_replay_began_is_not_absent() {
        let mut held = Held::new([uid(0)]);
        held.begin(Beginning::Fresh);
        held.add(uid(1));
        held.take(&event(0));
        let absent = held.take(&Message::Replayed(None)).expect("it has ended");
        assert!(absent.uids.is_empty(), "{absent:?}");
        held.begin(Beginning::Fresh);
        held.remove(&uid(1));
        let absent = held.take(&Message::Replayed(None)).expect("it has ended");
        assert_eq!(
            absent.uids,
            BTreeSet::from([uid(0)]),
            "and what is held no more is not either"
        );
    }
}
