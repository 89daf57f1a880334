//! Somebody who follows the outbox of a kind with events, page by page.

use std::collections::BTreeMap;

use kindex_store::{Mark, OutboxEntry};

use super::backend::Backend;
use super::widget::{NOTICE, at};

/// An object as it is seen: its uid, since when it is being deleted, and whether it is gone.
type Seen = (String, Option<i64>, bool);

/// What a subscriber knows.
#[derive(Default)]
pub(super) struct Follower {
    pub(super) mark: Mark,
    pub(super) objects: BTreeMap<String, OutboxEntry>,
    /// The positions of all changes, as they came.
    pub(super) positions: Vec<u64>,
}

impl Follower {
    /// Reads all that is there, and gives it back.
    pub(super) async fn read(&mut self, backend: &Backend) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            let entries = self.page(backend, 3).await;
            let entries = entries.expect("the database knows the mark that it gave");
            if entries.is_empty() {
                return seen;
            }
            for entry in entries {
                seen.push(seen_as(&entry));
                match entry.erased {
                    true => drop(self.objects.remove(&*entry.uid.0)),
                    false => drop(self.objects.insert(entry.uid.to_string(), entry)),
                }
            }
        }
    }

    /// Each page begins after the one before, and is in order.
    pub(super) async fn page(&mut self, backend: &Backend, limit: u32) -> Option<Vec<OutboxEntry>> {
        let after = self.mark;
        let page = backend.answer(async || backend.store.since(&NOTICE, after, limit).await);
        let (entries, mark) = page.await.expect("readable")?;
        let mut last = after.position;
        for entry in &entries {
            let is_next = last < entry.position && entry.position <= mark.position;
            assert!(is_next, "{entry:?} after {last:?}, up to {mark:?}");
            last = entry.position;
            self.positions.push(last.0);
        }
        self.mark = mark;
        Some(entries)
    }
}

pub(super) fn seen_as(entry: &OutboxEntry) -> Seen {
    let since = entry
        .deletion_timestamp
        .map(|time| time.as_second() - at(0).as_second());
    (entry.uid.to_string(), since, entry.erased)
}

pub(super) fn there(uid: &str) -> Seen {
    (uid.to_owned(), None, false)
}

pub(super) fn leaving(uid: &str, second: i64) -> Seen {
    (uid.to_owned(), Some(second), false)
}

pub(super) fn gone(uid: &str, second: i64) -> Seen {
    (uid.to_owned(), Some(second), true)
}
