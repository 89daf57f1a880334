//! Removes the rows that a rule covers, page by page, each page in its own transactions. An interrupted run can simply
//! be repeated, because removed rows are no longer found.

use jiff::Timestamp;
use kindex_model::kind::{Kind, Retention};
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::progress::Progress;
use kindex_store::{Gone, GoneRow, Purge, StoreError};
use serde::Serialize;

use super::rule::{Age, LastKept, age, covered, describe, of_kind};
use crate::retries::{RetryBudget, with_retries};

/// Whether anything is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Rows are removed.
    Remove,
    /// Rows are counted.
    DryRun,
}

/// The options of a purge.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether anything is removed.
    pub mode: Mode,
    /// Whether objects of the kind may have something outside that their deletion removes.
    pub has_outside: bool,
    /// Most rows that are found and removed at a time.
    pub page_rows: u32,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Remove,
            has_outside: false,
            page_rows: 500,
            retry_budget: RetryBudget::default(),
        }
    }
}

/// The rows of a kind that were removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Purged {
    /// The kind.
    pub kind: &'static str,
    /// Its rule as text.
    pub rule: String,
    /// Rows of objects that were deleted.
    pub deleted: u64,
    /// Rows of archived objects.
    pub evicted: u64,
    /// When the first of these objects left.
    pub oldest: Option<Timestamp>,
    /// When the last of these objects left.
    pub newest: Option<Timestamp>,
}

impl Purged {
    fn count(&mut self, row: &GoneRow) {
        match row.life {
            Life::Archived => self.evicted += 1,
            Life::Deleted | Life::Live => self.deleted += 1,
        }
        let time = row.gone_time;
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.newest = self.newest.max(Some(time));
    }

    /// All removed rows.
    pub fn rows(&self) -> u64 {
        self.deleted + self.evicted
    }
}

/// Removes the rows of a kind that this rule covers, with their labels, annotations and history.
///
/// # Guarantees
/// Never removes a live row, even if it is revived in between: every condition is checked again under the row's lock.
/// Rows of archived objects are removed only if the rule covers them. No transaction holds more than a page. An
/// ingester may run at the same time.
///
/// # Errors
/// If the database does not answer within the retry budget. Rows that were removed stay removed; the next call
/// continues.
pub async fn purge(
    storage: &dyn Purge,
    kind: &'static Kind,
    rule: &Retention,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Purged, StoreError> {
    let followed = of_kind(kind, rule, options.has_outside);
    let mut walk = Walk {
        storage,
        kind,
        options,
        progress,
        purged: Purged {
            kind: kind.name,
            rule: describe(rule, &followed),
            deleted: 0,
            evicted: 0,
            oldest: None,
            newest: None,
        },
    };
    progress.begin(kind.name, None);
    let covered = covered(&followed);
    let now = with_retries(options.retry_budget, || storage.clock()).await?;
    let gone = match age(rule, now) {
        Age::Any => covered.clone(),
        Age::Before(time) => Gone {
            before: Some(time),
            ..covered.clone()
        },
        Age::None => return Ok(walk.end()),
    };
    match rule.keep_last_per_namespace {
        None | Some(0) => walk.over(&gone, None).await?,
        Some(place) => {
            // The last rows are those of all that the rule covers, including the ones that are too young.
            let last = || storage.nth_newest_gone(kind, &covered, place);
            for row in with_retries(options.retry_budget, last).await? {
                let last = LastKept::from(row);
                walk.over(&last.narrow(gone.clone()), Some(&last)).await?;
            }
        }
    }
    Ok(walk.end())
}

struct Walk<'a> {
    storage: &'a dyn Purge,
    kind: &'static Kind,
    options: &'a Options,
    progress: &'a dyn Progress,
    purged: Purged,
}

impl Walk<'_> {
    async fn over(&mut self, gone: &Gone, last: Option<&LastKept>) -> Result<(), StoreError> {
        let Options {
            mode,
            page_rows,
            retry_budget,
            ..
        } = *self.options;
        let mut after = None;
        loop {
            let read = || self.storage.gone_rows(self.kind, gone, after, page_rows);
            let mut page = with_retries(retry_budget, read).await?;
            let Some(row) = page.last() else { return Ok(()) };
            after = Some(row.arrival);
            page.retain(|row| last.is_none_or(|last| last.is_before(row)));
            if mode == Mode::Remove && !page.is_empty() {
                let uids: Vec<Uid> = page.iter().map(|row| row.uid.clone()).collect();
                let now = with_retries(retry_budget, || self.storage.clock()).await?;
                let remove = || self.storage.remove(self.kind, gone, &uids, now);
                let mut removed = with_retries(retry_budget, remove).await?;
                removed.sort_unstable();
                page.retain(|row| removed.binary_search(&row.uid).is_ok());
            }
            self.progress.advance(page.len() as u64);
            for row in &page {
                self.purged.count(row);
            }
        }
    }

    fn end(self) -> Purged {
        self.progress.end();
        self.purged
    }
}
