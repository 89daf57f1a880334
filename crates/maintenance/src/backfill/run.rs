//! Reads the list page by page, writes several pages at a time, and saves the progress up to which all pages are
//! written. Memory: one page per writer, and one more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{BACKFILL_PROGRESS, WorkState};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::fill::{Filled, Filler};
use super::resume::ResumePoint;
use crate::pages::{Listed, PageSink, Pages};
use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// The options of a backfill.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most objects per second; `None`: no limit.
    pub objects_per_second: Option<f64>,
    /// Pages that are written at a time.
    pub writers: usize,
    /// Objects a page.
    pub page_rows: u32,
    /// Start from the beginning instead of resuming an interrupted run.
    pub restart: bool,
    /// How often the progress is saved.
    pub bookmark_period: Duration,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            objects_per_second: None,
            writers: 2,
            page_rows: 500,
            restart: false,
            bookmark_period: Duration::from_secs(2),
            retry_budget: RetryBudget::default(),
        }
    }
}

/// Stores every object of a kind that the cluster lists and SQL lacks, or holds in an older version.
///
/// # Guarantees
/// Writes go through the store's batches, which check versions: a newer row stays. A second run over the same
/// objects writes nothing. An ingester may run at the same time. Where the kind had no row
/// and no checkpoint, an ingester that starts afterwards goes on from the list's version.
///
/// # Assumptions
/// The store is prepared.
///
/// # Errors
/// If the cluster or the database does not answer within the retry budget. What was written stays.
pub async fn backfill(
    sides: &Sides,
    kind: &'static Kind,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Filled, RepairError> {
    let storage = &sides.storage;
    let checkpoint = with_retries(options.retry_budget, || storage.checkpoint(kind)).await?;
    let quarantined = with_retries(options.retry_budget, || storage.quarantined(kind)).await?;
    let resume_point = saved(sides, kind, options).await?;
    let empty = with_retries(options.retry_budget, || storage.scan(kind, None, 1))
        .await?
        .is_empty();
    let fresh = checkpoint.is_none() && resume_point.as_ref().map_or(empty, ResumePoint::is_fresh);
    let filler = Arc::new(Filler {
        sides: sides.as_ingester(),
        kind,
        retry_budget: options.retry_budget,
        may_have_company: !fresh,
        refused: quarantined.into_iter().map(|record| record.uid).collect(),
    });
    let pages = Pages {
        kind,
        cluster: sides.cluster.clone(),
        page_rows: options.page_rows,
        retry_budget: options.retry_budget,
        progress,
    };
    let mut filling = Filling::new(&filler, &**storage, options, progress, fresh);
    let version = pages
        .walk(resume_point.map(ResumePoint::into_start), &mut filling)
        .await?;
    with_retries(options.retry_budget, || storage.forget_state(kind, BACKFILL_PROGRESS)).await?;
    if fresh {
        let save = || storage.save_first_checkpoint(kind, version, Timestamp::now());
        with_retries(options.retry_budget, save).await?;
    }
    progress.end();
    Ok(filling.filled)
}

async fn saved(sides: &Sides, kind: &Kind, options: &Options) -> Result<Option<ResumePoint>, RepairError> {
    if options.restart {
        return Ok(None);
    }
    let text = with_retries(options.retry_budget, || sides.storage.state(kind, BACKFILL_PROGRESS)).await?;
    Ok(text.as_deref().and_then(ResumePoint::from_text))
}

/// A page that was written: its number, the token of the next one, and the result.
type Written = (u64, Option<String>, Result<Filled, RepairError>);

/// The pages that are being written, each in a task: one that holds SQLite's only writing connection must continue
/// while another waits for it.
#[derive(Default)]
struct Writers {
    tasks: JoinSet<Written>,
    begun: u64,
    /// Written before a page that was listed earlier.
    early: BTreeMap<u64, (Option<String>, Filled)>,
    ended: u64,
}

impl Writers {
    fn begin(&mut self, filler: &Arc<Filler>, listed: Listed) {
        let (filler, number) = (filler.clone(), self.begun);
        self.begun += 1;
        let Listed { page, next } = listed;
        self.tasks.spawn(async move { (number, next, filler.fill(page).await) });
    }

