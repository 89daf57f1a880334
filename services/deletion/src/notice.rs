//! What people are shown of an object that waits, or whose reference is refused: a word and a sentence with names.

use jiff::Timestamp;

use crate::decide::{HeldReference, HolderLocation, RefusalReason, Refused, Remaining, Step, Wait};
use crate::object::Key;
use crate::roots::Root;
use fit::{cut, fitted_path};

mod ends;
mod fit;

/// How many names a sentence has.
const NAMES_MAX: usize = 5;
/// The API server refuses longer texts in events.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// That of an object whose deletion waits for itself.
const CYCLE: &str = "DeletionCycle";
/// What such a notice says before the path, and after it.
const CYCLE_SAYS: [&str; 2] = ["the deletion waits for itself: ", ". Drop one of these references"];

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The deletion of the object waits for what it says.
    Deletion,
    /// What the object cannot hold.
    Refusal,
    /// Something else, that nothing waits for.
    Other,
}

/// A word in CamelCase and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `DeletionBlocked`.
    pub reason: &'static str,
    /// Names whom it waits for.
    pub message: String,
    /// Whom it waits for in the end, how long these wait, and which objects are between; empty where that is not known.
    /// The ages are those of the moment: a notice that says the same later has others.
    pub roots: String,
    /// What it is about.
    pub about: About,
}

impl Notice {
    /// Whether the deletion of the object waits for what it says.
    pub fn waits(&self) -> bool {
        self.about == About::Deletion
    }

    /// The same with those that the object waits for in the end, if it waits.
    #[must_use]
    pub fn with_roots(self, roots: &[Root], now: Timestamp) -> Self {
        match self.about {
            About::Deletion => Self {
                roots: ends::shown(roots, now),
                ..self
            },
            About::Refusal | About::Other => self,
        }
    }

    /// All that it says, as far as an event has room.
    pub fn text(&self) -> String {
        let end = match self.roots.as_str() {
            "" => String::new(),
            roots => format!("; in the end for {roots}"),
        };
        let room = MESSAGE_BYTES_MAX.saturating_sub(end.len());
        // The end of a path is what to do.
        if self.reason == CYCLE && self.message.len() > room {
            return self.message.clone();
        }
        format!("{}{end}", cut(&self.message, room))
    }
}

/// Whether a step says anything to people.
pub(crate) fn is_noticed(step: &Step) -> bool {
    match step {
        Step::Wait(_) => true,
        Step::Rest(refused) => !refused.is_empty(),
        _ => false,
    }
}

/// Whether a step waits for other objects, which may wait for the same one in turn.
pub(crate) fn waits_for_objects(step: &Step) -> bool {
    matches!(
        step,
        Step::Wait(Wait::Holders(..) | Wait::Owned(..) | Wait::Archived(_))
    )
}

/// What is said of an object whose deletion waits for itself, by the path from it and back to it.
pub(crate) fn cycle_notice(path: &[Key]) -> Notice {
    let [before, after] = CYCLE_SAYS;
    let path = fitted_path(path, MESSAGE_BYTES_MAX - before.len() - after.len());
    Notice {
        reason: CYCLE,
        message: [before, &path, after].concat(),
        roots: String::new(),
        about: About::Deletion,
    }
}

/// What a step says to people; nothing where all is well.
pub fn notice(step: &Step, cycle: Option<&[Key]>) -> Option<Notice> {
    if let Some(path) = cycle.filter(|_| waits_for_objects(step)) {
        return Some(cycle_notice(path));
    }
    let (reason, message) = match step {
        Step::Wait(Wait::Holders(references, missing)) => {
            of_holders("DeletionBlocked", "still in use by", references, missing)
        }
        Step::Wait(Wait::Owned(references, missing)) => {
            of_holders("DeletionDraining", "waits for what it owns:", references, missing)
        }
        Step::Wait(Wait::Archived(holders)) => ("DeletionBlocked", format!("still in use by {}", listed(holders))),
        Step::Wait(Wait::Finalizers(others)) => (
            "DeletionDraining",
            format!("waits for the cleanup by the controllers of {}", listed(others)),
        ),
        Step::Wait(Wait::Cleanup(Remaining::Pending(what))) => (
            "DeletionDraining",
            format!("waits for what it has outside of the cluster: {what}"),
        ),
        Step::Wait(Wait::Cleanup(Remaining::Failed(why))) => (
            "CleanupFailed",
            format!("what it has outside of the cluster is not removed, and the cleanup is tried again: {why}"),
        ),
        Step::Wait(Wait::Unknown(kinds)) => (
            "DeletionBlocked",
            format!("waits until all objects of {} are known", listed(kinds)),
        ),
        Step::Rest(refused) if !refused.is_empty() => {
            let said: Vec<_> = refused.iter().map(sentence).collect();
            ("ReferenceRefused", said.join("; "))
        }
        Step::Rest(_)
        | Step::Adopt
        | Step::Place { .. }
        | Step::Release(_)
        | Step::Request(_)
        | Step::Delete(_)
        | Step::Record(..)
        | Step::Hold { .. }
        | Step::Keep(_)
        | Step::Sweep
        | Step::CleanUp
        | Step::Free { .. } => return None,
    };
    Some(Notice {
        reason,
        message,
        roots: String::new(),
        about: match step {
            Step::Wait(_) => About::Deletion,
            _ => About::Refusal,
        },
    })
}

