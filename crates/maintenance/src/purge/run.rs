//! Removes the rows that a rule covers, page by page, each page in its own transactions. An interrupted run can simply
//! be repeated, because removed rows are no longer found.

use jiff::Timestamp;
use kindex_model::kind::{Kind, Retention};
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::progress::Progress;
use kindex_store::{Gone, GoneRow, Purge, ReadVersion, StoreError};
use serde::Serialize;

use super::rule::{Age, LastKept, RowAction, age, covered, describe, of_archived};
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
    /// Whether somebody carries out the deletions of archived objects, as `kindex deletion` does.
    pub has_deletion: bool,
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
            has_deletion: false,
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
    /// Archived objects whose deletion was requested. Their rows go once they are deleted, by the same rule.
    pub requested: u64,
    /// Archived objects that were found, and whose deletion was not requested: somebody began to use them or changed
    /// them, or their texts cannot be read.
    pub skipped: u64,
    /// When the first of these objects left.
    pub oldest: Option<Timestamp>,
    /// When the last of these objects left.
    pub newest: Option<Timestamp>,
}

impl Purged {
    fn count(&mut self, row: &GoneRow, action: RowAction) {
        match (action, row.life) {
            (RowAction::Delete, _) => self.requested += 1,
            (RowAction::Remove, Life::Archived) => self.evicted += 1,
            (RowAction::Remove, Life::Deleted | Life::Live) => self.deleted += 1,
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
/// Rows of archived objects are removed only if the rule covers them. One that may hold objects of other services, or
/// have something outside, is never removed before it was deleted. No transaction holds more than a page. An
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
    let archived = of_archived(kind, rule, options.has_outside, options.has_deletion);
    let mut walk = Walk {
        storage,
        kind,
        options,
        progress,
        purged: Purged {
            kind: kind.name,
            rule: describe(rule, archived),
            deleted: 0,
            evicted: 0,
            requested: 0,
            skipped: 0,
            oldest: None,
            newest: None,
        },
    };
    progress.begin(kind.name, None);
    let now = with_retries(options.retry_budget, || storage.clock()).await?;
    let age = age(rule, now);
    for (covered, action) in covered(rule, archived) {
        walk.by_rule(rule, age, &covered, action).await?;
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
    /// Over the rows that the rule covers, those that it lets go.
    async fn by_rule(
        &mut self,
        rule: &Retention,
        age: Age,
        covered: &Gone,
        action: RowAction,
    ) -> Result<(), StoreError> {
        let gone = match age {
            Age::Any => covered.clone(),
            Age::Before(time) => Gone {
                before: Some(time),
                ..covered.clone()
            },
            Age::None => return Ok(()),
        };
        let place = match rule.keep_last_per_namespace {
            None | Some(0) => return self.over(&gone, None, action).await,
            Some(place) => place,
        };
        let (storage, kind) = (self.storage, self.kind);
        // The last rows are those of all that are covered, including the ones that are too young.
        let last = || storage.nth_newest_gone(kind, covered, place);
        for row in with_retries(self.options.retry_budget, last).await? {
            let last = LastKept::from(row);
            self.over(&last.narrow(gone.clone()), Some(&last), action).await?;
        }
        Ok(())
    }

    async fn over(&mut self, gone: &Gone, last: Option<&LastKept>, action: RowAction) -> Result<(), StoreError> {
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
                let found = page.len();
                let mut done = self.carry_out(gone, &page, action).await?;
                done.sort_unstable();
                page.retain(|row| done.binary_search(&row.uid).is_ok());
                if action == RowAction::Delete {
                    self.purged.skipped += (found - page.len()) as u64;
                }
            }
            self.progress.advance(page.len() as u64);
            for row in &page {
                self.purged.count(row, action);
            }
        }
    }

    /// Those of a page that are still as they were found.
    async fn carry_out(&self, gone: &Gone, page: &[GoneRow], action: RowAction) -> Result<Vec<Uid>, StoreError> {
        let budget = self.options.retry_budget;
        let now = with_retries(budget, || self.storage.clock()).await?;
        match action {
            RowAction::Remove => {
                let uids: Vec<Uid> = page.iter().map(|row| row.uid.clone()).collect();
                with_retries(budget, || self.storage.remove(self.kind, gone, &uids, now)).await
            }
            RowAction::Delete => {
                let read = page.iter().map(|row| ReadVersion {
                    uid: row.uid.clone(),
                    version: row.res_version.pack(),
                });
                let read: Vec<ReadVersion> = read.collect();
                with_retries(budget, || self.storage.request_deletions(self.kind, &read, now)).await
            }
        }
    }

    fn end(self) -> Purged {
        self.progress.end();
        self.purged
    }
}
