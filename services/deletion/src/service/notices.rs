//! What is to be recorded of objects: of each one at a time, and of what it waits for only the latest. Sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::notice::{About, Notice};
use crate::object::{Key, Object};

use super::waiting::Overdue;

/// What is to be recorded of an object.
#[derive(Debug)]
pub(crate) enum Due {
    /// A notice.
    Notice(Notice),
    /// That nothing is refused to it any more.
    Placed,
}

/// A search for the cycle that an object which waits may be on.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) object: Object,
    /// What is said of the object if it is on none.
    pub(crate) notice: Notice,
    /// Whether that was said before: only a cycle is worth a notice.
    pub(crate) is_reported: bool,
}

/// Notices in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    due: BTreeMap<u64, (Object, Due)>,
    /// Those that come after a search, by the same numbers.
    searches: BTreeMap<u64, Search>,
    /// The number of the next one.
    next: u64,
    /// By object, the number of what it waits for.
    waits: BTreeMap<Key, u64>,
    /// By object, the number of what says that nothing is refused to it any more.
    placed: BTreeMap<Key, u64>,
    /// The objects of which one is being recorded.
    busy: BTreeSet<Key>,
    /// The objects of which a search is under way.
    searching: BTreeSet<Key>,
}

impl Notices {
    /// What an object waits for takes the place of what it waited for before, and what is refused to it that of what
    /// was not any more.
    pub(crate) fn add(&mut self, object: Object, notice: Notice) {
        if notice.about == About::Refusal
            && let Some(number) = self.placed.remove(&object.key)
        {
            self.due.remove(&number);
        }
        let number = self.number_of(&object.key, &notice);
        self.searches.remove(&number);
        self.due.insert(number, (object, Due::Notice(notice)));
    }

    /// The same of an object that waits.
    pub(crate) fn add_overdue(&mut self, overdue: Overdue) {
        let Overdue {
            object,
            notice,
            may_be_cycle,
            is_reported,
        } = overdue;
        if !may_be_cycle {
            return self.add(object, notice);
        }
        let number = self.number_of(&object.key, &notice);
        let before = self.searches.remove(&number);
        let is_said = self.due.remove(&number).is_none() && before.is_none_or(|search| search.is_reported);
        let search = Search {
            object,
            notice,
            is_reported: is_reported && is_said,
        };
        self.searches.insert(number, search);
    }

    fn number_of(&mut self, key: &Key, notice: &Notice) -> u64 {
        let number = match self.waits.get(key) {
            Some(number) if notice.waits() => *number,
            Some(_) | None => self.next_number(),
        };
        if notice.waits() {
            self.waits.insert(key.clone(), number);
        }
        number
    }

    /// Nothing is refused to an object any more. It need not be said twice.
    pub(super) fn add_placed(&mut self, object: Object) {
        let number = match self.placed.get(&object.key) {
            Some(number) => *number,
            None => self.next_number(),
        };
        self.placed.insert(object.key.clone(), number);
        self.due.insert(number, (object, Due::Placed));
    }

    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The first one of an object of which none is being recorded. What an object waits for comes after the search of
    /// it that is under way.
    pub(crate) fn begin(&mut self) -> Option<(Object, Due)> {
        let waits = |due: &Due| matches!(due, Due::Notice(notice) if notice.waits());
        let mut due = self.due.iter();
        let (number, _) = due.find(|(_, (object, due))| {
            let is_searched = waits(due) && self.searching.contains(&object.key);
            !is_searched && !self.busy.contains(&object.key)
        })?;
        let number = *number;
        let (object, due) = self.due.remove(&number)?;
        match &due {
            Due::Notice(notice) if notice.waits() => _ = self.waits.remove(&object.key),
            Due::Notice(_) => {}
            Due::Placed => _ = self.placed.remove(&object.key),
        }
        self.busy.insert(object.key.clone());
        Some((object, due))
    }

    /// It is recorded, or cannot be.
    pub(crate) fn end(&mut self, key: &Key) {
        self.busy.remove(key);
    }

    /// The next search: first of objects of which people do not know yet that they wait.
    pub(crate) fn begin_search(&mut self) -> Option<Search> {
        let mut searches = self.searches.iter();
        let unreported = searches.find(|(_, search)| !search.is_reported);
        let (number, _) = unreported.or_else(|| self.searches.first_key_value())?;
        let number = *number;
        let search = self.searches.remove(&number)?;
        self.waits.remove(&search.object.key);
        self.searching.insert(search.object.key.clone());
        Some(search)
    }

