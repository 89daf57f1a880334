//! Bytes that callers hold together, and no caller all of them: a small number of requests must not fill the memory,
//! however many of them are allowed at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// One caller may hold half of all bytes, so that nobody alone uses up the budget of the others.
const ONE_CALLER_DIVISOR: usize = 2;

/// There is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory for request bodies is used up")]
pub struct NoRoom;

/// A budget of bytes.
#[derive(Debug)]
pub struct Budget<K> {
    bytes_max: usize,
    held: Mutex<BudgetState<K>>,
}

#[derive(Debug)]
struct BudgetState<K> {
    bytes: usize,
    /// Only of those who hold any.
    callers: BTreeMap<K, usize>,
    /// Who waits for room, by arrival.
    line: BTreeMap<u64, Waiting<K>>,
    last: u64,
}

#[derive(Debug)]
struct Waiting<K> {
    caller: K,
    more: usize,
    granted: oneshot::Sender<()>,
}

impl<K: Ord + Clone> BudgetState<K> {
    fn of(&self, caller: &K) -> usize {
        self.callers.get(caller).copied().unwrap_or_default()
    }

    fn take(&mut self, caller: &K, more: usize) {
        self.bytes += more;
        *self.callers.entry(caller.clone()).or_default() += more;
    }

    fn give_back(&mut self, caller: &K, bytes: usize) {
        self.bytes -= bytes;
        if let Some(own) = self.callers.get_mut(caller) {
            *own -= bytes;
            if *own == 0 {
                self.callers.remove(caller);
            }
        }
    }

    /// Of those whose caller may hold what they want: whose caller holds least, then who came first.
    fn next(&self, one_caller_max: usize) -> Option<(u64, usize)> {
        let waiting = self
            .line
            .iter()
            .map(|(number, waiting)| (number, waiting, self.of(&waiting.caller)));
        let allowed = waiting.filter(|(_, waiting, own)| own + waiting.more <= one_caller_max);
        let next = allowed.min_by_key(|(number, _, own)| (*own, **number));
        next.map(|(number, _, own)| (*number, own))
    }
}

impl<K: Ord + Clone> Budget<K> {
    /// So many bytes for all callers together, of which one caller holds at most half.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            held: Mutex::new(BudgetState {
                bytes: 0,
                callers: BTreeMap::new(),
                line: BTreeMap::new(),
                last: 0,
            }),
        })
    }

    /// Nothing yet, for this caller.
    pub fn claim(self: &Arc<Self>, caller: K) -> Claim<K> {
        Claim {
            budget: self.clone(),
            caller,
            bytes: 0,
        }
    }

    /// What all callers hold.
    pub fn bytes(&self) -> usize {
        self.held().bytes
    }

    fn one_caller_max(&self) -> usize {
        self.bytes_max / ONE_CALLER_DIVISOR
    }

    /// Gives room to those who wait, as far as it goes. Nobody who wants less goes before the next one.
    fn grant(&self, held: &mut BudgetState<K>) {
        while let Some((number, _)) = held.next(self.one_caller_max())
            && held.line[&number].more <= self.bytes_max - held.bytes
        {
            let Some(next) = held.line.remove(&number) else { return };
            held.take(&next.caller, next.more);
            // Who has gone gives it back: its place in the line was gone first.
            let _gone = next.granted.send(());
        }
    }

    fn held(&self) -> MutexGuard<'_, BudgetState<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one request holds, given back when it is dropped.
#[derive(Debug)]
pub struct Claim<K: Ord + Clone> {
    budget: Arc<Budget<K>>,
    caller: K,
    bytes: usize,
}

impl<K: Ord + Clone> Claim<K> {
    /// Holds so many bytes in all, at once or not.
    ///
    /// # Errors
    /// All callers, or this one, would hold more than they may, or somebody waits who holds less. What was held before
    /// stays.
    pub fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let mut held = self.budget.held();
        let own = held.of(&self.caller);
        let one_caller_max = self.budget.one_caller_max();
        let comes_later = held.next(one_caller_max).is_some_and(|(_, waiting)| waiting < own);
        if comes_later || held.bytes + more > self.budget.bytes_max || own + more > one_caller_max {
            return Err(NoRoom);
        }
        held.take(&self.caller, more);
        self.bytes = bytes;
        Ok(())
    }

    /// Holds so many bytes in all, as soon as there is room for them.
    ///
    /// # Guarantees
    /// Room goes to whose caller holds least, so that a caller who asks for much keeps nobody waiting.
    ///
    /// # Errors
    /// No caller may hold as much, or there was no room in time. What was held before stays.
    pub async fn wait(&mut self, bytes: usize, wait_max: Duration) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        if bytes > self.budget.one_caller_max() {
            return Err(NoRoom);
        }
        let (place, granted) = Ticket::take(&self.budget, &self.caller, more);
        match tokio::time::timeout(wait_max, granted).await {
            Ok(Ok(())) => {
                place.keep();
                self.bytes = bytes;
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(NoRoom),
        }
    }
}

/// A ticket of the line, which is given up when it is dropped, with what was granted to it.
struct Ticket<'b, K: Ord + Clone> {
    budget: &'b Budget<K>,
    caller: &'b K,
    more: usize,
    number: u64,
    is_kept: bool,
}

impl<'b, K: Ord + Clone> Ticket<'b, K> {
    fn take(budget: &'b Budget<K>, caller: &'b K, more: usize) -> (Self, oneshot::Receiver<()>) {
        let (to, granted) = oneshot::channel();
        let mut held = budget.held();
        held.last += 1;
        let number = held.last;
        let waiting = Waiting {
            caller: caller.clone(),
            more,
            granted: to,
        };
        held.line.insert(number, waiting);
        budget.grant(&mut held);
        let place = Self {
            budget,
            caller,
            more,
            number,
            is_kept: false,
        };
        (place, granted)
    }