/// What is said of a step that waits for another service, as that is called with its address.
pub fn unanswered(place: &str, why: &str) -> Notice {
    Notice {
        reason: "ServiceUnavailable",
        message: format!("waits for {place}: {why}"),
        roots: String::new(),
        about: About::Deletion,
    }
}

fn sentence(refused: &Refused) -> String {
    let why = match refused.why {
        RefusalReason::Leaving => "which is being deleted",
        RefusalReason::Absent => "which does not exist",
        RefusalReason::Unknown => "of which it is not known whether it exists",
        RefusalReason::Itself => "which is the object itself",
    };
    format!("{} names {}, {why}", refused.reference, refused.target)
}

/// Holders that are lost come first, since nobody but an operator can end the wait for them.
fn of_holders(
    reason: &'static str,
    waits: &str,
    references: &[HeldReference],
    missing: &[Key],
) -> (&'static str, String) {
    let (lost, others): (Vec<_>, Vec<_>) = references.iter().partition(|reference| is_lost(reference));
    let references = lost.iter().chain(&others).map(|reference| shown(reference));
    let all: Vec<_> = references.chain(missing.iter().map(ToString::to_string)).collect();
    let names = listed(&all);
    match lost.is_empty() {
        true => (reason, format!("{waits} {names}")),
        false => (
            "HolderNotFound",
            format!("{waits} {names}. What does not exist releases nothing: see `kindex references drop`"),
        ),
    }
}

/// One that is absent from the cluster may be archived: whoever has no archive does not know.
fn is_lost(reference: &HeldReference) -> bool {
    reference.at == HolderLocation::NotFound
}

