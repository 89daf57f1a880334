//! How callers share permits, as a state without time or tasks: a permit goes to whoever has the fewest, no caller
//! takes all of them, and the line before them has an end.

use std::collections::{BTreeMap, VecDeque};

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Who is let in at once.
    pub(crate) permits: usize,
    /// Of these, one caller.
    pub(crate) most: usize,
    /// Who waits at once.
    pub(crate) waiting: usize,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<W> {
    /// It has a permit.
    Enters(W),
    /// It waits, under this number. Another one may have lost its place in the line for it.
    Waits(u64, Option<W>),
    /// There is no room in the line.
    Refused(W),
}

/// Permits, who has them and who waits for them.
#[derive(Debug)]
pub(crate) struct Shares<K, W> {
    sizes: Sizes,
    used: usize,
    waiting: usize,
    last: u64,
    callers: BTreeMap<K, Caller<W>>,
}

#[derive(Debug)]
struct Caller<W> {
    taken: usize,
    /// When it got its last permit, as a number.
    served: u64,
    line: VecDeque<(u64, W)>,
}

impl<K: Ord + Clone, W> Shares<K, W> {
    /// All permits are free.
    pub(crate) fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            used: 0,
            waiting: 0,
            last: 0,
            callers: BTreeMap::new(),
        }
    }

    /// Somebody wants a permit.
    pub(crate) fn ask(&mut self, key: &K, who: W) -> Outcome<W> {
        let taken = self.callers.get(key).map_or(0, |caller| caller.taken);
        // Where permits are free, those who wait have their share already.
        if self.used < self.sizes.permits && taken < self.sizes.most {
            self.take(key);
            return Outcome::Enters(who);
        }
        let own = self.callers.get(key).map_or(0, |caller| caller.line.len());
        let mut displaced = None;
        if self.waiting >= self.sizes.waiting {
            let Some(longest) = self.longest_line().filter(|(_, length)| *length > own + 1) else {
                return Outcome::Refused(who);
            };
            displaced = self.displace(&longest.0);
        }
        self.last += 1;
        let number = self.last;
        self.caller(key).line.push_back((number, who));
        self.waiting += 1;
        Outcome::Waits(number, displaced)
    }

    /// A permit is free again. Who gets it, of all that wait, is told.
    pub(crate) fn leave(&mut self, key: &K) -> Option<(K, W)> {
        self.used = self.used.saturating_sub(1);
        if let Some(caller) = self.callers.get_mut(key) {
            caller.taken = caller.taken.saturating_sub(1);
        }
        let next = self.next();
        let entered = next.and_then(|next| {
            let (_, who) = self.callers.get_mut(&next)?.line.pop_front()?;
            self.waiting -= 1;
            self.take(&next);
            Some((next, who))
        });
        self.forget(key);
        entered
    }

    /// Somebody waits no more.
    pub(crate) fn give_up(&mut self, key: &K, number: u64) {
        if let Some(caller) = self.callers.get_mut(key) {
            let before = caller.line.len();
            caller.line.retain(|(waiting, _)| *waiting != number);
            self.waiting -= before - caller.line.len();
        }
        self.forget(key);
    }

    /// Whoever has the fewest permits; of these, who got none for longest; of these, who has waited longest.
    fn next(&self) -> Option<K> {
        let waiting = self.callers.iter().filter(|(_, caller)| caller.taken < self.sizes.most);
        let heads =
            waiting.filter_map(|(key, caller)| Some(((caller.taken, caller.served, caller.line.front()?.0), key)));
        heads.min_by_key(|(rank, _)| *rank).map(|(_, key)| key.clone())
    }

    fn longest_line(&self) -> Option<(K, usize)> {
        let lines = self
            .callers
            .iter()
            .map(|(key, caller)| (key.clone(), caller.line.len()));
        lines.max_by_key(|(_, length)| *length)
    }

    fn displace(&mut self, key: &K) -> Option<W> {
        let (_, who) = self.callers.get_mut(key)?.line.pop_back()?;
        self.waiting -= 1;
        Some(who)
    }

    fn take(&mut self, key: &K) {
        self.used += 1;
        self.last += 1;
        let number = self.last;
        let caller = self.caller(key);
        caller.taken += 1;
        caller.served = number;
    }

    fn caller(&mut self, key: &K) -> &mut Caller<W> {
        self.callers.entry(key.clone()).or_insert_with(|| Caller {
            taken: 0,
            served: 0,
            line: VecDeque::new(),
        })
    }

    /// Nothing is remembered of who has no permit and waits for none.
    fn forget(&mut self, key: &K) {
        let is_gone = |caller: &Caller<W>| caller.taken == 0 && caller.line.is_empty();
        if self.callers.get(key).is_some_and(is_gone) {
            self.callers.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(permits: usize, most: usize, waiting: usize) -> Shares<&'static str, u32> {
        Shares::new(Sizes { permits, most, waiting })
    }

    #[test]
    fn no_caller_takes_all_places() {
        let mut shares = shares(4, 3, 100);
        let entered = (0..50)
            .filter(|n| shares.ask(&"greedy", *n) == Outcome::Enters(*n))
            .count();
        assert_eq!(entered, 3);
        assert_eq!(shares.ask(&"modest", 1), Outcome::Enters(1));
    }

    #[test]
    fn a_free_place_goes_to_who_has_fewest_and_not_to_who_asked_first() {
        let mut shares = shares(2, 2, 100);
        for n in 0..10 {
            shares.ask(&"greedy", n);
        }
        assert!(matches!(shares.ask(&"modest", 77), Outcome::Waits(_, None)));
        assert_eq!(shares.leave(&"greedy"), Some(("modest", 77)));
        assert_eq!(shares.leave(&"modest"), Some(("greedy", 2)), "nobody else waits");
    }

    #[test]
    fn who_fills_the_line_makes_room_for_others() {
        let mut shares = shares(1, 1, 5);
        for n in 0..6 {
            shares.ask(&"greedy", n);
        }
        assert_eq!(shares.ask(&"greedy", 6), Outcome::Refused(6));
        assert!(matches!(shares.ask(&"modest", 77), Outcome::Waits(_, Some(5))));
        assert_eq!(shares.leave(&"greedy"), Some(("modest", 77)));
    }

    #[test]
    fn nothing_is_left_of_callers_who_have_gone() {
        let mut shares = shares(1, 1, 5);
        shares.ask(&"a", 1);
        let Outcome::Waits(number, _) = shares.ask(&"b", 2) else {
            panic!("there is one permit")
        };
        shares.give_up(&"b", number);
        shares.give_up(&"b", number);
        assert_eq!(shares.leave(&"a"), None);
        assert!(shares.callers.is_empty());
        assert_eq!((shares.used, shares.waiting), (0, 0));
    }
}
