//! Holders that no watch has shown: whether there are such objects at all is asked of the archive, or of the service
//! that they are of. One answer may come too early, and two that are the same with time in between do not. Asks nobody
//! itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_model::reference_name::ReferenceName;
use tokio::time::Instant;

use crate::decide::{FoundHolder, HeldReference, HolderLocation, Input, Seen};
use crate::graph::Graph;
use crate::object::Key;
use crate::questions::Questions;

/// Until a holder is asked for again, at most and at least.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);
const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
/// After so many answers in succession a holder counts as lost.
const ANSWERS_CONFIRMED: u32 = 2;
/// Holders of one object that are asked for at a time: as long as these hold it, the others do not matter.
const SOUGHT_AT_ONCE: usize = 8;
/// Holders that one service is asked for at a time.
const ASKED_AT_A_TIME: usize = 4;

/// What is known of one holder.
#[derive(Debug)]
struct Answer {
    found: Option<FoundHolder>,
    /// How often in succession there was none.
    not_found: u32,
    again: Instant,
}

/// What was answered about holders, and of whom their services are to be asked.
#[derive(Debug)]
pub struct Holders {
    again_after: Duration,
    answers: BTreeMap<ReferenceName, Answer>,
    questions: Questions<ReferenceName>,
}

impl Holders {
    /// Nothing was answered. Between two answers that are the same there is `grace`, within limits.
    pub fn new(grace: Duration) -> Self {
        Self {
            again_after: grace.clamp(AGAIN_AFTER_MIN, AGAIN_AFTER_MAX),
            answers: BTreeMap::new(),
            questions: Questions::default(),
        }
    }

    /// What the archive, or its service, has answered about a holder: where it is, or that there is none. Whether it is
    /// being deleted, and that or what it waits for is new.
    pub fn answered(&mut self, name: ReferenceName, found: Option<FoundHolder>, now: Instant) -> bool {
        self.questions.end(name.group(), &name);
        let known = self.answers.get(&name);
        let before = known.map_or(0, |answer| answer.not_found);
        let leaves_anew =
            found.as_ref().is_some_and(|found| found.is_leaving) && known.is_none_or(|known| known.found != found);
        let answer = Answer {
            not_found: if found.is_none() { before.saturating_add(1) } else { 0 },
            found,
            again: now + self.again_after,
        };
        self.answers.insert(name, answer);
        leaves_anew
    }

    /// What its service has answered about a holder.
    pub fn elsewhere(&self, name: &ReferenceName) -> Option<&FoundHolder> {
        self.answers.get(name).and_then(|answer| answer.found.as_ref())
    }

    /// Those of other services that are being deleted and wait for a holder, as their services have answered.
    pub fn waiting_on(&self, holder: &ReferenceName) -> Vec<Seen> {
        let found = self.answers.iter();
        let found = found.filter_map(|(name, answer)| Some((name, answer.found.as_ref()?)));
        let waiting = found.filter(|(_, found)| found.is_leaving && found.held_by.contains(holder));
        let waiting = waiting.map(|(name, found)| Seen {
            key: found.key.clone(),
            uid: name.uid().to_owned(),
        });
        waiting.collect()
    }

    /// Its service has not answered.
    pub fn unanswered(&mut self, name: &ReferenceName) {
        self.questions.end(name.group(), name);
        self.questions.ask(name.group(), name.clone());
    }

    /// The objects whose holders are to be asked for again. What holds nothing any more, or was seen, is forgotten.
    pub fn due(&mut self, graph: &Graph, now: Instant) -> BTreeSet<Key> {
        let is_needed = |name: &ReferenceName| graph.find(name.uid()).is_none() && graph.targets(name).next().is_some();
        self.answers.retain(|name, _| is_needed(name));
        self.questions.retain(is_needed);
        let due = self.answers.iter().filter(|(_, answer)| answer.again <= now);
        due.flat_map(|(name, _)| graph.targets(name).cloned()).collect()
    }

