//! Objects that fields of live ones name, or named once, and that have their references as rows: what the archive has
//! answered about them, and how long that is of use. Asks nothing itself.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::decide::{Input, Named};
use crate::graph::Graph;
use crate::object::{DeletionState, Edge, Key, Object};

/// Until the archive is asked again for what it does not have, or what is being deleted there.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Each answer that is the same doubles it.
const TIMES_DOUBLED: u32 = 5;

/// What the archive says of an object that a field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is archived, and has the reference.
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
struct HolderAnswers {
    uid: String,
    of: BTreeMap<Key, Answered>,
    former: Option<Former>,
}

/// That an object from which the holder was moved holds it still.
#[derive(Debug)]
struct Former {
    /// What the holder names instead.
    edges: Vec<Edge>,
    again: Instant,
    /// How often in succession it was so.
    same: u32,
}

/// All answers, by holder.
#[derive(Debug, Default)]
pub struct Targets {
    asked: BTreeMap<Key, HolderAnswers>,
}

impl Targets {
    /// What the archive has answered to a holder.
    pub fn answered(&mut self, holder: &Object, target: Key, answer: Answer, now: Instant) {
        let asked = self.of(holder);
        asked
            .of
            .retain(|target, _| holder.edges.iter().any(|edge| edge.target == *target));
        let known = asked.of.get(&target).filter(|known| known.answer == answer);
        let same = known.map_or(0, |known| (known.same + 1).min(TIMES_DOUBLED));
        let again = now + AGAIN_AFTER * 2_u32.pow(same);
        asked.of.insert(target, Answered { answer, again, same });
    }

    /// Whether an object holds a holder by a row that was moved from there, as the archive has answered.
    pub fn asked_for_former(&mut self, holder: &Object, has_former: bool, now: Instant) {
        let asked = self.of(holder);
        let known = asked.former.take().filter(|known| known.edges == holder.edges);
        let same = known.map_or(0, |known| (known.same + 1).min(TIMES_DOUBLED));
        asked.former = has_former.then(|| Former {
            edges: holder.edges.clone(),
            again: now + AGAIN_AFTER * 2_u32.pow(same),
            same,
        });
    }

    fn of(&mut self, holder: &Object) -> &mut HolderAnswers {
        let asked = self.asked.entry(holder.key.clone()).or_default();
        if asked.uid != holder.uid {
            *asked = HolderAnswers {
                uid: holder.uid.clone(),
                ..HolderAnswers::default()
            };
        }
        asked
    }

    /// The answer about the former target of a live holder whose fields have not changed since.
    fn former(&self, holder: &Object) -> Option<&Former> {
        let asked = self.asked.get(&holder.key).filter(|asked| asked.uid == holder.uid)?;
        let former = asked.former.as_ref()?;
        (holder.state == DeletionState::Live && former.edges == holder.edges).then_some(former)
    }

