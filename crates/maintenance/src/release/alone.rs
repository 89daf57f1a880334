//! The check that no service is running which would put a finalizer back: the first objects that have one are released
//! alone, and watched.

use std::time::Duration;

use kindex_kube_client::{ClusterError, ObjectName, Page, Target};
use kindex_model::head::Head;
use kindex_model::object::Object;
use tokio::time::{Instant, sleep};

use super::page::{Released, Releaser, is_ours};
use crate::retries::with_retries;
use crate::sides::{FinalizerOwner, RepairError};

/// How often the first object is read.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Which services are known not to be running.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoppedServices {
    ingester: bool,
    deletion: bool,
}

impl StoppedServices {
    /// Whether an object that is released shows more than is known.
    fn would_learn_from(self, head: &Head) -> bool {
        head.has_finalizer && !self.ingester || head.has_deletion_finalizer && !self.deletion
    }

    fn learn_from(&mut self, head: &Head) {
        self.ingester |= head.has_finalizer;
        self.deletion |= head.has_deletion_finalizer;
    }
}

impl Releaser<'_> {
    /// The first object that can show a running service: one that may be released, and that is not being deleted.
    pub(super) fn first_to_check(&self, page: &Page, stopped_services: &StoppedServices) -> Option<usize> {
        page.objects.iter().position(|object| {
            let head = self.head(object);
            stopped_services.would_learn_from(&head)
                && head.is_staying()
                && !self.is_in_use(object)
                && self.may_try(object)
        })
    }

    /// Releases a single object and waits whether a service reacts: an ingester would store the new version within
    /// moments, and both would add their finalizer again. Checks nothing where somebody else was faster.
    pub(super) async fn release_first(
        &mut self,
        object: Object,
        stopped_services: &mut StoppedServices,
        released: &mut Released,
    ) -> Result<(), RepairError> {
        released.objects += 1;
        released.with_finalizer += 1;
        let name = ObjectName::of(&object);
        let Some(object) = self.store(vec![object], released).await?.pop() else {
            return Ok(());
        };
        sleep(self.pace.pass(1, self.began.elapsed())).await;
        let outcome = self.release(&object).await?;
        let Some(after) = self.count(outcome, released) else {
            return Ok(());
        };
        self.progress.note("checking whether a service is running");
        let deadline = Instant::now() + self.options.settle;
        while Instant::now() < deadline {
            sleep(LOOK_PERIOD).await;
            if let Some(service) = self.reacted(&after, &name).await? {
                self.put_back_finalizers(&object, &name).await?;
                return Err(RepairError::Running {
                    service,
                    kind: self.kind.name,
                    object: name.to_string(),
                    settle: self.options.settle,
                });
            }
        }
        self.progress.note("");
        stopped_services.learn_from(&self.head(&object));
        self.fill(vec![after]).await
    }

    /// Who has reacted: SQL holds the version that the release made, or a finalizer is back.
    async fn reacted(&self, after: &Object, name: &ObjectName) -> Result<Option<FinalizerOwner>, RepairError> {
        let rows = self.rows(std::slice::from_ref(after)).await?;
        let row = rows.get(&after.metadata.uid);
        if row.is_some_and(|row| row.cluster_version() >= after.metadata.resource_version) {
            return Ok(Some(FinalizerOwner::Ingester));
        }
        let now = self.get(name).await?.map(|now| self.head(&now));
        Ok(now.and_then(|now| {
            let ingester = now.has_finalizer.then_some(FinalizerOwner::Ingester);
            ingester.or(now.has_deletion_finalizer.then_some(FinalizerOwner::Deletion))
        }))
    }

    /// Adds those of our finalizers again that the object had before.
    async fn put_back_finalizers(&self, before: &Object, name: &ObjectName) -> Result<(), RepairError> {
        let ours = |finalizer: &&String| is_ours(finalizer, &self.platform);
        while let Some(object) = self.get(name).await? {
            let mut finalizers = object.metadata.finalizers.clone();
            let lacking = before.metadata.finalizers.iter().filter(ours);
            let lacking = lacking.filter(|finalizer| !object.metadata.finalizers.contains(finalizer));
            finalizers.extend(lacking.cloned());
            if finalizers.len() == object.metadata.finalizers.len() {
                break;
            }
            let target = Target::of(&object);
            let give = || self.cluster.set_finalizers(self.kind, &target, &finalizers);
            match with_retries(self.options.retry_budget, give).await {
                Ok(_) => break,
                Err(error) if error.is_absence() => break,
                Err(ClusterError::Conflict(_)) => {}
                Err(source) => return Err(RepairError::cluster(self.kind, source)),
            }
        }
        Ok(())
    }
}
