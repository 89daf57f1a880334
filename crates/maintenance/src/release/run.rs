//! Releases the objects of one kind, after a check that no service is running that would give them finalizers again.

use std::sync::Arc;

use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use kindex_store::IngesterStorage;
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use tokio::time::Instant;

use super::alone::StoppedServices;
use super::options::{Options, ReleaseSides};
use super::page::{Released, Releaser};
use super::refusals::Refusals;
use crate::backfill::Filler;
use crate::pages::{Listed, PageSink, Pages};
use crate::retries::with_retries;
use crate::sides::{RepairError, Sides};

/// Takes the finalizers of the platform, that of the ingester and that of the deletion graph, off all objects of a
/// kind. Those of others and references stay, and what has references or is being deleted keeps ours too.
///
/// # Guarantees
/// With SQL, an object is released only while SQL holds the released version or a newer one, and an object that is
/// being deleted is marked deleted in SQL first. The version that the release makes is stored afterwards. A release is
/// conditional on the version, so that no change of others is lost. May be interrupted and repeated at any time.
///
/// # Assumptions
/// The store, if there is one, is prepared. `stopped_services` are those that earlier kinds have shown. The first
/// released object with a finalizer shows whether the service is running that adds it.
///
/// # Errors
/// [`RepairError`]; in particular if a running service would add a finalizer again. An object that the cluster refuses
/// keeps no other waiting. If it refuses the first twenty in a row for one reason, the others of their namespace are
/// not tried, and no others of the kind if it refuses the first one of the next namespace, too.
pub async fn release(
    sides: &ReleaseSides,
    kind: &'static Kind,
    stopped_services: &mut StoppedServices,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Released, RepairError> {
    let releaser = Releaser {
        kind,
        platform: sides.platform,
        cluster: sides.cluster.clone(),
        // SQL has nothing but the object itself where no cluster has it.
        filler: match sides.storage.as_ref().filter(|_| kind.cluster) {
            None => None,
            Some(storage) => Some(filler(sides, storage, kind, options).await?),
        },
        options,
        progress,
        pace: Pace::new(options.objects_per_second),
        began: Instant::now(),
        refusals: Refusals::Untried,
    };
    let pages = Pages {
        kind,
        cluster: sides.cluster.clone(),
        page_rows: options.page_rows,
        retry_budget: options.retry_budget,
        progress,
    };
    let mut releasing = Releasing {
        stopped_services: (sides.storage.is_some() && !options.dry_run).then_some(stopped_services),
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
    /// `None` where nothing is checked.
    stopped_services: Option<&'a mut StoppedServices>,
    released: Released,
}

impl PageSink for Releasing<'_> {
    fn begin(&mut self, _version: ResourceVersion, _objects: u64) {}

    async fn take(&mut self, listed: Listed) -> Result<(), RepairError> {
        let mut page = listed.page;
        if let Some(stopped_services) = self.stopped_services.as_deref_mut() {
            while let Some(first) = self.releaser.first_to_check(&page, stopped_services) {
                let object = page.objects.remove(first);
                let released = &mut self.released;
                self.releaser.release_first(object, stopped_services, released).await?;
            }
        }
        self.releaser.page(page, &mut self.released).await
    }

    async fn end(&mut self) -> Result<(), RepairError> {
        Ok(())
    }

    async fn stop(&mut self) {}

    /// What was released has no finalizer of ours any more. All others are tried again.
    fn begin_anew(&mut self) {
        self.releaser.refusals = Refusals::Untried;
        let before = std::mem::take(&mut self.released);
        self.released = Released {
            kind: before.kind,
            ..Released::default()
        };
        if !self.releaser.options.dry_run {
            self.released.with_finalizer = before.released + before.elsewhere;
            self.released.released = before.released;
            self.released.elsewhere = before.elsewhere;
            self.released.gone = before.gone;
            self.released.stored = before.stored;
        }
    }
}
