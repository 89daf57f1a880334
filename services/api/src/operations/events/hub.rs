//! The changes of one kind for all who follow it: one poller reads them, and keeps the last for those who are a little
//! behind. Nobody who is up to date causes a statement.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use kindex_model::kind::Kind;
use kindex_store::{Mark, Outbox};
use tokio::sync::watch;

use super::page::Page;

/// Most changes that are read together.
pub(super) const CHANGES_AT_ONCE: u32 = 1000;
/// Changes that are kept for who is behind.
const CHANGES_KEPT: usize = 10_000;

/// The hubs of all kinds that are followed.
pub(in super::super) struct Hubs {
    of: Vec<(&'static str, Mutex<Weak<Hub>>)>,
    every: Duration,
}

impl Hubs {
    /// None yet; the database is asked at this interval while somebody follows.
    pub(in super::super) fn new(kinds: &[&'static Kind], every: Duration) -> Self {
        Self {
            of: kinds.iter().map(|kind| (kind.name, Mutex::default())).collect(),
            every,
        }
    }

    /// The hub of a kind, for who knows all up to this mark.
    pub(super) fn join(&self, store: &Arc<dyn Outbox>, kind: &'static Kind, from: Mark) -> Arc<Hub> {
        let mut places = self.of.iter();
        let (_, place) = places
            .find(|(name, _)| *name == kind.name)
            .expect("one of the registry");
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hub) = place.upgrade().filter(|hub| !hub.is_lost()) {
            return hub;
        }
        let hub = Arc::new(Hub {
            recent: Mutex::new(RecentChanges::from(from)),
            news: watch::Sender::new(()),
        });
        *place = Arc::downgrade(&hub);
        let poll = Poll {
            hub: place.clone(),
            store: store.clone(),
            kind,
            every: self.every,
        };
        tokio::spawn(poll.run());
        hub
    }
}

/// What is known of the changes of a kind since somebody follows it.
pub(super) struct Hub {
    recent: Mutex<RecentChanges>,
    news: watch::Sender<()>,
}

/// What a hub has for somebody.
#[derive(Debug)]
pub(super) enum Found {
    /// The next changes.
    Page(Arc<Page>),
    /// Nothing new.
    UpToDate,
    /// More than is kept: it has to be read.
    Behind,
    /// The database knows the place of the hub no more.
    Lost,
}

impl Hub {
    /// What comes after a mark.
    pub(super) fn after(&self, mark: Mark) -> Found {
        self.recent().after(mark)
    }

    /// Is notified when there is something new.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    fn is_lost(&self) -> bool {
        self.recent().is_lost
    }

    fn recent(&self) -> MutexGuard<'_, RecentChanges> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last changes, without a gap.
#[derive(Debug)]
struct RecentChanges {
    pages: VecDeque<Arc<Page>>,
    changes: usize,
    first: Mark,
    last: Mark,
    is_lost: bool,
}

impl RecentChanges {
    fn from(mark: Mark) -> Self {
        Self {
            pages: VecDeque::new(),
            changes: 0,
            first: mark,
            last: mark,
            is_lost: false,
        }
    }

    fn after(&self, mark: Mark) -> Found {
        let is_another = |known: Mark| known.position == mark.position && known.stamp != mark.stamp;
        if self.is_lost || is_another(self.first) || is_another(self.last) {
            return Found::Lost;
        }
        if mark.position < self.first.position {
            return Found::Behind;
        }
        let mut pages = self.pages.iter();
        let next = pages.find(|page| page.until.position > mark.position);
        next.map_or(Found::UpToDate, |page| Found::Page(page.clone()))
    }

    fn add(&mut self, page: Page) {
        self.last = page.until;
        self.changes += page.len();
        self.pages.push_back(Arc::new(page));
        while self.changes > CHANGES_KEPT && self.pages.len() > 1 {
            if let Some(oldest) = self.pages.pop_front() {
                self.changes -= oldest.len();
                self.first = oldest.until;
            }
        }
    }
}

/// Asks the database, until nobody follows.
struct Poll {
    hub: Weak<Hub>,
    store: Arc<dyn Outbox>,
    kind: &'static Kind,
    every: Duration,
}

impl Poll {
    async fn run(self) {
        while let Some(hub) = self.hub.upgrade() {
            let after = hub.recent().last;
            let mut is_more = false;
            match self.store.since(self.kind, after, CHANGES_AT_ONCE).await {
                Ok(Some((_, until))) if until == after => {}
                Ok(Some((entries, until))) => {
                    is_more = !entries.is_empty();
                    hub.recent().add(Page::new(self.kind, after, entries, until));
                    hub.news.send_replace(());
                }
                Ok(None) => {
                    hub.recent().is_lost = true;
                    hub.news.send_replace(());
                    return;
                }
                Err(error) => tracing::debug!(%error, kind = self.kind.name, "Events cannot be read"),
            }
            // Who follows holds the hub; the poller must not.
            drop(hub);
            if !is_more {
                tokio::time::sleep(self.every).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Uid;
    use kindex_store::{OutboxEntry, Position};

    use super::*;
    use crate::operations::token::tests::KIND;

    fn mark(position: usize) -> Mark {
        Mark {
            position: Position(position as u64),
            stamp: 7,
        }
    }

    fn page(after: usize, until: usize) -> Page {
        let entry = |position: usize| OutboxEntry {
            uid: Uid::from("u"),
            namespace: String::new(),
            name: String::new(),
            position: Position(position as u64),
            deletion_timestamp: None,
            erased: false,
        };
        Page::new(
            &KIND,
            mark(after),
            (after + 1..=until).map(entry).collect(),
            mark(until),
        )
    }

    fn until(found: &Found) -> Option<Mark> {
        match found {
            Found::Page(page) => Some(page.until),
            Found::UpToDate | Found::Behind | Found::Lost => None,
        }
    }

    #[test]
    fn who_is_behind_gets_the_page_that_has_the_next_change() {
        let mut recent = RecentChanges::from(mark(5));
        assert!(matches!(recent.after(mark(5)), Found::UpToDate));
        recent.add(page(5, 8));
        recent.add(page(8, 9));
        assert_eq!(until(&recent.after(mark(5))), Some(mark(8)));
        assert_eq!(until(&recent.after(mark(7))), Some(mark(8)), "also from within a page");
        assert_eq!(until(&recent.after(mark(8))), Some(mark(9)));
        assert!(matches!(recent.after(mark(9)), Found::UpToDate));
        assert!(
            matches!(recent.after(mark(12)), Found::UpToDate),
            "the poller will come there"
        );
        assert!(matches!(recent.after(mark(4)), Found::Behind));
    }

    #[test]
    fn who_knows_another_history_is_lost() {
        let recent = RecentChanges::from(mark(5));
        let other = Mark { stamp: 8, ..mark(5) };
        assert!(matches!(recent.after(other), Found::Lost));
    }

    #[test]
    fn the_oldest_pages_are_dropped_and_who_needs_them_reads_them() {
        let mut recent = RecentChanges::from(mark(0));
        recent.add(page(0, CHANGES_KEPT));
        assert_eq!(
            until(&recent.after(mark(0))),
            Some(mark(CHANGES_KEPT)),
            "one page is kept in any case"
        );
        recent.add(page(CHANGES_KEPT, CHANGES_KEPT + 1));
        assert!(matches!(recent.after(mark(0)), Found::Behind));
        assert_eq!(until(&recent.after(mark(CHANGES_KEPT))), Some(mark(CHANGES_KEPT + 1)));
        assert_eq!(recent.changes, 1);
    }
}
