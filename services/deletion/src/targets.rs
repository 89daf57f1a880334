//! Archived objects that fields of live ones name, and that bear their references as rows: what the archive has
//! answered about them, and how long that is of use. Asks nothing itself.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::decide::{Input, Named};
use crate::object::{DeletionState, Key, Object};

/// Until the archive is asked again for what it does not have, or what is being deleted there.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Each answer that is the same doubles it.
const TIMES_DOUBLED: u32 = 5;

/// What the archive says of an object that a field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is archived, and bears the reference.
    Held,
    /// It is archived, and being deleted.
    Leaving,
    /// There is none of that name.
    Absent,
}

#[derive(Debug)]
struct Answered {
    answer: Answer,
    again: Instant,
    /// How often in succession it was the same.
    same: u32,
}

/// What was answered to one holder.
#[derive(Debug, Default)]
struct Asked {
    uid: String,
    of: BTreeMap<Key, Answered>,
}

/// All answers, by holder.
#[derive(Debug, Default)]
pub struct Targets {
    asked: BTreeMap<Key, Asked>,
}

impl Targets {
    /// What the archive has answered to a holder.
    pub fn answered(&mut self, holder: &Object, target: Key, answer: Answer, now: Instant) {
        let asked = self.asked.entry(holder.key.clone()).or_default();
        if asked.uid != holder.uid {
            *asked = Asked {
                uid: holder.uid.clone(),
                of: BTreeMap::new(),
            };
        }
        asked
            .of
            .retain(|target, _| holder.edges.iter().any(|edge| edge.target == *target));
        let known = asked.of.get(&target).filter(|known| known.answer == answer);
        let same = known.map_or(0, |known| (known.same + 1).min(TIMES_DOUBLED));
        let again = now + AGAIN_AFTER * 2_u32.pow(same);
        asked.of.insert(target, Answered { answer, again, same });
    }

    /// These holders are gone, or what they name may be another object by now.
    pub fn forget<'k>(&mut self, holders: impl IntoIterator<Item = &'k Key>) {
        for holder in holders {
            self.asked.remove(holder);
        }
    }

    /// The holders for which the archive is to be asked again.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = Key> {
        let due = self.asked.iter().filter(move |(_, asked)| {
            let mut answers = asked.of.values();
            answers.any(|known| known.answer != Answer::Held && known.again <= now)
        });
        due.map(|(key, _)| key.clone())
    }

    /// Adds to the input on a live object what is known of archived ones that its fields name. Other services'
    /// archives, whose kinds `is_foreign` knows, are theirs.
    pub fn complete(&self, input: &mut Input<'_>, is_foreign: impl Fn(&Key) -> bool, now: Instant) {
        let object = input.object;
        if object.state != DeletionState::Live {
            return;
        }
        let asked = self.asked.get(&object.key).filter(|asked| asked.uid == object.uid);
        for (edge, named) in object.edges.iter().zip(&mut input.named) {
            if *named != Named::Absent || is_foreign(&edge.target) {
                continue;
            }
            let known = asked.and_then(|asked| asked.of.get(&edge.target));
            *named = match known {
                Some(Answered {
                    answer: Answer::Held, ..
                }) => Named::Archived { leaving: false },
                Some(known) if now < known.again && known.answer == Answer::Leaving => {
                    Named::Archived { leaving: true }
                }
                Some(known) if now < known.again => Named::Absent,
                Some(_) | None => Named::Unasked,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::reference::OnDelete;

    use super::*;
    use crate::decide::{Archived, CleanupState};
    use crate::fixture::{key, live};
    use crate::object::Edge;

    fn run(uid: &str, pipeline: &str) -> Object {
        Object {
            edges: vec![Edge {
                reference: "pipeline",
                target: key("Pipeline", pipeline),
                owned: false,
                on_delete: OnDelete::Cascade,
            }],
            ..live(key("Run", "r"), uid)
        }
    }

    fn named(targets: &Targets, object: &Object, is_foreign: bool, now: Instant) -> Named {
        let mut input = Input {
            object,
            named: vec![Named::Absent],
            bearers: Vec::new(),
            has_former: false,
            claims: Vec::new(),
            missing: Vec::new(),
            holders_unknown: Vec::new(),
            targets_unknown: Vec::new(),
            cleanup: CleanupState::Gone,
            archived: Archived::Off,
        };
        targets.complete(&mut input, |_| is_foreign, now);
        input.named.remove(0)
    }

    #[test]
    fn the_archive_is_asked_once_for_what_bears_the_reference_and_again_for_what_does_not() {
        let (mut targets, begun) = (Targets::default(), Instant::now());
        let (object, target) = (run("u", "p"), key("Pipeline", "p"));
        assert_eq!(named(&targets, &object, false, begun), Named::Unasked);
        assert_eq!(named(&targets, &object, true, begun), Named::Absent, "another archive");
        let mut now = begun;
        for (answer, is) in [
            (Answer::Absent, Named::Absent),
            (Answer::Leaving, Named::Archived { leaving: true }),
        ] {
            targets.answered(&object, target.clone(), answer, now);
            assert_eq!(named(&targets, &object, false, now), is);
            assert_eq!(targets.due(now).count(), 0);
            now += AGAIN_AFTER;
            assert_eq!(named(&targets, &object, false, now), Named::Unasked);
            assert_eq!(targets.due(now).count(), 1);
        }
        targets.answered(&object, target.clone(), Answer::Leaving, now);
        let later = now + AGAIN_AFTER;
        assert_eq!(targets.due(later).count(), 0, "the same answer comes less often");
        targets.answered(&object, target, Answer::Held, later);
        let much_later = later + AGAIN_AFTER * 1_000;
        assert_eq!(targets.due(much_later).count(), 0);
        let held = Named::Archived { leaving: false };
        assert_eq!(named(&targets, &object, false, much_later), held);
    }

    #[test]
    fn an_answer_is_one_to_that_holder_of_that_target() {
        let (mut targets, now) = (Targets::default(), Instant::now());
        targets.answered(&run("u", "p"), key("Pipeline", "p"), Answer::Held, now);
        for other in [run("another", "p"), run("u", "q")] {
            assert_eq!(named(&targets, &other, false, now), Named::Unasked, "{other:?}");
        }
        let leaves = Object {
            state: DeletionState::Deleting,
            ..run("u", "p")
        };
        assert_eq!(named(&targets, &leaves, false, now), Named::Absent, "it places nothing");
        targets.answered(&run("u", "q"), key("Pipeline", "q"), Answer::Held, now);
        assert_eq!(
            named(&targets, &run("u", "p"), false, now),
            Named::Unasked,
            "its field had another name"
        );
        targets.forget([&key("Run", "r")]);
        assert_eq!(named(&targets, &run("u", "q"), false, now), Named::Unasked);
    }
}
