//! What is absent after a replay, what is returned of it, and what is looked up next. Pure: knows neither the API nor a
//! clock.

use std::time::Duration;

use kindex_model::object::Uid;

use crate::event::Message;
use crate::held::{Absent, Confirmed, Existence, HeldUids, Limits, Stop};

/// Before a look-up that comes after one without an answer.
pub(super) const LOOK_UP_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What is absent after a replay, until the API has said of each whether it exists. Later events do not wait for that:
/// an API that is away would keep all that happens from who follows it.
pub(super) struct Absences {
    absent: Absent,
    /// The end of the replay, until it is returned what is known of all that is absent.
    ended: Option<Message>,
    /// Whether the caller may have changed what is held since absences were compared with it.
    is_changed: bool,
}

/// What is to be done about absences.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// This is returned.
    Return(Confirmed),
    /// This object is looked up.
    LookUp(Uid),
}

impl Absences {
    /// Those of a replay that has ended with this message, and what is not known yet of an earlier one.
    pub(super) fn new(mut absent: Absent, ended: Message, earlier: Option<Self>) -> Self {
        let is_changed = earlier.as_ref().is_some_and(|earlier| earlier.is_changed);
        if let Some(earlier) = earlier {
            absent.absorb(earlier.absent);
        }
        Self {
            absent,
            ended: Some(ended),
            is_changed,
        }
    }

    /// What is to be done, while no look-up is under way.
    ///
    /// # Errors
    /// [`Stop`] where more is gone than the limits allow, or the replay is not to be trusted.
    pub(super) fn due(&mut self, held: &HeldUids, topic: &str, limits: &Limits) -> Result<Due, Stop> {
        if std::mem::take(&mut self.is_changed) {
            self.absent.retain(held);
        }
        if let Some(confirmed) = self.absent.confirmed(topic, limits)? {
            return Ok(Due::Return(confirmed));
        }
        let uid = self.absent.to_look_up().expect("what is not returned is not known yet");
        Ok(Due::LookUp(uid.clone()))
    }

    /// What the API says of one that was looked up. How long the next look-up waits.
    pub(super) fn answered(&mut self, uid: &Uid, existence: Existence) -> Option<Duration> {
        self.absent.answered(uid, existence);
        match existence {
            Existence::Unknown => Some(LOOK_UP_AGAIN_AFTER),
            Existence::Exists | Existence::Gone => None,
        }
    }

    /// There is an event of this object.
    pub(super) fn record_event(&mut self, uid: &Uid) {
        self.absent.record_event(uid);
    }

    /// So many objects were in partitions that have left, and these are still held.
    pub(super) fn leave(&mut self, objects: usize, held: &HeldUids) {
        self.absent.leave(objects);
        self.absent.retain(held);
    }

    /// The caller may change what is held before anything is done about absences again.
    pub(super) fn mark_changed(&mut self) {
        self.is_changed = true;
    }

    /// Whether the end of the replay was not returned yet. What comes after it waits for that.
    pub(super) fn has_end(&self) -> bool {
        self.ended.is_some()
    }

    /// The end of the replay, which is returned with the first that is known.
    pub(super) fn take_end(&mut self) -> Option<Message> {
        self.ended.take()
    }

    /// All that was absent is known.
    pub(super) fn conclude(&self, held: &mut HeldUids) {
        held.confirmed(&self.absent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::held::Beginning;

    const TOPIC: &str = "runs.example.com";

    fn uid(text: &str) -> Uid {
        Uid::from(text)
    }

    /// What is absent where one is there, after what is not known yet of an earlier replay.
    fn replayed(held: &mut HeldUids, earlier: Option<Absences>) -> Absences {
        held.begin(Beginning::Fresh);
        let there = Event {
            resource_id: uid("there"),
            deletion_timestamp: None,
            topic: TOPIC.to_owned(),
            namespace: String::new(),
            name: String::new(),
            erased: false,
        };
        assert!(held.take(&Message::Event(there, None)).is_none());
        let ended = Message::Replayed(None);
        let absent = held.take(&ended).expect("it has ended");
        Absences::new(absent, ended, earlier)
    }

    fn due(absences: &mut Absences, held: &HeldUids) -> Due {
        let due = absences.due(held, TOPIC, &Limits::DEFAULT);
        due.expect("within the limits")
    }

    fn returned<const G: usize, const U: usize>(gone: [&str; G], unknown: [&str; U]) -> Due {
        Due::Return(Confirmed {
            gone: gone.map(uid).into(),
            unknown: unknown.map(uid).into(),
        })
    }

    /// As if all look-ups waited, which would take an hour for a thousand objects, or none did.
    #[test]
    fn only_a_look_up_without_an_answer_lets_the_next_one_wait() {
        let mut held = HeldUids::new(["a", "b", "c", "there"].map(uid));
        let mut absences = replayed(&mut held, None);
        for (name, existence, pause) in [
            ("a", Existence::Exists, None),
            ("b", Existence::Gone, None),
            ("c", Existence::Unknown, Some(LOOK_UP_AGAIN_AFTER)),
        ] {
            assert_eq!(due(&mut absences, &held), Due::LookUp(uid(name)));
            assert_eq!(absences.answered(&uid(name), existence), pause, "{existence:?}");
        }
        assert_eq!(due(&mut absences, &held), returned(["b"], ["c"]));
        assert_eq!(due(&mut absences, &held), Due::LookUp(uid("c")));
        assert_eq!(absences.answered(&uid("c"), Existence::Gone), None);
        assert_eq!(due(&mut absences, &held), returned(["c"], []));
    }

    /// As if the end of a replay counted as dealt with again after each later answer, or never.
    #[test]
    fn the_end_of_a_replay_is_returned_once() {
        let mut held = HeldUids::new(["a", "there"].map(uid));
        let mut absences = replayed(&mut held, None);
        absences.answered(&uid("a"), Existence::Unknown);
        assert_eq!(due(&mut absences, &held), returned([], ["a"]));
        assert!(absences.has_end());
        assert_eq!(absences.take_end(), Some(Message::Replayed(None)));
        assert!(!absences.has_end());
        assert_eq!(absences.take_end(), None);
        assert!(replayed(&mut held, Some(absences)).has_end(), "that of the next one");
    }

    /// As if what is held no more stayed absent because another replay ended before the next look-up.
    #[test]
    fn what_is_held_no_more_is_not_looked_up_after_the_next_replay_either() {
        for is_replayed_again in [false, true] {
            let mut held = HeldUids::new(["a", "b", "there"].map(uid));
            let mut absences = replayed(&mut held, None);
            absences.mark_changed();
            held.remove(&uid("a"));
            if is_replayed_again {
                absences = replayed(&mut held, Some(absences));
            }
            assert_eq!(due(&mut absences, &held), Due::LookUp(uid("b")), "{is_replayed_again}");
        }
    }
}