/// A holder that nobody has seen is named by its reference.
fn shown(reference: &HeldReference) -> String {
    match &reference.at {
        HolderLocation::Seen(holder) => holder.to_string(),
        HolderLocation::Unknown | HolderLocation::Absent => format!("{} (not in the cluster)", reference.name),
        HolderLocation::NotFound => format!("{} (not found)", reference.name),
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.len().min(NAMES_MAX);
    match names.len() - shown {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..shown].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::reference_name::ReferenceName;

    use super::*;
    use crate::fixture::key;

    const HOUR: i64 = 60 * 60;
    const DAY: i64 = 24 * HOUR;

    fn reference(at: HolderLocation) -> HeldReference {
        HeldReference {
            name: ReferenceName::new("Cluster", "x.example.com", "u1").expect("a name"),
            at,
            owned: false,
        }
    }

    #[test]
    fn who_holds_an_object_is_named() {
        for nowhere in [HolderLocation::Unknown, HolderLocation::Absent] {
            let references = vec![reference(HolderLocation::Seen(key("Cluster", "a"))), reference(nowhere)];
            let notice = notice(&Step::Wait(Wait::Holders(references, Vec::new())), None).expect("it waits");
            assert_eq!(notice.reason, "DeletionBlocked");
            assert_eq!(
                notice.message,
                "still in use by cluster.x.example.com default/a, cluster.x.example.com/u1 (not in the cluster)"
            );
        }
    }

    #[test]
    fn a_holder_that_does_not_exist_is_named_first_with_what_to_do() {
        let references = || {
            vec![
                reference(HolderLocation::Seen(key("Cluster", "a"))),
                reference(HolderLocation::NotFound),
            ]
        };
        let notice_of = |step| notice(&step, None).expect("it waits");
        let blocked = notice_of(Step::Wait(Wait::Holders(references(), Vec::new())));
        assert_eq!(blocked.reason, "HolderNotFound");
        assert_eq!(
            blocked.message,
            "still in use by cluster.x.example.com/u1 (not found), cluster.x.example.com default/a. What does not \
             exist releases nothing: see `kindex references drop`"
        );
        let draining = notice_of(Step::Wait(Wait::Owned(references(), Vec::new())));
        assert_eq!(draining.reason, "HolderNotFound");
        assert!(
            draining
                .message
                .starts_with("waits for what it owns: cluster.x.example.com/u1")
        );
        let cycle = notice(
            &Step::Wait(Wait::Holders(references(), Vec::new())),
            Some(&[key("Cluster", "a")]),
        );
        assert_eq!(cycle.expect("it waits").reason, "DeletionCycle", "that is the reason");
    }

    #[test]
    fn a_long_list_is_cut_and_a_cycle_is_shown_as_a_path() {
        let many: Vec<_> = (0..7).map(|number| key("Cluster", &number.to_string())).collect();
        let step = Step::Wait(Wait::Holders(Vec::new(), many));
        assert!(
            notice(&step, None)
                .expect("it waits")
                .message
                .ends_with("default/4 and 2 more")
        );
        let path = notice(&step, Some(&[key("Cluster", "a"), key("Cluster", "b")])).expect("it waits");
        assert!(
            path.message
                .contains("default/a is held by cluster.x.example.com default/b is held by")
        );
    }

    /// As if the end of a path were cut off, and with it what to do.
    #[test]
    fn what_to_do_is_said_of_a_cycle_of_any_length() {
        for length in [2, 15, 30, 5000] {
            let path: Vec<_> = (0..length).map(|number| key("Cluster", &number.to_string())).collect();
            for roots in [&[][..], &[root(&"x".repeat(390), None)]] {
                let notice = cycle_notice(&path).with_roots(roots, Timestamp::UNIX_EPOCH);
                let text = notice.text();
                assert!(text.len() <= MESSAGE_BYTES_MAX, "{length}: {text}");
                assert!(
                    text.contains("default/0. Drop one of these references"),
                    "{length}: {text}"
                );
            }
        }
    }

    #[test]
    fn what_is_left_outside_is_named_and_a_cleanup_that_fails_is_told_from_one_that_waits() {
        let said = |left| notice(&Step::Wait(Wait::Cleanup(left)), None).expect("it waits");
        let pending = said(Remaining::Pending("machine m-17 shuts down".to_owned()));
        assert_eq!(pending.reason, "DeletionDraining");
        assert_eq!(
            pending.message,
            "waits for what it has outside of the cluster: machine m-17 shuts down"
        );
        let failed = said(Remaining::Failed("no route".to_owned()));
        assert_eq!(failed.reason, "CleanupFailed");
        assert!(failed.message.ends_with("tried again: no route"), "{}", failed.message);
    }

    #[test]
    fn a_service_that_does_not_answer_is_named_with_what_came_instead() {
        let notice = unanswered(
            "the service identity at http://identity",
            "unavailable: no answer in time",
        );
        assert_eq!(notice.reason, "ServiceUnavailable");
        assert_eq!(
            notice.message,
            "waits for the service identity at http://identity: unavailable: no answer in time"
        );
        assert!(notice.waits());
    }

    fn root(name: &str, seconds: Option<i64>) -> Root {
        let since = seconds.map(|seconds| Timestamp::from_second(DAY * 9 - seconds).expect("a time"));
        Root {
            name: name.to_owned(),
            since,
            through: [].into(),
        }
    }

    fn rooted(message: &str, roots: &[Root]) -> Notice {
        let notice = Notice {
            reason: "DeletionBlocked",
            message: message.to_owned(),
            roots: String::new(),
            about: About::Deletion,
        };
        notice.with_roots(roots, Timestamp::from_second(DAY * 9).expect("a time"))
    }

    #[test]
    fn what_is_waited_for_in_the_end_is_named_with_its_age() {
        let roots = [root("a", Some(2 * DAY + HOUR)), root("b", Some(59)), root("c", None)];
        let text = rooted("still in use by n", &roots).text();
        assert_eq!(text, "still in use by n; in the end for a (2d), b (59s), c");
        assert_eq!(rooted("still in use by n", &[]).text(), "still in use by n");
        let ages = [
            (0, "0s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (86_399, "23h"),
            (-5, "0s"),
        ];
        for (seconds, age) in ages {
            assert_eq!(rooted("", &[root("a", Some(seconds))]).roots, format!("a ({age})"));
        }
    }

    #[test]
    fn the_names_are_few_and_the_text_has_the_room_of_an_event() {
        let few: Vec<_> = (0..NAMES_MAX + 2)
            .map(|number| root(&number.to_string(), None))
            .collect();
        assert_eq!(rooted("", &few).roots, "0, 1, 2, 3, 4 and 2 more");
        let long = "é".repeat(100);
        let notice = rooted(&"é".repeat(MESSAGE_BYTES_MAX), &[root(&long, None), root(&long, None)]);
        assert_eq!(notice.roots, format!("{long} and 1 more"), "two have no room");
        let text = notice.text();
        assert!(text.ends_with("é and 1 more") && text.starts_with("éé"), "{text}");
        let room = MESSAGE_BYTES_MAX - 1..=MESSAGE_BYTES_MAX;
        assert!(room.contains(&text.len()), "{}", text.len());
        assert_eq!(rooted("", &[root(&"x".repeat(500), None)]).roots, "1 with long names");
    }

    #[test]
    fn only_a_deletion_that_waits_is_told_what_it_waits_for() {
        let refused = Refused {
            reference: "network",
            target: key("Network", "n"),
            why: RefusalReason::Leaving,
        };
        let notice = notice(&Step::Rest(vec![refused]), None).expect("it is refused");
        assert_eq!(notice.about, About::Refusal);
        let roots = [root("a", None)];
        assert_eq!(notice.clone().with_roots(&roots, Timestamp::UNIX_EPOCH), notice);
    }

    #[test]
    fn whoever_has_all_references_and_waits_for_nothing_is_not_mentioned() {
        assert_eq!(notice(&Step::Rest(Vec::new()), None), None);
    }
}
