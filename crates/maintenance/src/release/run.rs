//! Releases the objects of one kind, after a check that no ingester is running.

use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::{ClusterError, ObjectName, Page, Target};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion};
use kindex_store::IngesterStorage;
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use tokio::time::{Instant, sleep};

use super::options::{Options, ReleaseSides};
use super::page::{Released, Releaser};
use crate::backfill::Filler;
use crate::pages::{Listed, PageSink, Pages};
use crate::retries::with_retries;
use crate::sides::{RepairError, Sides};

/// How often the row of the first object is read.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Takes the finalizer of the platform, and no other, off all objects of a kind.
///
/// # Guarantees
/// With SQL, an object is released only while SQL holds the released version or a newer one, and an object that is
/// being deleted is marked deleted in SQL first. The version that the release makes is stored afterwards. A release is
/// conditional on the version, so that no change of others is lost. May be interrupted and repeated at any time.
///
/// # Assumptions
/// The store, if there is one, is prepared. `is_first`: no kind before had anything to release. The first released
/// object shows whether an ingester is running.
///
/// # Errors
/// [`RepairError`]; in particular if a running ingester would add the finalizer again.
pub async fn release(
    sides: &ReleaseSides,
    kind: &'static Kind,
    is_first: bool,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Released, RepairError> {
    let releaser = Releaser {
        kind,
        platform: sides.platform,
        cluster: sides.cluster.clone(),
        filler: match &sides.storage {
            None => None,
            Some(storage) => Some(filler(sides, storage, kind, options).await?),
        },
        options,
        progress,
        pace: Pace::new(options.objects_per_second),
        began: Instant::now(),
    };
    let pages = Pages {
        kind,
        cluster: sides.cluster.clone(),
        page_rows: options.page_rows,
        retry_budget: options.retry_budget,
        progress,
    };
    let mut releasing = Releasing {
        alone: !is_first || sides.storage.is_none() || options.dry_run,
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
    sides: &ReleaseSides,
    storage: &Arc<dyn IngesterStorage>,
    kind: &'static Kind,
    options: &Options,
) -> Result<Filler, RepairError> {
    let quarantined = with_retries(options.retry_budget, || storage.quarantined(kind)).await?;
    Ok(Filler {
        sides: Sides {
            platform: sides.platform,
            cluster: sides.cluster.clone(),
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
    /// Whether the check for a running ingester is done, or not needed.
    alone: bool,
    released: Released,
}

impl PageSink for Releasing<'_> {
    fn begin(&mut self, _version: ResourceVersion, _objects: u64) {}

    async fn take(&mut self, listed: Listed) -> Result<(), RepairError> {
        let mut page = listed.page;
        while !self.alone
            && let Some(first) = self.releaser.first_with_finalizer(&page)
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
    /// The first object that can show a running ingester: one that is not being deleted.
    fn first_with_finalizer(&self, page: &Page) -> Option<usize> {
        page.objects.iter().position(|object| {
            let head = self.head(object);
            head.has_finalizer && head.is_staying() && !head.in_use
        })
    }

    /// Releases a single object and waits whether an ingester reacts: it would store the new version within moments,
    /// and one that adopts would add the finalizer again. Returns whether the check was possible.
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
        self.progress.note("checking whether an ingester is running");
        let deadline = Instant::now() + self.options.settle;
        while Instant::now() < deadline {
            sleep(LOOK_PERIOD).await;
            if self.ingester_reacted(&after, &name).await? {
                self.add_finalizer(&name).await?;
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

    /// Whether an ingester has reacted: SQL holds the version that the release made, or the finalizer is back.
    async fn ingester_reacted(&self, after: &Object, name: &ObjectName) -> Result<bool, RepairError> {
        let rows = self.rows(std::slice::from_ref(after)).await?;
        let row = rows.get(&after.metadata.uid);
        if row.is_some_and(|row| row.cluster_version() >= after.metadata.resource_version) {
            return Ok(true);
        }
        let now = self.get(name).await?;
        Ok(now.is_some_and(|now| self.head(&now).has_finalizer))
    }

    /// Adds the finalizer again.
    async fn add_finalizer(&self, name: &ObjectName) -> Result<(), RepairError> {
        while let Some(object) = self.get(name).await?.filter(|object| !self.head(object).has_finalizer) {
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
