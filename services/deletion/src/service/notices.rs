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
    /// One of an object that waits, unless the archive knows that it is on a cycle.
    Search(Notice),
    /// That nothing is refused to it any more.
    Placed,
}

/// Notices in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    due: BTreeMap<u64, (Object, Due)>,
    /// The number of the next one.
    next: u64,
    /// By object, the number of what it waits for.
    waits: BTreeMap<Key, u64>,
    /// By object, the number of what says that nothing is refused to it any more.
    placed: BTreeMap<Key, u64>,
    /// The objects of which one is being recorded.
    busy: BTreeSet<Key>,
}

impl Notices {
    /// What an object waits for takes the place of what it waited for before, and what is refused to it that of what
    /// was not any more.
    pub(crate) fn add(&mut self, object: Object, notice: Notice) {
        self.put(object, notice, Due::Notice);
    }

    /// The same of an object that waits.
    pub(crate) fn add_overdue(&mut self, overdue: Overdue) {
        let due = if overdue.may_be_cycle { Due::Search } else { Due::Notice };
        self.put(overdue.object, overdue.notice, due);
    }

    fn put(&mut self, object: Object, notice: Notice, due: fn(Notice) -> Due) {
        if notice.about == About::Refusal
            && let Some(number) = self.placed.remove(&object.key)
        {
            self.due.remove(&number);
        }
        let number = match self.waits.get(&object.key) {
            Some(number) if notice.waits() => *number,
            Some(_) | None => self.next_number(),
        };
        if notice.waits() {
            self.waits.insert(object.key.clone(), number);
        }
        self.due.insert(number, (object, due(notice)));
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

    /// The first one of an object of which none is being recorded.
    pub(crate) fn begin(&mut self) -> Option<(Object, Due)> {
        let mut due = self.due.iter();
        let (number, _) = due.find(|(_, (object, _))| !self.busy.contains(&object.key))?;
        let number = *number;
        let (object, due) = self.due.remove(&number)?;
        match &due {
            Due::Notice(notice) | Due::Search(notice) if notice.waits() => _ = self.waits.remove(&object.key),
            Due::Notice(_) | Due::Search(_) => {}
            Due::Placed => _ = self.placed.remove(&object.key),
        }
        self.busy.insert(object.key.clone());
        Some((object, due))
    }

    /// It is recorded, or cannot be.
    pub(crate) fn end(&mut self, key: &Key) {
        self.busy.remove(key);
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
            Due::Search(notice) => format!("{} or a cycle", notice.message),
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

    #[test]
    fn a_search_takes_the_place_of_what_its_object_waited_for_before_and_the_other_way_round() {
        let overdue = |may_be_cycle| Overdue {
            object: object("a"),
            notice: notice("by c", true),
            may_be_cycle,
        };
        let mut notices = Notices::default();
        notices.add(object("a"), notice("by b", true));
        notices.add_overdue(overdue(true));
        assert_eq!(begun(&mut notices), some("a", "by c or a cycle"));
        notices.add(object("b"), notice("by c", true));
        notices.add_overdue(overdue(true));
        notices.add_overdue(overdue(false));
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), some("b", "by c"), "it came before");
        assert_eq!(begun(&mut notices), some("a", "by c"));
        notices.end(&object("a").key);
        assert_eq!(begun(&mut notices), None);
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
