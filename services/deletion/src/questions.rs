//! Questions to other services, each of which has its turns: one that does not answer takes none from the others, and
//! what it does not answer takes none from what it does. Asks nobody itself.

use std::collections::{BTreeMap, BTreeSet};

/// The questions that are due or under way, by the groups of their services.
#[derive(Debug)]
pub struct Questions<Q> {
    services: BTreeMap<String, OfService<Q>>,
}

#[derive(Debug)]
struct OfService<Q> {
    /// Those of this round. All of them are asked before those that came later, and before one is asked again.
    due: BTreeSet<Q>,
    /// Those of the next round.
    later: BTreeSet<Q>,
    /// Those under way, up to the end of the pause after one that failed.
    busy: BTreeSet<Q>,
}

impl<Q> Default for Questions<Q> {
    fn default() -> Self {
        Self {
            services: BTreeMap::new(),
        }
    }
}

impl<Q> Default for OfService<Q> {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
            later: BTreeSet::new(),
            busy: BTreeSet::new(),
        }
    }
}

impl<Q: Clone + Ord> Questions<Q> {
    /// The service of this group is to be asked. While it is asked the same, it is asked once more after that.
    pub fn ask(&mut self, group: &str, question: Q) {
        let service = self.services.entry(group.to_owned()).or_default();
        if !service.due.contains(&question) {
            service.later.insert(question);
        }
    }

    /// Whether the service is being asked.
    pub fn is_under_way(&self, group: &str, question: &Q) -> bool {
        let service = self.services.get(group);
        service.is_some_and(|service| service.busy.contains(question))
    }

    /// The next question that may be asked, with so many at a time to each service.
    pub fn begin(&mut self, at_a_time: usize) -> Option<Q> {
        let mut services = self.services.values_mut();
        services.find_map(|service| service.begin(at_a_time))
    }

    /// A question is not under way any more.
    pub fn end(&mut self, group: &str, question: &Q) {
        if let Some(service) = self.services.get_mut(group) {
            service.busy.remove(question);
        }
    }

    /// Only these are still to be asked.
    pub fn retain(&mut self, is_needed: impl Fn(&Q) -> bool) {
        for service in self.services.values_mut() {
            service.due.retain(&is_needed);
            service.later.retain(&is_needed);
        }
    }
}

impl<Q: Clone + Ord> OfService<Q> {
    fn begin(&mut self, at_a_time: usize) -> Option<Q> {
        if self.busy.len() >= at_a_time {
            return None;
        }
        let next = self.of_round().or_else(|| {
            self.due.append(&mut self.later);
            self.of_round()
        })?;
        self.due.remove(&next);
        self.busy.insert(next.clone());
        Some(next)
    }

    fn of_round(&self) -> Option<Q> {
        self.due.iter().find(|question| !self.busy.contains(*question)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a service that does not answer had the turns of all.
    #[test]
    fn a_silent_service_takes_no_turn_from_others() {
        let mut questions = Questions::default();
        for question in ["a", "b", "c"] {
            questions.ask("a.example.com", question);
        }
        assert_eq!((questions.begin(2), questions.begin(2)), (Some("a"), Some("b")));
        assert_eq!(questions.begin(2), None, "the service has all its turns");
        questions.ask("b.example.com", "x");
        assert_eq!(questions.begin(2), Some("x"));
        assert!(questions.is_under_way("a.example.com", &"a") && !questions.is_under_way("b.example.com", &"a"));
        questions.end("a.example.com", &"a");
        assert_eq!((questions.begin(2), questions.begin(2)), (Some("c"), None));
    }

    /// As if the first ones, which are never answered, kept all others from their turn.
    #[test]
    fn what_is_asked_again_comes_after_what_waits() {
        let (mut questions, group) = (Questions::default(), "a.example.com");
        for question in ["a", "b", "c"] {
            questions.ask(group, question);
        }
        let mut asked = Vec::new();
        for _ in 0..6 {
            let question = questions.begin(1).expect("a question");
            questions.end(group, &question);
            questions.ask(group, question);
            asked.push(question);
        }
        assert_eq!(asked, ["a", "b", "c", "a", "b", "c"]);
    }

    /// As if one that hangs ended its round for nobody.
    #[test]
    fn a_round_waits_for_no_answer() {
        let (mut questions, group) = (Questions::default(), "a.example.com");
        questions.ask(group, "a");
        assert_eq!(questions.begin(2), Some("a"));
        questions.ask(group, "a");
        assert_eq!(questions.begin(2), None, "once at a time");
        questions.ask(group, "b");
        assert_eq!(questions.begin(2), Some("b"), "although the first one is under way");
        questions.end(group, &"a");
        assert_eq!((questions.begin(2), questions.begin(2)), (Some("a"), None));
    }

    #[test]
    fn what_is_of_no_use_any_more_is_not_asked() {
        let (mut questions, group) = (Questions::default(), "a.example.com");
        for question in ["a", "b", "c"] {
            questions.ask(group, question);
        }
        assert_eq!(questions.begin(3), Some("a"));
        questions.ask(group, "d");
        questions.retain(|question| *question == "c");
        assert_eq!((questions.begin(3), questions.begin(3)), (Some("c"), None));
    }
}