    /// The services of these holders are to be asked, unless they were lately. The first ones are enough.
    pub fn seek<'n>(&mut self, names: impl IntoIterator<Item = &'n ReferenceName>, now: Instant) {
        for name in names.into_iter().take(SOUGHT_AT_ONCE) {
            let is_known = self.answers.get(name).is_some_and(|answer| now < answer.again);
            if !is_known && !self.questions.is_under_way(name.group(), name) {
                self.questions.ask(name.group(), name.clone());
            }
        }
    }

    /// The next holder that its service is asked for.
    pub fn next_due(&mut self) -> Option<ReferenceName> {
        self.questions.begin(ASKED_AT_A_TIME)
    }

    /// Adds to the input what was answered about the holders. Whoever may be archived is asked for again where that is
    /// due.
    pub fn complete(&self, input: &mut Input<'_>, now: Instant) {
        for reference in &mut input.references {
            if let Some(at) = self.at(reference, now) {
                reference.at = at;
            }
        }
    }

    fn at(&self, reference: &HeldReference, now: Instant) -> Option<HolderLocation> {
        let answer = self.answers.get(&reference.name)?;
        let is_to_be_asked = reference.at == HolderLocation::Absent && answer.again <= now;
        match (&reference.at, &answer.found) {
            (HolderLocation::Seen(_), _) => None,
            _ if is_to_be_asked => None,
            (_, Some(found)) => Some(HolderLocation::Seen(found.key.clone())),
            (_, None) if answer.not_found >= ANSWERS_CONFIRMED => Some(HolderLocation::NotFound),
            (_, None) => Some(HolderLocation::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Archived, CleanupState};
    use crate::fixture::{deleting, key};
    use crate::object::Object;

    const AGAIN_AFTER: Duration = Duration::from_secs(20);

    fn name(uid: &str) -> ReferenceName {
        ReferenceName::new("Cluster", "x.example.com", uid).expect("a name")
    }

    fn held(by: &[&str]) -> Object {
        Object {
            references: by.iter().map(|uid| name(uid)).collect(),
            ..deleting(key("Network", "a"), "n")
        }
    }

    fn found(is_leaving: bool, held_by: &[&str]) -> FoundHolder {
        FoundHolder {
            key: key("Cluster", "a"),
            is_leaving,
            held_by: held_by.iter().map(|uid| name(uid)).collect(),
        }
    }

    /// What the input has of the first reference, which is `at` for the graph.
    fn completed(holders: &Holders, at: HolderLocation, now: Instant) -> HolderLocation {
        let object = held(&["u"]);
        let reference = HeldReference {
            name: name("u"),
            at,
            owned: false,
        };
        let mut input = Input {
            object: &object,
            named: Vec::new(),
            targets: Vec::new(),
            has_former: false,
            references: vec![reference],
            missing: Vec::new(),
            holders_unknown: Vec::new(),
            targets_unknown: Vec::new(),
            cleanup: CleanupState::Gone,
            archived: Archived::Off,
        };
        holders.complete(&mut input, now);
        input.references.remove(0).at
    }

    #[test]
    fn a_holder_is_lost_once_it_was_not_found_twice_with_time_in_between() {
        let (mut holders, begun) = (Holders::new(AGAIN_AFTER), Instant::now());
        let asked = |holders: &Holders, now| completed(holders, HolderLocation::Absent, now);
        assert_eq!(asked(&holders, begun), HolderLocation::Absent, "nobody was asked");
        holders.answered(name("u"), None, begun);
        assert_eq!(asked(&holders, begun), HolderLocation::Unknown, "it may come");
        let then = begun + AGAIN_AFTER;
        assert_eq!(
            asked(&holders, then),
            HolderLocation::Absent,
            "the archive is asked again"
        );
        holders.answered(name("u"), None, then);
        assert_eq!(asked(&holders, then), HolderLocation::NotFound);
        let seen = HolderLocation::Seen(key("Cluster", "a"));
        assert_eq!(completed(&holders, seen.clone(), then), seen, "a watch knows better");
        holders.answered(name("u"), Some(found(false, &[])), then + AGAIN_AFTER);
        assert_eq!(asked(&holders, then + AGAIN_AFTER), seen, "it came back");
        holders.answered(name("u"), None, then + AGAIN_AFTER * 2);
        let last = asked(&holders, then + AGAIN_AFTER * 2);
        assert_eq!(last, HolderLocation::Unknown, "it is counted anew");
    }

    #[test]
    fn a_holder_is_looked_at_again_where_its_deletion_or_what_that_waits_for_is_new() {
        let (mut holders, mut now) = (Holders::new(AGAIN_AFTER), Instant::now());
        let mut said = |answer: Option<FoundHolder>| {
            now += AGAIN_AFTER;
            holders.answered(name("u"), answer, now)
        };
        assert!(!said(Some(found(false, &[]))), "nobody deletes it");
        assert!(said(Some(found(true, &[]))));
        assert!(!said(Some(found(true, &[]))), "that is known");
        assert!(said(Some(found(true, &["n"]))));
        assert!(!said(None));
        assert!(said(Some(found(true, &["n"]))), "it came back");
        assert_eq!(holders.elsewhere(&name("u")), Some(&found(true, &["n"])));
        assert_eq!(holders.elsewhere(&name("another")), None);
    }

    /// As if a search through the archive ended where another service's object waits for one of ours.
    #[test]
    fn whoever_is_deleted_elsewhere_waits_for_what_its_service_says() {
        let (mut holders, now) = (Holders::new(AGAIN_AFTER), Instant::now());
        let mut waiting = |answer| {
            holders.answered(name("u"), answer, now);
            holders.waiting_on(&name("n"))
        };
        let u = Seen {
            key: key("Cluster", "a"),
            uid: "u".to_owned(),
        };
        assert_eq!(waiting(Some(found(true, &["m", "n"]))), [u]);
        assert!(waiting(Some(found(true, &["m"]))).is_empty());
        assert!(waiting(Some(found(false, &["n"]))).is_empty(), "nobody deletes it");
        assert!(waiting(None).is_empty());
    }

    #[test]
    fn what_a_service_said_stays_until_it_says_something_else() {
        let (mut holders, begun) = (Holders::new(AGAIN_AFTER), Instant::now());
        holders.answered(name("u"), None, begun);
        holders.answered(name("u"), None, begun + AGAIN_AFTER);
        for now in [begun + AGAIN_AFTER, begun + AGAIN_AFTER * 9] {
            assert_eq!(
                completed(&holders, HolderLocation::Unknown, now),
                HolderLocation::NotFound
            );
        }
    }

    #[test]
    fn a_service_is_asked_for_one_holder_at_a_time_and_again_after_a_while() {
        let (mut holders, begun) = (Holders::new(AGAIN_AFTER), Instant::now());
        holders.seek([&name("u")], begun);
        assert_eq!(holders.next_due(), Some(name("u")));
        holders.seek([&name("u")], begun);
        assert_eq!(holders.next_due(), None, "it is being asked");
        holders.unanswered(&name("u"));
        assert_eq!(holders.next_due(), Some(name("u")), "no answer");
        holders.answered(name("u"), None, begun);
        holders.seek([&name("u")], begun);
        assert_eq!(holders.next_due(), None, "it has answered");
        holders.seek([&name("u")], begun + AGAIN_AFTER);
        assert_eq!(holders.next_due(), Some(name("u")));
        let many: Vec<_> = (0..100).map(|uid| name(&uid.to_string())).collect();
        holders.seek(&many, begun);
        let sought = std::iter::from_fn(|| {
            let name = holders.next_due()?;
            holders.answered(name.clone(), None, begun);
            Some(name)
        });
        assert_eq!(sought.count(), SOUGHT_AT_ONCE);
    }

    #[test]
    fn the_objects_are_decided_on_again_that_a_holder_holds_and_others_are_forgotten() {
        let (mut holders, begun) = (Holders::new(AGAIN_AFTER), Instant::now());
        let mut graph = Graph::new(Vec::new());
        graph.apply(held(&["u"]));
        for uid in ["u", "released"] {
            holders.answered(name(uid), None, begun);
            holders.questions.ask("x.example.com", name(uid));
        }
        assert!(holders.due(&graph, begun).is_empty());
        assert_eq!(
            holders.due(&graph, begun + AGAIN_AFTER),
            BTreeSet::from([key("Network", "a")])
        );
        assert_eq!(holders.answers.len(), 1);
        assert_eq!((holders.next_due(), holders.next_due()), (Some(name("u")), None));
        graph.apply(deleting(key("Cluster", "a"), "u"));
        assert!(holders.due(&graph, begun + AGAIN_AFTER).is_empty());
        assert!(holders.answers.is_empty());
    }
}
