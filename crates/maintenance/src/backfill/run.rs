//! The listing: pages in order, so many of them at a time in the hands of writers, and a
//! bookmark in the database behind the last page up to which all are written. Memory: a
//! page for each writer, and one more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::{ClusterError, Page};
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{StoreError, WorkState};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::fill::{Filled, Filler};
use super::resume::{Bookmark, STATE};
use crate::patience::{Patience, patiently};
use crate::verify::Sides;

/// How often a list whose version is no longer kept is begun anew.
const LISTS_MAX: u32 = 20;

/// How a backfill goes about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// At most so many objects a second; `None`: as fast as it goes.
    pub objects_per_second: Option<f64>,
    /// Pages that are written at a time.
    pub writers: usize,
    /// Objects a page.
    pub page_rows: u32,
    /// Begin at the beginning, wherever an earlier run was interrupted.
    pub restart: bool,
    /// How often it is saved where the next run goes on.
    pub bookmark_period: Duration,
    /// How long failures are borne.
    pub patience: Patience,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            objects_per_second: None,
            writers: 2,
            page_rows: 500,
            restart: false,
            bookmark_period: Duration::from_secs(2),
            patience: Patience::default(),
        }
    }
}

/// Why a backfill came to no end. The next one goes on where this one was.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// The cluster did not answer.
    #[error("{kind}: the cluster: {source}")]
    Cluster {
        /// The kind.
        kind: &'static str,
        /// As the cluster says it.
        #[source]
        source: ClusterError,
    },
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackfillError {
    /// Whether the cluster does not serve the kind: its CRD is not installed, or not in this version.
    pub fn is_unserved(&self) -> bool {
        matches!(
            self,
            Self::Cluster {
                source: ClusterError::NotFound(_),
                ..
            }
        )
    }

    pub(super) fn cluster(kind: &Kind, source: ClusterError) -> Self {
        Self::Cluster {
            kind: kind.name,
            source,
        }
    }
}

/// Stores every object of a kind that the cluster lists and SQL lacks, or holds in an older version.
///
/// # Guarantees
/// Writes go through the store's guarded batches: a newer row stays. A second run over the same
/// objects writes nothing. An ingester may be at work at the same time. Where the kind had no row
/// and no checkpoint, an ingester that starts afterwards goes on from the list's version.
///
/// # Assumptions
/// The store is prepared.
///
/// # Errors
/// Where a side does not answer for longer than the patience; what was written stays.
pub async fn backfill(
    sides: &Sides,
    kind: &'static Kind,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Filled, BackfillError> {
    let storage = &sides.storage;
    let checkpoint = patiently(options.patience, || storage.checkpoint(kind)).await?;
    let quarantined = patiently(options.patience, || storage.quarantined(kind)).await?;
    let mut bookmark = saved(sides, kind, options).await?;
    let empty = patiently(options.patience, || storage.scan(kind, None, 1))
        .await?
        .is_empty();
    let fresh = checkpoint.is_none() && bookmark.as_ref().map_or(empty, Bookmark::is_fresh);
    let filler = Arc::new(Filler {
        sides: sides.as_ingester(),
        kind,
        patience: options.patience,
        may_have_company: !fresh,
        refused: quarantined.into_iter().map(|record| record.uid).collect(),
    });
    let mut filled = Filled {
        kind: kind.name,
        ..Filled::default()
    };
    for list in 1.. {
        let listing = Listing {
            filler: &filler,
            state: &**storage,
            options,
            from: bookmark.take(),
            fresh,
        };
        match listing.run(progress, &mut filled).await {
            Ok(version) => {
                patiently(options.patience, || storage.forget_state(kind, STATE)).await?;
                if fresh {
                    let save = || storage.save_first_checkpoint(kind, version, Timestamp::now());
                    patiently(options.patience, save).await?;
                }
                break;
            }
            Err(BackfillError::Cluster {
                source: ClusterError::Expired(reason),
                ..
            }) if list < LISTS_MAX => {
                progress.note(&format!("the list begins anew: {reason}"));
                filled.begin_anew();
            }
            Err(error) => return Err(error),
        }
    }
    progress.end();
    Ok(filled)
}

async fn saved(sides: &Sides, kind: &Kind, options: &Options) -> Result<Option<Bookmark>, BackfillError> {
    if options.restart {
        return Ok(None);
    }
    let text = patiently(options.patience, || sides.storage.state(kind, STATE)).await?;
    Ok(text.as_deref().and_then(Bookmark::from_text))
}

