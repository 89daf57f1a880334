//! The listing of one kind, and the look for an ingester that is still at work.

use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::{ClusterApi, ClusterError, ObjectName, Page, Target};
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{IngesterStorage, StoreError};
use tokio::time::{Instant, sleep};

use super::page::{Released, Releaser};
use crate::backfill::{BackfillError, Filler};
use crate::patience::{Patience, patiently};
use crate::verify::Sides;

/// How often a list whose version is no longer kept is begun anew.
const LISTS_MAX: u32 = 20;
/// How often the row of the first object is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Where objects are released.
#[derive(Clone)]
pub struct Place {
    /// Its finalizer is removed.
    pub platform: Platform,
    /// Where the objects are.
    pub cluster: Arc<dyn ClusterApi>,
    /// What has to hold them; `None`: SQL is not asked, and nobody looks for an ingester.
    pub storage: Option<Arc<dyn IngesterStorage>>,
}

/// How a release goes about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Change nothing; count.
    pub dry_run: bool,
    /// At most so many objects a second; `None`: as fast as it goes.
    pub objects_per_second: Option<f64>,
    /// How long an ingester that is at work may take to store a change.
    pub settle: Duration,
    /// Objects a page.
    pub page_rows: u32,
    /// How long failures are borne.
    pub patience: Patience,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dry_run: false,
            objects_per_second: None,
            settle: Duration::from_secs(2),
            page_rows: 500,
            patience: Patience::default(),
        }
    }
}

/// Why a release came to no end. What was released stays released; the next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The cluster did not answer, or refuses.
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
    /// Somebody stored in SQL what this release did to its first object, or undid it.
    #[error("an ingester is at work: it took up within {settle:?} what was done to {kind} {object}")]
    Ingester {
        /// The kind.
        kind: &'static str,
        /// The object; it holds the finalizer again.
        object: String,
        /// How long was waited.
        settle: Duration,
    },
}