    /// What was granted is the claim's.
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl<K: Ord + Clone> Drop for Ticket<'_, K> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let mut held = self.budget.held();
        if held.line.remove(&self.number).is_none() {
            held.give_back(self.caller, self.more);
        }
        // Who came later may want less.
        self.budget.grant(&mut held);
    }
}

impl<K: Ord + Clone> Drop for Claim<K> {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        held.give_back(&self.caller, self.bytes);
        self.budget.grant(&mut held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_hold_no_more_than_all_bytes_together_and_one_caller_half_of_them() {
        let budget = Budget::new(100);
        let (mut first, mut second) = (budget.claim("a"), budget.claim("a"));
        assert_eq!([first.hold(30), second.hold(20)], [Ok(()); 2]);
        assert_eq!(second.hold(21), Err(NoRoom), "one caller has half of them");
        let (mut other, mut third) = (budget.claim("b"), budget.claim("c"));
        assert_eq!([other.hold(40), third.hold(10)], [Ok(()); 2]);
        assert_eq!(other.hold(41), Err(NoRoom), "all are held");
        assert_eq!(budget.bytes(), 100);
        drop(first);
        assert_eq!([other.hold(50), second.hold(40)], [Ok(()); 2], "what was given back");
    }

    #[test]
    fn nothing_is_remembered_of_callers_who_hold_nothing() {
        let budget = Budget::new(100);
        for caller in 0..1000 {
            assert_eq!(budget.claim(caller).hold(50), Ok(()));
        }
        assert_eq!(budget.bytes(), 0);
        assert!(budget.held().callers.is_empty());
    }

    const SOON: Duration = Duration::from_secs(10);

    /// Tries for a moment of the paused clock.
    async fn waits<K: Ord + Clone>(claim: &mut Claim<K>, bytes: usize) -> bool {
        claim.wait(bytes, SOON).await == Err(NoRoom)
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_room_as_it_becomes_free_and_gives_up_in_time() {
        let budget = Budget::new(100);
        let (mut first, mut second, mut third) = (budget.claim("a"), budget.claim("b"), budget.claim("c"));
        assert_eq!([first.hold(50), second.hold(50)], [Ok(()); 2]);
        assert!(waits(&mut third, 30).await, "nothing becomes free");
        assert_eq!(third.wait(51, Duration::MAX).await, Err(NoRoom), "never");
        let waiting = tokio::spawn(async move { third.wait(30, SOON).await.map(|()| third) });
        tokio::task::yield_now().await;
        drop(first);
        let third = waiting.await.expect("no panic").expect("there is room");
        assert_eq!(budget.bytes(), 80);
        drop((second, third));
        assert_eq!((budget.bytes(), budget.held().line.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn room_goes_to_who_holds_least_and_nobody_takes_it_before() {
        let budget = Budget::new(100);
        let (mut greedy, mut other) = (budget.claim("greedy"), budget.claim("other"));
        assert_eq!([greedy.hold(40), other.hold(50)], [Ok(()); 2]);
        let wait = |mut claim: Claim<&'static str>, bytes| {
            tokio::spawn(async move { claim.wait(bytes, SOON).await.map(|()| claim) })
        };
        let again = wait(budget.claim("greedy"), 10);
        let again = again.await.expect("no panic").expect("there is room");
        let more = wait(budget.claim("other"), 0);
        drop(more.await);
        let modest = wait(budget.claim("modest"), 30);
        tokio::task::yield_now().await;
        drop(again);
        assert_eq!(
            budget.claim("greedy").hold(5),
            Err(NoRoom),
            "somebody waits who holds less"
        );
        drop(greedy);
        let _modest = modest.await.expect("no panic").expect("there is room");
        assert_eq!(budget.claim("greedy").hold(5), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_who_wait_the_one_who_holds_less_is_first() {
        let budget = Budget::new(100);
        let (mut greedy, mut other) = (budget.claim("greedy"), budget.claim("other"));
        assert_eq!([greedy.hold(30), other.hold(50)], [Ok(()); 2]);
        let wait =
            |mut claim: Claim<&'static str>| tokio::spawn(async move { claim.wait(20, SOON).await.map(|()| claim) });
        let taken = wait(budget.claim("third"))
            .await
            .expect("no panic")
            .expect("there is room");
        let (greedy_too, modest) = (wait(budget.claim("greedy")), wait(budget.claim("modest")));
        tokio::task::yield_now().await;
        assert_eq!(budget.held().line.len(), 2);
        drop(taken);
        let _modest = modest.await.expect("no panic").expect("there is room");
        assert!(!greedy_too.is_finished());
        drop(greedy);
        assert!(greedy_too.await.expect("no panic").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_granted_to_somebody_who_has_gone_is_free() {
        let budget = Budget::new(100);
        let mut first = budget.claim("a");
        first.hold(50).expect("there is room");
        let mut second = budget.claim("b");
        second.hold(50).expect("there is room");
        let mut third = budget.claim("c");
        {
            let mut waiting = Box::pin(third.wait(50, SOON));
            let poll = futures::poll!(&mut waiting);
            assert!(poll.is_pending());
            drop(first);
            assert_eq!(budget.bytes(), 100, "it is granted");
        }
        assert_eq!(budget.bytes(), 50, "and given back");
    }
}
