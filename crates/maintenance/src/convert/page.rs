//! One page of rows: reading it, converting it, writing it. Each is a task of its own, so that one that holds a
//! connection ends whatever the others wait for.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform};
use kindex_store::{Arrival, MetadataStorage, OtherVersionRow, RowConversion, RowConverted, StoreError};
use tokio::task::spawn_blocking;
use tokio_util::task::AbortOnDropHandle;

use super::options::{Mode, Options};
use super::plan::{Planned, Refusal, RowProblem, plan};
use super::resume::ResumePoint;
use crate::retries::with_retries;

/// A part of a conversion that goes on by itself, and ends at the latest when it is dropped.
pub(super) struct Task<T>(AbortOnDropHandle<Result<T, StoreError>>);

impl<T: Send + 'static> Task<T> {
    pub(super) fn start(part: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Self {
        Self(AbortOnDropHandle::new(tokio::spawn(part)))
    }

    pub(super) async fn done(self) -> Result<T, StoreError> {
        self.0.await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
    }
}

/// A page that was read.
pub(super) struct Page {
    rows: Vec<OtherVersionRow>,
    /// The last row, after which the next page begins.
    pub(super) last: Arrival,
    /// How many rows it has, in whichever version.
    pub(super) walked: u64,
}

impl Page {
    /// Whether there is anything to convert.
    pub(super) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }
}

/// What became of a page.
pub(super) struct Outcome {
    pub(super) last: Arrival,
    pub(super) walked: u64,
    pub(super) converted: u64,
    pub(super) superseded: u64,
    pub(super) refusals: Vec<Refusal>,
    /// Whether rows were written.
    pub(super) is_written: bool,
}

/// The rows of a kind, and how they are converted.
#[derive(Clone)]
pub(super) struct Table {
    pub(super) storage: Arc<dyn MetadataStorage>,
    pub(super) platform: Platform,
    pub(super) kind: &'static Kind,
    pub(super) options: Options,
}

impl Table {
    pub(super) async fn read(self, after: Option<Arrival>, until: Option<Arrival>) -> Result<Option<Page>, StoreError> {
        let page_rows = self.options.page_rows.max(1);
        let read = || self.storage.rows_of_other_versions(self.kind, after, until, page_rows);
        let page = with_retries(self.options.retry_budget, read).await?;
        Ok(page.last.map(|last| Page {
            rows: page.rows,
            last,
            walked: page.walked,
        }))
    }

    /// Converts a page, and writes it together with a place: pages that are written at the same time may end in any
    /// order, so it is the one up to which all rows were done before.
    pub(super) async fn convert(self, page: Page, place: Option<ResumePoint>) -> Result<Outcome, StoreError> {
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
                self.write(&conversions, place, &mut outcome).await?;
                outcome.is_written = true;
            }
        }
        Ok(outcome)
    }

    /// Writes rows in one transaction; where the database refuses it, finds the rows that are to blame and writes the
    /// others.
    async fn write(
        &self,
        conversions: &[RowConversion],
        place: Option<ResumePoint>,
        outcome: &mut Outcome,
    ) -> Result<(), StoreError> {
        let place = place.map(|place| place.text());
        let mut parts = vec![conversions];
        while let Some(part) = parts.pop() {
            match (self.write_rows(part, place.as_deref()).await, part) {
                (Err(StoreError::Refused { source, .. }), [one]) => {
                    let reason = format!("the database refuses the converted row: {source}");
                    let refusal = Refusal::of(self.kind, one.row(), RowProblem::row(reason));
                    outcome.refusals.push(refusal);
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
        let write = || self.storage.convert_rows(self.kind, rows, progress, Timestamp::now());
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
