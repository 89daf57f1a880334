//! Walks over the rows of a kind page by page: while some pages are written, the next ones are read and converted.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use futures::future::{BoxFuture, try_join};
use futures::stream::{BoxStream, try_unfold};
use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform};
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{
    Arrival, CONVERT_PROGRESS, MetadataStorage, OtherVersionRow, RowConversion, RowConverted, StoreError,
};
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::plan::{Blame, Planned, Refusal, plan};
use super::refused;
use super::resume::ResumePoint;
use crate::retries::{RetryBudget, with_retries};

/// How many refusals of a kind are named; the others are counted.
pub const REFUSALS_MAX: usize = 1_000;

/// How many pages are converted and written at the same time. A server writes one with one thread and then waits for
/// the disk, this process converts one with one thread: with several, none of them waits for the others.
const PAGES_AT_ONCE: usize = 3;

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Rows are converted.
    Convert,
    /// Rows are counted.
    DryRun,
}

/// The options of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether anything is written.
    pub mode: Mode,
    /// Most rows a second that are walked over, in whichever version; `None`: as fast as the database.
    pub rows_per_second: Option<f64>,
    /// Most rows of a page, which is one transaction.
    pub page_rows: u32,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Convert,
            rows_per_second: None,
            page_rows: 500,
            retry_budget: RetryBudget::default(),
        }
    }
}

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
    storage: &dyn MetadataStorage,
    platform: &Platform,
    kind: &'static Kind,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Converted, StoreError> {
    let table = Table {
        storage,
        platform: *platform,
        kind,
        options,
        began: Instant::now(),
        pace: &Mutex::new(Pace::new(options.rows_per_second)),
    };
    let mut walk = Walk {
        table,
        progress,
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
    let total = counts.live + counts.evicted + counts.deleted;
    progress.begin(&format!("convert {}", kind.table), Some(total));
    let saved = with_retries(retry_budget, || storage.state(kind, CONVERT_PROGRESS)).await?;
    let place = saved.as_deref().and_then(ResumePoint::parse);
    walk.over(place, None).await?;
    if place.is_some() {
        walk.over(None, place).await?;
    }
    if options.mode == Mode::Convert {
        let refused = &walk.converted.refused_versions;
        with_retries(retry_budget, || refused::save(storage, kind, refused)).await?;
        with_retries(retry_budget, || storage.forget_state(kind, CONVERT_PROGRESS)).await?;
    }
    progress.end();
    Ok(walk.converted)
}

struct Walk<'a> {
    table: Table<'a>,
    progress: &'a dyn Progress,
    converted: Converted,
}

/// A page that was read.
struct Page {
    rows: Vec<OtherVersionRow>,
    last: Arrival,
    walked: u64,
}

/// What became of a page.
struct Outcome {
    last: Arrival,
    walked: u64,
    converted: u64,
    superseded: u64,
    refusals: Vec<Refusal>,
    /// Whether rows were written.
    is_written: bool,
}

impl Walk<'_> {
    /// All rows after one place and up to another. Pages are written at the same time, and end in their order.
    async fn over(&mut self, after: Option<Arrival>, until: Option<Arrival>) -> Result<(), StoreError> {
        let table = self.table;
        let converting = table.pages(after, until).map_ok(move |page| table.converting(page));
        let mut outcomes = converting.try_buffered(PAGES_AT_ONCE);
        let mut next = outcomes.try_next().await?;
        while let Some(outcome) = next {
            let walked = outcome.walked;
            let place = self.converted.count(outcome);
            let (following, ()) = try_join(outcomes.try_next(), table.save(place)).await?;
            self.progress.advance(walked);
            next = following;
        }
        Ok(())
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

/// The rows of a kind, and how they are converted.
#[derive(Clone, Copy)]
struct Table<'a> {
    storage: &'a dyn MetadataStorage,
    platform: Platform,
    kind: &'static Kind,
    options: &'a Options,
    began: Instant,
    pace: &'a Mutex<Pace>,
}

impl<'a> Table<'a> {
    /// The pages of all rows after one place and up to another, no faster than the options allow.
    fn pages(self, after: Option<Arrival>, until: Option<Arrival>) -> BoxStream<'a, Result<Page, StoreError>> {
        let pages = try_unfold((after, Duration::ZERO), move |(after, pause)| async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let page = self.read(after, until).await?;
            Ok(page.map(|page| {
                let next = (Some(page.last), self.pause_after(&page));
                (page, next)
            }))
        });
        Box::pin(pages)
    }

    fn pause_after(self, page: &Page) -> Duration {
        let rows = usize::try_from(page.walked).unwrap_or(usize::MAX);
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.pass(rows, self.began.elapsed())
    }

    fn converting(self, page: Page) -> BoxFuture<'a, Result<Outcome, StoreError>> {
        Box::pin(self.convert(page))
    }

    async fn read(self, after: Option<Arrival>, until: Option<Arrival>) -> Result<Option<Page>, StoreError> {
        let (storage, kind, page_rows) = (self.storage, self.kind, self.options.page_rows.max(1));
        let read = || storage.rows_of_other_versions(kind, after, until, page_rows);
        let page = with_retries(self.options.retry_budget, read).await?;
        Ok(page.last.map(|last| Page {
            rows: page.rows,
            last,
            walked: page.walked,
        }))
    }

    async fn convert(self, page: Page) -> Result<Outcome, StoreError> {
        let (platform, kind, rows) = (self.platform, self.kind, page.rows);
        let planned = spawn_blocking(move || plan(&platform, kind, rows)).await;
        let Planned { conversions, refusals } = planned.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        let mut outcome = Outcome {
            last: page.last,
            walked: page.walked,
            converted: 0,
            superseded: 0,
            refusals,
            is_written: false,
        };
        match self.options.mode {
            Mode::DryRun => outcome.converted = conversions.len() as u64,
            Mode::Convert if conversions.is_empty() => {}
            Mode::Convert => {
                self.write(&conversions, &mut outcome).await?;
                outcome.is_written = true;
            }
        }
        Ok(outcome)
    }

    /// Writes rows in one transaction; where the database refuses it, finds the rows that are to blame and writes the
    /// others.
    async fn write(self, conversions: &[RowConversion], outcome: &mut Outcome) -> Result<(), StoreError> {
        let mut parts = vec![conversions];
        while let Some(part) = parts.pop() {
            match (self.write_rows(part, None).await, part) {
                (Err(StoreError::Refused { source, .. }), [one]) => {
                    let reason = format!("the database refuses the converted row: {source}");
                    outcome
                        .refusals
                        .push(Refusal::of(self.kind, one.row(), Blame::row(reason)));
                }
                (Err(StoreError::Refused { .. }), part) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                (written, _) => outcome.count(&written?),
            }
        }
        Ok(())
    }

    /// Saves how far all rows are done, once they are: pages that are written at the same time may end in any order.
    async fn save(self, place: Option<ResumePoint>) -> Result<(), StoreError> {
        match place {
            Some(place) => self.write_rows(&[], Some(&place.text())).await.map(drop),
            None => Ok(()),
        }
    }

    async fn write_rows(self, rows: &[RowConversion], progress: Option<&str>) -> Result<Vec<RowConverted>, StoreError> {
        let (storage, kind) = (self.storage, self.kind);
        let write = || storage.convert_rows(kind, rows, progress, Timestamp::now());
        with_retries(self.options.retry_budget, write).await
    }
}

impl Outcome {
    fn count(&mut self, written: &[RowConverted]) {
        for became in written {
            match became {
                RowConverted::Converted => self.converted += 1,
                RowConverted::Superseded => self.superseded += 1,
            }
        }
    }
}
