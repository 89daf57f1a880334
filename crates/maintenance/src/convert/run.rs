//! Walks over the rows of a kind page by page: while some pages are written, the next ones are read and converted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kindex_model::kind::{Kind, Platform};
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{Arrival, CONVERT_PROGRESS, MetadataStorage, StoreError};
use serde::Serialize;
use tokio::time::sleep;

use super::options::{Mode, Options};
use super::page::{Outcome, Page, Table, Task};
use super::plan::Refusal;
use super::refused;
use super::resume::ResumePoint;
use crate::retries::with_retries;

/// How many refusals of a kind are named; the others are counted.
pub const REFUSALS_MAX: usize = 1_000;

/// How many pages are converted and written at the same time. A server writes one with one thread and then waits for
/// the disk, this process converts one with one thread: with several, none of them waits for the others.
pub const PAGES_AT_ONCE: usize = 4;

/// What was done to the rows of a kind, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Converted {
    /// The kind.
    pub kind: &'static str,
    /// Rows that were walked over, in whichever version.
    pub rows: u64,
    /// Rows that were converted.
    pub converted: u64,
    /// Rows that somebody else changed between the reading and the writing, and that were left to the next run.
    pub superseded: u64,
    /// Rows that stay as they are.
    pub refused: u64,
    /// The same by `group/version` of the rows.
    pub refused_versions: BTreeMap<String, u64>,
    /// The first [`REFUSALS_MAX`] of these.
    pub refusals: Vec<Refusal>,
}

impl Converted {
    fn refuse(&mut self, refusals: Vec<Refusal>) {
        self.refused += refusals.len() as u64;
        for refusal in &refusals {
            *self.refused_versions.entry(refusal.group_ver.clone()).or_default() += 1;
        }
        let room = REFUSALS_MAX.saturating_sub(self.refusals.len());
        self.refusals.extend(refusals.into_iter().take(room));
    }
}

/// Converts the rows of a kind that are archived or deleted, and whose text is in another version than the kind's own.
///
/// # Guarantees
/// A row gets what the ingester would write for the object in the kind's own version; `res_version` and all times keep
/// their values, and the text before is kept. A row that somebody writes meanwhile is left to them. A row that does
/// not convert stays as it is, is named, and stops no other. An interrupted run goes on with the next call, which still
/// covers the whole table. An ingester may run at the same time.
///
/// # Errors
/// If the database does not answer within the retry budget. Rows that were converted stay converted.
pub async fn convert(
    storage: &Arc<dyn MetadataStorage>,
    platform: &Platform,
    kind: &'static Kind,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Converted, StoreError> {
    let table = Table {
        storage: Arc::clone(storage),
        platform: *platform,
        kind,
        options: *options,
    };
    let mut walk = Walk {
        table,
        progress,
        began: Instant::now(),
        pace: Pace::new(options.rows_per_second),
        place: None,
        converted: Converted {
            kind: kind.name,
            rows: 0,
            converted: 0,
            superseded: 0,
            refused: 0,
            refused_versions: BTreeMap::new(),
            refusals: Vec::new(),
        },
    };
    let retry_budget = options.retry_budget;
    let counts = with_retries(retry_budget, || storage.count(kind)).await?;
    let total = counts.live + counts.archived + counts.deleted;
    progress.begin(&format!("convert {}", kind.table), Some(total));
    let saved = with_retries(retry_budget, || storage.state(kind, CONVERT_PROGRESS)).await?;
    let place = saved.as_deref().and_then(ResumePoint::parse);
    walk.over(place, None).await?;
    if place.is_some() {
        walk.over(None, place).await?;
    }
    if options.mode == Mode::Convert {
        let refused = &walk.converted.refused_versions;
        with_retries(retry_budget, || refused::save(storage.as_ref(), kind, refused)).await?;
        with_retries(retry_budget, || storage.forget_state(kind, CONVERT_PROGRESS)).await?;
    }
    progress.end();
    Ok(walk.converted)
}

struct Walk<'a> {
    table: Table,
    progress: &'a dyn Progress,
    began: Instant,
    pace: Pace,
    /// How far all rows are done, until a page is written that it is saved with.
    place: Option<ResumePoint>,
    converted: Converted,
}

impl Walk<'_> {
    /// All rows after one place and up to another. Pages are written at the same time, and counted in their order.
    async fn over(&mut self, after: Option<Arrival>, until: Option<Arrival>) -> Result<(), StoreError> {
        let mut reading = Some(self.reading(after, until));
        let mut written: VecDeque<Task<Outcome>> = VecDeque::with_capacity(PAGES_AT_ONCE);
        loop {
            while written.len() < PAGES_AT_ONCE
                && let Some(read) = reading.take()
            {
                if let Some(page) = read.done().await? {
                    sleep(self.pause_after(&page)).await;
                    reading = Some(self.reading(Some(page.last), until));
                    let place = self.place.take_if(|_| page.has_rows());
                    let converting = self.table.clone().convert(page, place);
                    written.push_back(Task::start(converting));
                }
            }
            let Some(oldest) = written.pop_front() else {
                return Ok(());
            };
            let outcome = oldest.done().await?;
            let walked = outcome.walked;
            self.place = self.converted.count(outcome).or(self.place.take());
            self.progress.advance(walked);
        }
    }

    fn reading(&self, after: Option<Arrival>, until: Option<Arrival>) -> Task<Option<Page>> {
        Task::start(self.table.clone().read(after, until))
    }

    fn pause_after(&mut self, page: &Page) -> Duration {
        let rows = usize::try_from(page.walked).unwrap_or(usize::MAX);
        self.pace.pass(rows, self.began.elapsed())
    }
}

impl Converted {
    /// The place that all rows before it are done; `None` where that says nothing new.
    fn count(&mut self, outcome: Outcome) -> Option<ResumePoint> {
        self.rows += outcome.walked;
        self.converted += outcome.converted;
        self.superseded += outcome.superseded;
        self.refuse(outcome.refusals);
        let place = ResumePoint::new(outcome.last, self.rows, self.converted, self.refused);
        outcome.is_written.then_some(place)
    }
}