    /// Waits for one more page; `None` when there is none.
    async fn end_one(&mut self) -> Result<Option<()>, RepairError> {
        let Some(ended) = self.tasks.join_next().await else {
            return Ok(None);
        };
        let (number, next, filled) = ended.expect("a writer neither panics nor is aborted");
        self.early.insert(number, (next, filled?));
        Ok(Some(()))
    }

    /// Waits for all writes in flight: a write that is cut off would keep its locks until the server notices.
    async fn end_all(mut self) -> Vec<Filled> {
        let mut pages: Vec<Filled> = self.early.into_values().map(|(_, filled)| filled).collect();
        while let Some(ended) = self.tasks.join_next().await {
            let (_, _, filled) = ended.expect("a writer neither panics nor is aborted");
            // Only the first error is reported.
            pages.extend(filled.ok());
        }
        pages
    }

    /// The next page up to which all are written.
    fn next_ended(&mut self) -> Option<(Option<String>, Filled)> {
        let ended = self.early.remove(&self.ended)?;
        self.ended += 1;
        Some(ended)
    }
}

/// Pages on their way into SQL.
struct Filling<'a> {
    filler: &'a Arc<Filler>,
    /// Where the progress is saved.
    state: &'a dyn WorkState,
    options: &'a Options,
    progress: &'a dyn Progress,
    fresh: bool,
    writers: Writers,
    filled: Filled,
    version: ResourceVersion,
    /// Objects of the list that are written, with all before them.
    done: u64,
    pace: Pace,
    began: Instant,
    saved: Instant,
}

impl<'a> Filling<'a> {
    fn new(
        filler: &'a Arc<Filler>,
        state: &'a dyn WorkState,
        options: &'a Options,
        progress: &'a dyn Progress,
        fresh: bool,
    ) -> Self {
        let now = Instant::now();
        Self {
            filler,
            state,
            options,
            progress,
            fresh,
            writers: Writers::default(),
            filled: Filled {
                kind: filler.kind.name,
                ..Filled::default()
            },
            version: ResourceVersion::default(),
            done: 0,
            pace: Pace::new(options.objects_per_second),
            began: now,
            saved: now,
        }
    }

    /// Waits for one more page; whether there was one.
    async fn end_one(&mut self) -> Result<bool, RepairError> {
        if self.writers.end_one().await?.is_none() {
            return Ok(false);
        }
        while let Some((next, page)) = self.writers.next_ended() {
            self.filled.add(&page);
            self.done += page.objects;
            self.progress.advance(page.objects);
            if let Some(next) = next.filter(|_| self.saved.elapsed() >= self.options.bookmark_period) {
                self.save(&ResumePoint::new(next, self.version, self.done, self.fresh))
                    .await?;
                self.saved = Instant::now();
            }
        }
        Ok(true)
    }

    async fn save(&self, resume_point: &ResumePoint) -> Result<(), RepairError> {
        let Filler { kind, retry_budget, .. } = &**self.filler;
        let text = resume_point.to_text();
        let save = || self.state.save_state(kind, BACKFILL_PROGRESS, &text, Timestamp::now());
        Ok(with_retries(*retry_budget, save).await?)
    }
}

impl PageSink for Filling<'_> {
    fn begin(&mut self, version: ResourceVersion, objects: u64) {
        self.version = version;
        self.done = objects;
        self.progress.advance(objects);
        self.pace = Pace::new(self.options.objects_per_second);
        self.began = Instant::now();
        self.saved = self.began;
    }

    async fn take(&mut self, listed: Listed) -> Result<(), RepairError> {
        if self.writers.tasks.len() >= self.options.writers.max(1) {
            self.end_one().await?;
        }
        sleep(self.pace.pass(listed.page.len(), self.began.elapsed())).await;
        self.writers.begin(self.filler, listed);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), RepairError> {
        while self.end_one().await? {}
        Ok(())
    }

    async fn stop(&mut self) {
        for page in std::mem::take(&mut self.writers).end_all().await {
            self.filled.add(&page);
        }
    }

    fn begin_anew(&mut self) {
        self.filled.begin_anew();
    }
}