impl ReleaseError {
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

impl From<BackfillError> for ReleaseError {
    fn from(error: BackfillError) -> Self {
        match error {
            BackfillError::Cluster { kind, source } => Self::Cluster { kind, source },
            BackfillError::Store(error) => Self::Store(error),
        }
    }
}

/// Takes the finalizer of the platform, and no other, off all objects of a kind.
///
/// # Guarantees
/// Where SQL is asked, an object is released only while SQL holds the version that is released, or a newer one; an
/// object that somebody deleted is marked deleted in SQL first. What is released is stored once more, in the version
/// that this made. A release is conditional on the version, so that no change of others is lost. May be interrupted
/// and run again at any time.
///
/// # Assumptions
/// The store is prepared, where it is asked. `is_first` says that no kind before had anything to release: the first
/// object that is released shows whether an ingester is at work.
///
/// # Errors
/// [`ReleaseError`]; in particular where an ingester is at work, which would give back what is taken.
pub async fn release(
    place: &Place,
    kind: &'static Kind,
    is_first: bool,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Released, ReleaseError> {
    let mut releaser = Releaser {
        kind,
        platform: place.platform,
        cluster: place.cluster.clone(),
        filler: match &place.storage {
            None => None,
            Some(storage) => Some(filler(place, storage, kind, options).await?),
        },
        options,
        progress,
        pace: Pace::new(options.objects_per_second),
        began: Instant::now(),
    };
    let mut alone = !is_first || place.storage.is_none() || options.dry_run;
    let mut released = Released {
        kind: kind.name,
        ..Released::default()
    };
    for list in 1.. {
        match releaser.list(&mut alone, &mut released).await {
            Err(ReleaseError::Cluster {
                source: ClusterError::Expired(reason),
                ..
            }) if list < LISTS_MAX => {
                progress.note(&format!("the list begins anew: {reason}"));
                released.objects = 0;
            }
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    progress.end();
    Ok(released)
}

async fn filler(
    place: &Place,
    storage: &Arc<dyn IngesterStorage>,
    kind: &'static Kind,
    options: &Options,
) -> Result<Filler, ReleaseError> {
    let quarantined = patiently(options.patience, || storage.quarantined(kind)).await?;
    Ok(Filler {
        sides: Sides {
            platform: place.platform,
            cluster: place.cluster.clone(),
            storage: storage.clone(),
        },
        kind,
        patience: options.patience,
        may_have_company: true,
        refused: quarantined.into_iter().map(|record| record.uid).collect(),
    })
}

impl Releaser<'_> {
    async fn list(&mut self, alone: &mut bool, released: &mut Released) -> Result<(), ReleaseError> {
        let mut token: Option<String> = None;
        loop {
            let list = || self.cluster.list(self.kind, self.options.page_rows, token.as_deref());
            let page = patiently(self.options.patience, list).await;
            let mut page = page.map_err(|source| ReleaseError::cluster(self.kind, source))?;
            if token.is_none() {
                let total = page.remaining.map(|remaining| page.len() as u64 + remaining);
                self.progress.begin(self.kind.name, total);
            }
            token = page.continue_token.take();
            while !*alone && let Some(first) = self.first_guarded(&page) {
                let object = page.objects.remove(first);
                *alone = self.release_first(object, released).await?;
            }
            self.page(page, released).await?;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    /// The first object whose release says something: one that is not on its way out.
    fn first_guarded(&self, page: &Page) -> Option<usize> {
        page.objects.iter().position(|object| {
            let head = self.head(object);
            head.guarded && !head.is_leaving() && !head.immutable
        })
    }

    /// Releases one object as the only one and waits whether somebody takes it up: an ingester stores what it sees
    /// within moments, and one that adopts gives the finalizer back. Whether that was found out.
    async fn release_first(&mut self, object: Object, released: &mut Released) -> Result<bool, ReleaseError> {
        released.objects += 1;
        released.guarded += 1;
        let name = ObjectName::of(&object);
        let Some(object) = self.store(vec![object], released).await?.pop() else {
            return Ok(false);
        };
        let outcome = self.release(&object).await?;
        let Some(after) = self.count(outcome, released) else {
            return Ok(false);
        };
        self.progress.note("is an ingester at work?");
        let deadline = Instant::now() + self.options.settle;
        while Instant::now() < deadline {
            sleep(LOOK_PERIOD).await;
            if self.is_taken_up(&after, &name).await? {
                self.give_back(&name).await?;
                return Err(ReleaseError::Ingester {
                    kind: self.kind.name,
                    object: name.to_string(),
                    settle: self.options.settle,
                });
            }
        }
        self.progress.note("");
        self.fill(vec![after]).await?;
        Ok(true)
    }

    /// Whether SQL has the version that the release made, which only an ingester can have stored, or the finalizer
    /// is back.
    async fn is_taken_up(&self, after: &Object, name: &ObjectName) -> Result<bool, ReleaseError> {
        let rows = self.rows(std::slice::from_ref(after)).await?;
        let row = rows.get(&after.metadata.uid);
        if row.is_some_and(|row| row.cluster_version() >= after.metadata.resource_version) {
            return Ok(true);
        }
        let now = self.get(name).await?;
        Ok(now.is_some_and(|now| self.head(&now).guarded))
    }

    /// What is not to be released stays guarded.
    async fn give_back(&self, name: &ObjectName) -> Result<(), ReleaseError> {
        while let Some(object) = self.get(name).await?.filter(|object| !self.head(object).guarded) {
            let mut finalizers = object.metadata.finalizers.clone();
            finalizers.push(self.platform.finalizer.to_owned());
            let target = Target::of(&object);
            let give = || self.cluster.set_finalizers(self.kind, &target, &finalizers);
            match patiently(self.options.patience, give).await {
                Ok(_) | Err(ClusterError::NotFound(_)) => return Ok(()),
                Err(ClusterError::Conflict(_)) => {}
                Err(source) => return Err(ReleaseError::cluster(self.kind, source)),
            }
        }
        Ok(())
    }
}
