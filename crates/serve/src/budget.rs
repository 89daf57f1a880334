//! Bytes that callers hold together, and no caller all of them: a small number of requests must not fill the memory,
//! however many of them are allowed at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    held: Mutex<Held<K>>,
}

#[derive(Debug)]
struct Held<K> {
    bytes: usize,
    /// Only of those who hold any.
    callers: BTreeMap<K, usize>,
}

impl<K: Ord + Clone> Budget<K> {
    /// So many bytes for all callers together, of which one caller holds at most half.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            held: Mutex::new(Held {
                bytes: 0,
                callers: BTreeMap::new(),
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

    fn held(&self) -> MutexGuard<'_, Held<K>> {
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
    /// Holds so many bytes in all.
    ///
    /// # Errors
    /// All callers, or this one, would hold more than they may. What was held before stays.
    pub fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let mut held = self.budget.held();
        let own = held.callers.get(&self.caller).copied().unwrap_or_default() + more;
        if held.bytes + more > self.budget.bytes_max || own > self.budget.bytes_max / ONE_CALLER_DIVISOR {
            return Err(NoRoom);
        }
        held.bytes += more;
        held.callers.insert(self.caller.clone(), own);
        self.bytes = bytes;
        Ok(())
    }
}

impl<K: Ord + Clone> Drop for Claim<K> {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        held.bytes -= self.bytes;
        if let Some(own) = held.callers.get_mut(&self.caller) {
            *own -= self.bytes;
            if *own == 0 {
                held.callers.remove(&self.caller);
            }
        }
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
}