    /// A search is over, and this is to be said, unless something newer is to be said by now of what its object waits
    /// for. That may be the same cycle: it is said once.
    pub(crate) fn end_search(&mut self, object: Object, notice: Option<Notice>) {
        self.searching.remove(&object.key);
        let Some(notice) = notice else {
            return;
        };
        match self.waits.get(&object.key) {
            None => self.add(object, notice),
            Some(number) => {
                if let Some(search) = self.searches.get_mut(number) {
                    search.is_reported = false;
                }
            }
        }
    }

    /// A search was not answered. Where people do not know yet that an object waits, nobody waits for another search:
    /// the objects of which that is said without one.
    pub(crate) fn give_up_searches(&mut self) -> Vec<Key> {
        let searches = std::mem::take(&mut self.searches).into_iter();
        let (given_up, left): (BTreeMap<_, _>, BTreeMap<_, _>) = searches.partition(|(_, search)| !search.is_reported);
        self.searches = left;
        let mut objects = Vec::new();
        for (number, Search { object, notice, .. }) in given_up {
            objects.push(object.key.clone());
            self.due.insert(number, (object, Due::Notice(notice)));
        }
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{deleting, key};

    fn object(name: &str) -> Object {
        deleting(key("Network", name), name)
    }

    fn notice(message: &str, waits: bool) -> Notice {
        Notice {
            reason: "DeletionBlocked",
            message: message.to_owned(),
            roots: String::new(),
            about: if waits { About::Deletion } else { About::Other },
        }
    }

    fn begun(notices: &mut Notices) -> Option<(String, String)> {
        let (object, due) = notices.begin()?;
        let said = match due {
            Due::Notice(notice) => notice.message,
            Due::Placed => "placed".to_owned(),
        };
        Some((object.key.name.to_string(), said))
    }

    fn some(name: &str, message: &str) -> Option<(String, String)> {
        Some((name.to_owned(), message.to_owned()))
    }

    #[test]
    fn an_older_notice_neither_follows_nor_overtakes_a_newer_one_of_its_object() {
        let mut notices = Notices::default();
        notices.add(object("a"), notice("by c", true));
        notices.add(object("b"), notice("by c", true));
        notices.add(object("a"), notice("vanished", false));
        notices.add(object("a"), notice("by d", true));
        assert_eq!(begun(&mut notices), some("a", "by d"));
        notices.add(object("a"), notice("by e", true));
        assert_eq!(begun(&mut notices), some("b", "by c"));
        assert_eq!(begun(&mut notices), None, "one of each object is being recorded");
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), some("a", "vanished"));
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), some("a", "by e"));
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), None);
    }

    fn overdue(name: &str, message: &str, may_be_cycle: bool, is_reported: bool) -> Overdue {
        Overdue {
            object: object(name),
            notice: notice(message, true),
            may_be_cycle,
            is_reported,
        }
    }

    fn searched(notices: &mut Notices) -> Option<(String, String)> {
        let search = notices.begin_search()?;
        Some((search.object.key.name.to_string(), search.notice.message))
    }

    #[test]
    fn a_search_takes_the_place_of_what_its_object_waited_for_before_and_the_other_way_round() {
        let mut notices = Notices::default();
        notices.add(object("a"), notice("by b", true));
        notices.add_overdue(overdue("a", "by c", true, false));
        assert_eq!(begun(&mut notices), None);
        notices.add(object("b"), notice("by c", true));
        notices.add_overdue(overdue("a", "by c", false, false));
        assert_eq!(searched(&mut notices), None);
        assert_eq!(begun(&mut notices), some("a", "by c"), "in its place");
        assert_eq!(begun(&mut notices), some("b", "by c"));
        assert_eq!(begun(&mut notices), None);
    }

    /// As if a database that does not answer held up what has nothing to do with it.
    #[test]
    fn a_search_keeps_only_what_its_object_waits_for_from_being_recorded() {
        let mut notices = Notices::default();
        notices.add_overdue(overdue("a", "by c", true, false));
        assert_eq!(searched(&mut notices), some("a", "by c"));
        notices.add(object("b"), notice("by c", true));
        notices.add(object("a"), notice("vanished", false));
        notices.add(object("a"), notice("by d", true));
        assert_eq!(begun(&mut notices), some("b", "by c"));
        assert_eq!(begun(&mut notices), some("a", "vanished"));
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), None, "the search may say something older");
        notices.end_search(object("a"), Some(notice("by c", true)));
        assert_eq!(begun(&mut notices), some("a", "by d"), "that is newer");
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), None);
    }

    /// As if two searches at once reported it twice.
    #[test]
    fn a_cycle_that_is_found_twice_is_reported_once_of_each_object() {
        let mut notices = Notices::default();
        notices.add_overdue(overdue("a", "by c", true, false));
        assert_eq!(searched(&mut notices), some("a", "by c"));
        notices.add_overdue(overdue("a", "a cycle", false, false));
        notices.end_search(object("a"), Some(notice("a cycle", true)));
        assert_eq!(begun(&mut notices), some("a", "a cycle"));
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), None);
    }

    #[test]
    fn what_was_said_before_a_search_is_not_said_again_and_what_was_not_is() {
        let mut notices = Notices::default();
        notices.add_overdue(overdue("a", "by c", true, true));
        assert!(notices.begin_search().is_some_and(|search| search.is_reported));
        notices.end_search(object("a"), None);
        assert_eq!(begun(&mut notices), None);
        // It waits to be said, alone or after a search, when it is looked at again.
        notices.add(object("a"), notice("by c", true));
        notices.add_overdue(overdue("a", "by c", true, true));
        notices.add_overdue(overdue("a", "by c", true, true));
        assert!(notices.begin_search().is_some_and(|search| !search.is_reported));
        notices.add_overdue(overdue("a", "by c", true, true));
        notices.end_search(object("a"), Some(notice("by c", true)));
        assert!(notices.begin_search().is_some_and(|search| !search.is_reported));
    }

    /// As if each of very many objects waited for its own search while the database is away.
    #[test]
    fn nobody_waits_for_a_search_after_one_that_was_not_answered() {
        let mut notices = Notices::default();
        for (name, is_reported) in [("a", true), ("b", false), ("c", false), ("d", false)] {
            notices.add_overdue(overdue(name, "by x", true, is_reported));
        }
        assert_eq!(
            searched(&mut notices),
            some("b", "by x"),
            "what is not known yet comes first"
        );
        assert_eq!(notices.give_up_searches(), ["c", "d"].map(|name| object(name).key));
        notices.end_search(object("b"), Some(notice("by x", true)));
        for name in ["c", "d", "b"] {
            assert_eq!(begun(&mut notices), some(name, "by x"));
        }
        assert_eq!(searched(&mut notices), some("a", "by x"));
        assert_eq!(searched(&mut notices), None);
    }

    #[test]
    fn that_nothing_is_refused_any_more_is_said_once_and_in_the_order_of_things() {
        let refusal = || Notice {
            about: About::Refusal,
            ..notice("refused", false)
        };
        let mut notices = Notices::default();
        notices.add_placed(object("a"));
        notices.add_placed(object("b"));
        notices.add_placed(object("a"));
        let said = |notices: &mut Notices| {
            let said = begun(notices)?;
            notices.end(&object(&said.0).key);
            Some(said)
        };
        assert_eq!(said(&mut notices), some("a", "placed"));
        assert_eq!(said(&mut notices), some("b", "placed"));
        assert_eq!(said(&mut notices), None, "once");
        notices.add_placed(object("a"));
        notices.add(object("a"), refusal());
        assert_eq!(said(&mut notices), some("a", "refused"));
        assert_eq!(said(&mut notices), None, "it is refused");
        notices.add(object("a"), refusal());
        notices.add_placed(object("a"));
        assert_eq!(said(&mut notices), some("a", "refused"));
        assert_eq!(said(&mut notices), some("a", "placed"));
    }

    #[test]
    fn what_is_taken_back_follows_what_was_said() {
        let mut notices = Notices::default();
        notices.add(object("a"), notice("refused", false));
        notices.add_placed(object("a"));
        assert_eq!(begun(&mut notices), some("a", "refused"));
        assert_eq!(begun(&mut notices), None, "one of each object is being recorded");
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), some("a", "placed"));
    }
}
