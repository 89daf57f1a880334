//! Answers of the cluster about users and their rights, cached for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer of the cluster is used.
const REVIEW_TTL: Duration = Duration::from_secs(10);
/// Answers that are cached at most.
const REVIEWS_MAX: usize = 10_000;

/// Answers of the cluster, for as long as they are used.
pub(super) struct ReviewCache<K, V>(Mutex<HashMap<K, (Instant, V)>>);

impl<K: Hash + Eq, V: Clone> ReviewCache<K, V> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (reviewed, value) = answers.get(key)?;
        is_fresh(*reviewed, now).then(|| value.clone())
    }

    pub(super) fn put(&self, key: K, value: V, now: Instant) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= REVIEWS_MAX {
            answers.retain(|_, (reviewed, _)| is_fresh(*reviewed, now));
        }
        if answers.len() >= REVIEWS_MAX {
            answers.clear();
        }
        answers.insert(key, (now, value));
    }
}

/// Whether an answer of that time is still used.
fn is_fresh(reviewed: Instant, now: Instant) -> bool {
    now.saturating_duration_since(reviewed) < REVIEW_TTL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_cached_for_a_while() {
        let (answers, reviewed) = (ReviewCache::new(), Instant::now());
        answers.put("jane", "may", reviewed);
        let at = |passed| answers.get(&"jane", reviewed + passed);
        assert_eq!(at(Duration::ZERO), Some("may"));
        assert_eq!(at(REVIEW_TTL - Duration::from_millis(1)), Some("may"));
        assert_eq!(at(REVIEW_TTL), None);
        assert_eq!(at(Duration::from_secs(3600)), None);
        assert_eq!(answers.get(&"joe", reviewed), None);
        answers.put("jane", "may not", reviewed + REVIEW_TTL);
        assert_eq!(at(REVIEW_TTL), Some("may not"), "asked again");
    }

    #[test]
    fn answers_are_cached_up_to_a_limit_and_fresh_ones_before_the_others() {
        let (answers, reviewed) = (ReviewCache::new(), Instant::now());
        for user in 0..REVIEWS_MAX {
            answers.put(user, (), if user == 0 { reviewed + REVIEW_TTL } else { reviewed });
        }
        let later = reviewed + REVIEW_TTL;
        answers.put(REVIEWS_MAX, (), later);
        assert_eq!(
            [0, 1, REVIEWS_MAX].map(|user| answers.get(&user, later).is_some()),
            [true, false, true]
        );
        let held = |answers: &ReviewCache<usize, ()>| answers.0.lock().expect("no panic").len();
        assert_eq!(held(&answers), 2);
        for user in 0..3 * REVIEWS_MAX {
            answers.put(user, (), later);
            assert!(held(&answers) <= REVIEWS_MAX);
        }
    }
}