/// One list from its beginning, or from where an earlier run was, to its end.
struct Listing<'a> {
    filler: &'a Arc<Filler>,
    /// Keeps the bookmark.
    state: &'a dyn WorkState,
    options: &'a Options,
    from: Option<Bookmark>,
    fresh: bool,
}

/// A page that was listed, and where the next one begins.
struct Listed {
    page: Page,
    next: Option<String>,
}

/// A page that was written: its number, where the next one begins, what became of it.
type Written = (u64, Option<String>, Result<Filled, BackfillError>);

/// Pages in the hands of writers. They run as tasks of their own: one that holds SQLite's only
/// writing connection must go on while another waits for it.
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
    async fn end_one(&mut self) -> Result<Option<()>, BackfillError> {
        let Some(ended) = self.tasks.join_next().await else {
            return Ok(None);
        };
        let (number, next, filled) = ended.expect("a writer neither panics nor is aborted");
        self.early.insert(number, (next, filled?));
        Ok(Some(()))
    }

    /// Lets what is under way come to its end: a write that is cut off leaves its locks behind until
    /// the server finds out.
    async fn end_all(mut self) -> Vec<Filled> {
        let mut pages: Vec<Filled> = self.early.into_values().map(|(_, filled)| filled).collect();
        while let Some(ended) = self.tasks.join_next().await {
            let (_, _, filled) = ended.expect("a writer neither panics nor is aborted");
            // Of several errors, the first is the one to report.
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

impl Listing<'_> {
    /// Gives back the list's version.
    async fn run(&self, progress: &dyn Progress, filled: &mut Filled) -> Result<ResourceVersion, BackfillError> {
        let mut writers = Writers::default();
        let version = self.run_with(&mut writers, progress, filled).await;
        for page in writers.end_all().await {
            filled.add(&page);
        }
        version
    }

    async fn run_with(
        &self,
        writers: &mut Writers,
        progress: &dyn Progress,
        filled: &mut Filled,
    ) -> Result<ResourceVersion, BackfillError> {
        let mut done = self.from.as_ref().map_or(0, |bookmark| bookmark.objects);
        let token = self.from.as_ref().map(|bookmark| bookmark.continue_token.clone());
        let first = self.page(token).await?;
        let bookmarked = self.from.as_ref().map(Bookmark::version);
        let version = bookmarked.unwrap_or(first.page.resource_version);
        let remaining = first.page.remaining;
        let total = remaining.map(|remaining| done + first.page.len() as u64 + remaining);
        progress.begin(self.filler.kind.name, total);
        progress.advance(done);

        let (began, mut saved) = (Instant::now(), Instant::now());
        let mut pace = Pace::new(self.options.objects_per_second);
        let mut listed = Some(first);
        loop {
            if let Some(page) = listed.take() {
                sleep(pace.pass(page.page.len(), began.elapsed())).await;
                let next = page.next.clone();
                writers.begin(self.filler, page);
                if next.is_some() {
                    listed = Some(self.page(next).await?);
                }
            }
            if (listed.is_none() || writers.tasks.len() >= self.options.writers.max(1))
                && writers.end_one().await?.is_none()
            {
                return Ok(version);
            }
            while let Some((next, page)) = writers.next_ended() {
                filled.add(&page);
                done += page.objects;
                progress.advance(page.objects);
                if let Some(next) = next.filter(|_| saved.elapsed() >= self.options.bookmark_period) {
                    self.save(&Bookmark::new(next, version, done, self.fresh)).await?;
                    saved = Instant::now();
                }
            }
        }
    }

    async fn page(&self, token: Option<String>) -> Result<Listed, BackfillError> {
        let Filler {
            sides, kind, patience, ..
        } = &**self.filler;
        let list = || sides.cluster.list(kind, self.options.page_rows, token.as_deref());
        let page = patiently(*patience, list).await;
        let mut page = page.map_err(|source| BackfillError::cluster(kind, source))?;
        let next = page.continue_token.take();
        Ok(Listed { page, next })
    }

    async fn save(&self, bookmark: &Bookmark) -> Result<(), BackfillError> {
        let Filler { kind, patience, .. } = &**self.filler;
        let text = bookmark.to_text();
        let save = || self.state.save_state(kind, STATE, &text, Timestamp::now());
        Ok(patiently(*patience, save).await?)
    }
}
