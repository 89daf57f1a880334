//! Walks over the rows of a kind page by page: while one page is written, the next one is read and converted.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use futures::future::try_join;
use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform};
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{Arrival, CONVERT_PROGRESS, MetadataStorage, RowConversion, RowConverted, StoreError};
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::plan::{Blame, Planned, Refusal, plan};
use super::refused;
use super::resume::ResumePoint;
use crate::retries::{RetryBudget, with_retries};

/// How many refusals of a kind are named; the others are counted.
pub const REFUSALS_MAX: usize = 1_000;

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
    let mut walk = Walk {
        storage,
        platform: *platform,
        kind,
        options,
        progress,
        began: Instant::now(),
        pace: Pace::new(options.rows_per_second),
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

/// A page that was read, with what its rows get.
struct Page {
    planned: Planned,
    last: Arrival,
    walked: u64,
}

struct Walk<'a> {
    storage: &'a dyn MetadataStorage,
    platform: Platform,
    kind: &'static Kind,
    options: &'a Options,
    progress: &'a dyn Progress,
    began: Instant,
    pace: Pace,
    converted: Converted,
}

/// What became of the conversions of a page.
#[derive(Default)]
struct Outcome {
    converted: u64,
    superseded: u64,
    refusals: Vec<Refusal>,
}

impl Walk<'_> {
    /// All rows after one place and up to another.
    async fn over(&mut self, after: Option<Arrival>, until: Option<Arrival>) -> Result<(), StoreError> {
        let mut next = self.read(after, until).await?;
        while let Some(page) = next {
            let pause = self.pass(&page);
            let (outcome, following) = try_join(self.write(&page), self.read(Some(page.last), until)).await?;
            self.converted.converted += outcome.converted;
            self.converted.superseded += outcome.superseded;
            self.converted.refuse(page.planned.refusals);
            self.converted.refuse(outcome.refusals);
            self.progress.advance(page.walked);
            sleep(pause).await;
            next = following;
        }
        Ok(())
    }

    /// Counts the rows of a page, and says how long to wait after it.
    fn pass(&mut self, page: &Page) -> Duration {
        self.converted.rows += page.walked;
        let rows = usize::try_from(page.walked).unwrap_or(usize::MAX);
        self.pace.pass(rows, self.began.elapsed())
    }

    async fn read(&self, after: Option<Arrival>, until: Option<Arrival>) -> Result<Option<Page>, StoreError> {
        let (storage, kind, page_rows) = (self.storage, self.kind, self.options.page_rows.max(1));
        let read = || storage.rows_of_other_versions(kind, after, until, page_rows);
        let page = with_retries(self.options.retry_budget, read).await?;
        let Some(last) = page.last else { return Ok(None) };
        let platform = self.platform;
        let planned = spawn_blocking(move || plan(&platform, kind, page.rows)).await;
        Ok(Some(Page {
            planned: planned.unwrap_or_else(|error| resume_unwind(error.into_panic())),
            last,
            walked: page.walked,
        }))
    }

    async fn write(&self, page: &Page) -> Result<Outcome, StoreError> {
        let conversions = page.planned.conversions.as_slice();
        if self.options.mode == Mode::DryRun || conversions.is_empty() {
            return Ok(Outcome {
                converted: conversions.len() as u64,
                ..Outcome::default()
            });
        }
        let done = &self.converted;
        let refused = done.refused + page.planned.refusals.len() as u64;
        let converted = done.converted + conversions.len() as u64;
        let point = ResumePoint::new(page.last, done.rows, converted, refused).text();
        let mut outcome = Outcome::default();
        match self.write_rows(conversions, Some(&point)).await {
            Err(StoreError::Refused { .. }) => {
                self.write_halves(conversions, &mut outcome).await?;
                self.write_rows(&[], Some(&point)).await?;
            }
            written => outcome.count(&written?),
        }
        Ok(outcome)
    }

    /// Finds the rows that the database refuses, and writes the others.
    async fn write_halves(&self, conversions: &[RowConversion], outcome: &mut Outcome) -> Result<(), StoreError> {
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

    async fn write_rows(
        &self,
        rows: &[RowConversion],
        progress: Option<&str>,
    ) -> Result<Vec<RowConverted>, StoreError> {
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
