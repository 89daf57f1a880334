//! The walk over one kind, and the look for an ingester that is still at work.

use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::{ClusterError, ObjectName, Page, Target};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion};
use kindex_store::IngesterStorage;
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use tokio::time::{Instant, sleep};

use super::options::{Options, Place};
use super::page::{Released, Releaser};
use crate::backfill::Filler;
use crate::pages::{Listed, PageSink, Pages};
use crate::retries::with_retries;
use crate::sides::{RepairError, Sides};

/// How often the row of the first object is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

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
/// [`RepairError`]; in particular where an ingester is at work, which would give back what is taken.
pub async fn release(
    place: &Place,
    kind: &'static Kind,
    is_first: bool,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Released, RepairError> {
    let releaser = Releaser {
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
    let pages = Pages {
        kind,
        cluster: place.cluster.clone(),
        page_rows: options.page_rows,
        retry_budget: options.retry_budget,
        progress,
    };
    let mut releasing = Releasing {
        alone: !is_first || place.storage.is_none() || options.dry_run,
        released: Released {
            kind: kind.name,
            ..Released::default()
        },
        releaser,
    };
    pages.walk(None, &mut releasing).await?;
    progress.end();
    Ok(releasing.released)
}

async fn filler(
    place: &Place,
    storage: &Arc<dyn IngesterStorage>,
    kind: &'static Kind,
    options: &Options,
) -> Result<Filler, RepairError> {
    let quarantined = with_retries(options.retry_budget, || storage.quarantined(kind)).await?;
    Ok(Filler {
        sides: Sides {
            platform: place.platform,
            cluster: place.cluster.clone(),
            storage: storage.clone(),
        },
        kind,
        retry_budget: options.retry_budget,
        may_have_company: true,
        refused: quarantined.into_iter().map(|record| record.uid).collect(),
    })
}

/// Pages whose objects are being released.
struct Releasing<'a> {
    releaser: Releaser<'a>,
    /// Whether it was found out that no ingester is at work, or nobody asks.
    alone: bool,
    released: Released,
}

impl PageSink for Releasing<'_> {
    fn begin(&mut self, _version: ResourceVersion, _objects: u64) {}

    async fn take(&mut self, listed: Listed) -> Result<(), RepairError> {
        let mut page = listed.page;
        while !self.alone
            && let Some(first) = self.releaser.first_guarded(&page)
        {
            let object = page.objects.remove(first);
            self.alone = self.releaser.release_first(object, &mut self.released).await?;
        }
        self.releaser.page(page, &mut self.released).await
    }

    async fn end(&mut self) -> Result<(), RepairError> {
        Ok(())
    }

    async fn stop(&mut self) {}

    fn begin_anew(&mut self) {
        self.released.objects = 0;
    }
}

impl Releaser<'_> {
    /// The first object whose release says something: one that is not on its way out.
    fn first_guarded(&self, page: &Page) -> Option<usize> {
        page.objects.iter().position(|object| {
            let head = self.head(object);
            head.guarded && head.is_staying()
        })
    }

    /// Releases one object as the only one and waits whether somebody takes it up: an ingester stores what it sees
    /// within moments, and one that adopts gives the finalizer back. Whether that was found out.
    async fn release_first(&mut self, object: Object, released: &mut Released) -> Result<bool, RepairError> {
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
                return Err(RepairError::Ingester {
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
    async fn is_taken_up(&self, after: &Object, name: &ObjectName) -> Result<bool, RepairError> {
        let rows = self.rows(std::slice::from_ref(after)).await?;
        let row = rows.get(&after.metadata.uid);
        if row.is_some_and(|row| row.cluster_version() >= after.metadata.resource_version) {
            return Ok(true);
        }
        let now = self.get(name).await?;
        Ok(now.is_some_and(|now| self.head(&now).guarded))
    }

    /// What is not to be released stays guarded.
    async fn give_back(&self, name: &ObjectName) -> Result<(), RepairError> {
        while let Some(object) = self.get(name).await?.filter(|object| !self.head(object).guarded) {
            let mut finalizers = object.metadata.finalizers.clone();
            finalizers.push(self.platform.finalizer.to_owned());
            let target = Target::of(&object);
            let give = || self.cluster.set_finalizers(self.kind, &target, &finalizers);
            match with_retries(self.options.retry_budget, give).await {
                Ok(_) | Err(ClusterError::NotFound(_)) => return Ok(()),
                Err(ClusterError::Conflict(_)) => {}
                Err(source) => return Err(RepairError::cluster(self.kind, source)),
            }
        }
        Ok(())
    }
}
