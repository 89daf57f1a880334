//! A queue for each object that is being changed: concurrent changes wait for each other, first come, first served,
//! instead of conflicting and retrying. Nobody waits for the change of another object, however long its conversion
//! webhook takes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Line, OwnedMutexGuard};

use crate::store::ObjectKey;

/// The lines before the objects that are being changed.
#[derive(Default)]
pub(crate) struct Turns {
    lines: Mutex<HashMap<ObjectKey, Arc<Line<()>>>>,
}

/// The turn at one object; it ends when this is dropped.
pub(crate) struct Turn<'a> {
    // Dropped in this order: the next one is let in before the line is left.
    _first: OwnedMutexGuard<()>,
    _place: Ticket<'a>,
}

/// A ticket of a line; the last one takes the line away.
struct Ticket<'a> {
    turns: &'a Turns,
    key: &'a ObjectKey,
    line: Arc<Line<()>>,
}

impl Turns {
    /// Waits for the turn at `key`.
    pub(crate) async fn at<'a>(&'a self, key: &'a ObjectKey) -> Turn<'a> {
        let line = Arc::clone(self.lines().entry(key.clone()).or_default());
        let place = Ticket { turns: self, key, line };
        Turn {
            _first: Arc::clone(&place.line).lock_owned().await,
            _place: place,
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<ObjectKey, Arc<Line<()>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        // Who stands in a line has a count of it: one is this, one is the table's.
        if Arc::strong_count(&self.line) <= 2 {
            lines.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("configmaps", "default", name)
    }

    #[tokio::test]
    async fn only_who_wants_the_same_object_waits_and_nothing_stays_behind() {
        let turns = Turns::default();
        let slow = key("slow");
        let held = turns.at(&slow).await;
        for at in 0..1_000 {
            let other = key(&at.to_string());
            let turn = timeout(Duration::from_secs(5), turns.at(&other)).await;
            drop(turn.expect("nobody else changes it"));
        }
        let given_up = timeout(Duration::from_millis(10), turns.at(&slow)).await;
        assert!(given_up.is_err(), "the object is being changed");
        assert_eq!(turns.lines().len(), 1);
        drop(held);
        assert!(turns.lines().is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_let_in_and_keeps_the_others_out() {
        let turns = Turns::default();
        let one = key("one");
        let first = turns.at(&one).await;
        let (mut second, mut third) = (Box::pin(turns.at(&one)), Box::pin(turns.at(&one)));
        assert!(timeout(Duration::from_millis(10), &mut second).await.is_err());
        drop(first);
        let held = timeout(Duration::from_secs(5), second).await.expect("let in");
        assert!(timeout(Duration::from_millis(10), &mut third).await.is_err());
        drop(held);
        drop(timeout(Duration::from_secs(5), third).await.expect("let in"));
        assert!(turns.lines().is_empty());
    }
}
