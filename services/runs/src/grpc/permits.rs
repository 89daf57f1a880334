//! Permits of open streams: so many in all, and so many for one caller, so that nobody holds all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::{self, Limit};
use crate::refusal::{Code, Refusal};

/// When to ask again.
const AGAIN: Duration = Duration::from_secs(5);

/// The permits of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Permits(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_caller: HashMap<String, usize>,
}

/// A permit, which is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    places: Permits,
    caller: String,
}

impl Permits {
    /// A permit for a caller, by the id of the key.
    ///
    /// # Errors
    /// The caller has as many as one may have, or there are as many as there may be.
    pub(super) fn take(&self, caller: &str) -> Result<Permit, Refusal> {
        let mut taken = self.taken();
        let of_caller = taken.by_caller.get(caller).copied().unwrap_or(0);
        for (count, limit) in [(of_caller, limits::STREAMS_OF_CALLER), (taken.all, limits::STREAMS)] {
            if count >= limit.max {
                return Err(exhausted(limit));
            }
        }
        taken.all += 1;
        taken.by_caller.insert(caller.to_owned(), of_caller + 1);
        Ok(Permit {
            places: self.clone(),
            caller: caller.to_owned(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        match taken.by_caller.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => {
                taken.by_caller.remove(&self.caller);
            }
        }
    }
}

fn exhausted(limit: Limit) -> Refusal {
    let message = format!(
        "there are {} {} already; end one, or send the batches by LogMetrics",
        limit.max, limit.of
    );
    Refusal::new(Code::ResourceExhausted, "STREAMS_EXHAUSTED", message).again_after(AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_as_many_places_as_the_limit_allows_and_leaves_the_others_theirs() {
        let places = Permits::default();
        let most = limits::STREAMS_OF_CALLER.max;
        let mut held: Vec<Permit> = (1..most).map(|_| places.take("a").expect("a place")).collect();
        held.push(places.take("a").expect("the last one"));
        let refused = places.take("a").expect_err("one too many");
        assert_eq!(refused.reason, "STREAMS_EXHAUSTED");
        assert!(refused.message.contains("of a caller") && refused.retry_after.is_some());
        let of_others = places.take("b").expect("a place of another caller");
        held.pop();
        held.push(places.take("a").expect("one was given back"));
        drop((held, of_others));
        assert_eq!(places.taken().all, 0);
        assert!(
            places.taken().by_caller.is_empty(),
            "nothing is kept of callers who have gone"
        );
    }

    #[test]
    fn there_are_as_many_places_as_the_limit_allows() {
        let places = Permits::default();
        let callers = |number: usize| (number / limits::STREAMS_OF_CALLER.max).to_string();
        let held = (0..limits::STREAMS.max).map(|number| places.take(&callers(number)).expect("a place"));
        let mut held: Vec<Permit> = held.collect();
        let refused = places.take("another").expect_err("one too many");
        assert!(
            refused.message.contains("256 open streams already"),
            "{}",
            refused.message
        );
        held.pop();
        places.take("another").expect("one was given back");
    }
}