    /// These holders are gone, or what they name may be another object by now.
    pub fn forget<'k>(&mut self, holders: impl IntoIterator<Item = &'k Key>) {
        for holder in holders {
            self.asked.remove(holder);
        }
    }

    /// The holders for which the archive is to be asked again.
    pub fn due(&self, graph: &Graph, now: Instant) -> impl Iterator<Item = Key> {
        let due = self.asked.iter().filter(move |(key, asked)| {
            let former = graph.get(key).and_then(|holder| self.former(holder));
            let mut answers = asked.of.values();
            former.is_some_and(|former| former.again <= now)
                || answers.any(|known| known.answer != Answer::Held && known.again <= now)
        });
        due.map(|(key, _)| key.clone())
    }

    /// Adds to the input on a live object what is known of archived ones that its fields name, or named once. Other
    /// services' archives, whose kinds `is_foreign` knows, are theirs. What is leaving the cluster does not wait for a
    /// holder that an archived object holds, also while that is asked again.
    pub fn complete(&self, input: &mut Input<'_>, graph: &Graph, is_foreign: impl Fn(&Key) -> bool, now: Instant) {
        let object = input.object;
        for missing in &mut input.missing {
            let holder = graph.get(&missing.holder);
            missing.stays |= holder.is_some_and(|holder| self.former(holder).is_some());
        }
        if object.state != DeletionState::Live {
            return;
        }
        input.has_former |= self.former(object).is_some_and(|former| now < former.again);
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
    use crate::decide::{Archived, CleanupState, MissingReference};
    use crate::fixture::{deleting, key, live};

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
            targets: Vec::new(),
            has_former: false,
            references: Vec::new(),
            missing: Vec::new(),
            holders_unknown: Vec::new(),
            targets_unknown: Vec::new(),
            cleanup: CleanupState::Gone,
            archived: Archived::Off,
        };
        targets.complete(&mut input, &Graph::new(Vec::new()), |_| is_foreign, now);
        input.named.remove(0)
    }

    #[test]
    fn the_archive_is_asked_once_for_what_bears_the_reference_and_again_for_what_does_not() {
        let (mut targets, begun) = (Targets::default(), Instant::now());
        let (object, target, graph) = (run("u", "p"), key("Pipeline", "p"), Graph::new(Vec::new()));
        assert_eq!(named(&targets, &object, false, begun), Named::Unasked);
        assert_eq!(named(&targets, &object, true, begun), Named::Absent, "another archive");
        let mut now = begun;
        for (answer, is) in [
            (Answer::Absent, Named::Absent),
            (Answer::Leaving, Named::Archived { leaving: true }),
        ] {
            targets.answered(&object, target.clone(), answer, now);
            assert_eq!(named(&targets, &object, false, now), is);
            assert_eq!(targets.due(&graph, now).count(), 0);
            now += AGAIN_AFTER;
            assert_eq!(named(&targets, &object, false, now), Named::Unasked);
            assert_eq!(targets.due(&graph, now).count(), 1);
        }
        targets.answered(&object, target.clone(), Answer::Leaving, now);
        let later = now + AGAIN_AFTER;
        assert_eq!(
            targets.due(&graph, later).count(),
            0,
            "the same answer comes less often"
        );
        targets.answered(&object, target, Answer::Held, later);
        let much_later = later + AGAIN_AFTER * 1_000;
        assert_eq!(targets.due(&graph, much_later).count(), 0);
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

    /// Whether a live object stays with an archived one from which it was moved, as far as is known: for itself, and
    /// for what it names.
    fn stays(targets: &Targets, known: Object, now: Instant) -> (bool, bool) {
        let (mut graph, at) = (Graph::new(Vec::new()), known.key.clone());
        graph.apply(known);
        let missing = MissingReference {
            holder: at.clone(),
            owned: false,
            cascades: true,
            stays: false,
        };
        let named = deleting(key("Pipeline", "p"), "p");
        let of = |object, missing| {
            let mut input = Input {
                object,
                named: Vec::new(),
                targets: Vec::new(),
                has_former: false,
                references: Vec::new(),
                missing,
                holders_unknown: Vec::new(),
                targets_unknown: Vec::new(),
                cleanup: CleanupState::Gone,
                archived: Archived::Off,
            };
            targets.complete(&mut input, &graph, |_| false, now);
            (input.has_former, input.missing.iter().any(|missing| missing.stays))
        };
        let holder = graph.get(&at).expect("it is known");
        (of(holder, Vec::new()).0, of(&named, vec![missing]).1)
    }

    /// As if an answer counted for ever, or what is being deleted waited each time that the archive is asked again.
    #[test]
    fn what_the_archive_holds_stays_until_it_is_asked_again_and_is_waited_for_only_once_it_goes() {
        let (mut targets, begun, object) = (Targets::default(), Instant::now(), run("u", "p"));
        let mut graph = Graph::new(Vec::new());
        graph.apply(object.clone());
        assert_eq!(
            stays(&targets, object.clone(), begun),
            (false, false),
            "nobody has asked"
        );
        targets.asked_for_former(&object, true, begun);
        assert_eq!(stays(&targets, object.clone(), begun), (true, true));
        assert_eq!(targets.due(&graph, begun).count(), 0);
        let then = begun + AGAIN_AFTER;
        assert_eq!(
            stays(&targets, object.clone(), then),
            (false, true),
            "it is asked again"
        );
        assert_eq!(targets.due(&graph, then).count(), 1);
        targets.asked_for_former(&object, true, then);
        assert_eq!(targets.due(&graph, then + AGAIN_AFTER).count(), 0, "less often");
        targets.asked_for_former(&object, false, then);
        assert_eq!(stays(&targets, object, then), (false, false), "it is deleted with it");
        assert_eq!(targets.due(&graph, then + AGAIN_AFTER * 1_000).count(), 0);
    }

    #[test]
    fn what_the_archive_holds_is_that_live_object_with_those_fields() {
        let (mut targets, now, object) = (Targets::default(), Instant::now(), run("u", "p"));
        targets.asked_for_former(&object, true, now);
        let leaves = Object {
            state: DeletionState::Deleting,
            ..object
        };
        for other in [run("another", "p"), run("u", "q"), leaves] {
            assert_eq!(stays(&targets, other.clone(), now), (false, false), "{other:?}");
        }
    }
}
