//! One migration at work: what is made sure of first, page after page, and the status after each.

use std::collections::BTreeSet;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kindex_kube_client::{Outcome, outcome};
use kube::ResourceExt as _;
use kube::api::PostParams;
use kube::core::ObjectList;
use tokio::time::sleep;

use super::blame::suspects;
use super::discover::{Discovery, Served, discover};
use super::objects::{Metadata, Objects, Page};
use super::prefetch::Prefetch;
use super::preflight::{forbidden, preflight};
use super::settings::MigrationSettings;
use super::{Cluster, ClusterError};
use crate::discovery::Discovered;
use crate::hash::Hash;
use crate::migration::{Progress, Target};
use crate::run::estimate::estimate;
use crate::run::outdated::{Outdated, outdated};
use crate::run::{Next, Run, VERIFICATIONS_MAX, Verdict};
use crate::wire::definition::{declared, defined};
use crate::wire::{DefinitionStatus, GroupResource, StorageVersionMigration};

/// A migration under way.
struct Work<'a> {
    cluster: &'a Cluster,
    settings: MigrationSettings,
    name: GroupResource,
    objects: Objects,
    object: StorageVersionMigration,
    target: Target,
    /// When this process began with it.
    began: Instant,
    /// Since when this process is at this pass, and what was listed by then.
    since: (Instant, u64),
    /// The next page, while it is listed.
    prefetch: Option<Prefetch>,
}

/// Why work stopped without a verdict.
enum Stopped {
    /// The migration was deleted or has ended, or another process has it.
    Taken,
    /// Something could not be read or saved.
    Failed(ClusterError),
}

/// Carries a migration on from where its status says it is, until it ends or somebody deletes it. `None` where another
/// process has it, it has ended already, or work is to stop.
///
/// # Errors
/// Where its status cannot be read or saved: what was not saved is done again, which changes nothing.
pub async fn work(
    cluster: &Cluster,
    migration: StorageVersionMigration,
    settings: impl Into<MigrationSettings>,
) -> Result<Option<Verdict>, ClusterError> {
    let settings = settings.into();
    let stop = settings.stop.clone();
    match stop.run_until_cancelled(carry_on(cluster, migration, settings)).await {
        Some(Ok(verdict)) => Ok(Some(verdict)),
        Some(Err(Stopped::Taken)) | None => Ok(None),
        Some(Err(Stopped::Failed(error))) => Err(error),
    }
}

async fn carry_on(
    cluster: &Cluster,
    migration: StorageVersionMigration,
    settings: MigrationSettings,
) -> Result<Verdict, Stopped> {
    let object = current(cluster, &migration).await?;
    let name = GroupResource::from(&object.spec.resource);
    let began = Instant::now();
    let metrics = settings.metrics.clone();
    let discovery = discover(cluster, &BTreeSet::from([name.group.clone()])).await;
    let Some(served) = discovery.served.get(&name).cloned() else {
        // An API server that starts may not serve a definition yet.
        let is_defined = cluster.definition(&name).await.is_ok_and(|found| found.is_some());
        if is_defined || discovery.of(&name) == Discovered::Partial {
            let resource = name.to_string();
            return Err(Stopped::Failed(ClusterError::Unknown { resource }));
        }
        let why = format!("no API server lists {name}");
        let run = object.status.clone().unwrap_or_default().run();
        return finish(cluster, object, &run, Verdict::Impossible { why }, None).await;
    };
    let mut run = object.status.clone().unwrap_or_default().run();
    let mut work = Work::new(cluster, name, served, object, settings).await?;
    work.since = (began, run.pass.listed());
    if work.is_pending() {
        work.begin(&discovery, &run).await?;
    }
    let verdict = work.run(&mut run).await?;
    let cause = match verdict {
        Verdict::NeverUnchanged => Some(work.find_cause().await),
        _ => None,
    };
    let verdict = finish(cluster, work.object, &run, verdict, cause).await?;
    if verdict == Verdict::Succeeded {
        succeeded(&migration.name_any(), run.all_passes().rewritten);
    }
    metrics.ended(verdict.condition().1, began.elapsed());
    Ok(verdict)
}

impl<'a> Work<'a> {
    async fn new(
        cluster: &'a Cluster,
        name: GroupResource,
        served: Served,
        object: StorageVersionMigration,
        settings: MigrationSettings,
    ) -> Result<Self, Stopped> {
        let definition = cluster.definition(&name).await.map_err(|source| {
            Stopped::Failed(ClusterError::Read {
                what: "customresourcedefinition",
                name: name.to_string(),
                source,
            })
        })?;
        let defined = definition.as_ref().and_then(defined).map(|(_, defined)| defined);
        let mut object = object;
        let status = object.status.get_or_insert_default();
        if status.progress() == Progress::Pending {
            let storage = defined.as_ref().map(|defined| defined.storage.to_string());
            status.target_storage_version_hash = storage.unwrap_or_default();
            let definition = defined.as_ref().map(|defined| &defined.definition);
            status.definition = definition.map(DefinitionStatus::from);
        }
        Ok(Self {
            cluster,
            objects: Objects {
                client: cluster.first.clone(),
                served,
                declared: definition.as_ref().and_then(declared),
                settings: settings.clone(),
            },
            settings,
            name,
            target: status.target(),
            object,
            began: Instant::now(),
            since: (Instant::now(), 0),
            prefetch: None,
        })
    }

    fn is_pending(&self) -> bool {
        let status = self.object.status.as_ref();
        status.is_none_or(|status| status.progress() == Progress::Pending)
    }

    /// Notes the version that the API servers agree on, where they do, and that work began.
    async fn begin(&mut self, discovery: &Discovery, run: &Run) -> Result<(), Stopped> {
        let status = self.object.status.get_or_insert_default();
        if let Discovered::Agreed(hash) = discovery.of(&self.name) {
            status.target_storage_version_hash = Hash::to_string(&hash);
        }
        status.set_condition("Running", "Rewriting", String::new(), Timestamp::now());
        self.target = status.target();
        self.save(run).await
    }

    async fn run(&mut self, run: &mut Run) -> Result<Verdict, Stopped> {
        if let Some(why) = self.outdated().await {
            return Ok(Verdict::Outdated(why));
        }
        if let Some(verdict) = preflight(&self.objects, &self.name).await {
            return Ok(verdict);
        }
        loop {
            self.settle(run).await;
            let next = self.page(run).await;
            match next.unless(self.outdated().await) {
                Next::Page => self.save(run).await?,
                Next::End(verdict) => return Ok(verdict),
            }
        }
    }

    /// Before a pass that verifies: until every API server follows the definition. One that is behind the same address
    /// as the others, and a moment late, would go on to write the version before.
    async fn settle(&mut self, run: &Run) {
        if run.passes == 1 && run.token.is_none() {
            sleep(self.settings.settle.saturating_sub(self.began.elapsed())).await;
            self.since = (Instant::now(), 0);
        }
    }

    async fn outdated(&self) -> Option<Outdated> {
        let discovery = discover(self.cluster, &BTreeSet::from([self.name.group.clone()])).await;
        let definition = self.cluster.definition(&self.name).await.ok().flatten();
        let defined = definition
            .as_ref()
            .and_then(defined)
            .map(|(_, defined)| defined.definition);
        outdated(&self.target, &discovery.of(&self.name), defined.as_ref())
    }

    async fn page(&mut self, run: &mut Run) -> Next {
        let pass = run.passes;
        let next = match self.listed(run).await {
            Page::Of(page) => self.patch_all(run, page).await,
            Page::GoOn(token) => run.go_on(token),
            Page::StartOver => run.start_over(),
            Page::Impossible(why) => {
                let forbidden = forbidden(&self.cluster.first, &self.name).await;
                Next::End(forbidden.unwrap_or(Verdict::Impossible { why }))
            }
        };
        if run.passes != pass {
            self.since = (Instant::now(), 0);
        }
        next
    }

    /// The page that goes on with the token, which may have been listed by now.
    async fn listed(&mut self, run: &Run) -> Page {
        if let Some(prefetch) = self.prefetch.take()
            && let Some(page) = prefetch.page(run.token.as_deref()).await
        {
            return page;
        }
        self.objects.page(run.token.clone()).await
    }

    async fn patch_all(&mut self, run: &mut Run, page: ObjectList<Metadata>) -> Next {
        let token = page.metadata.continue_.filter(|token| !token.is_empty());
        let remaining = page
            .metadata
            .remaining_item_count
            .and_then(|count| u64::try_from(count).ok());
        let remaining = if token.is_none() { Some(0) } else { remaining };
        self.prefetch = token.as_ref().map(|token| Prefetch::begin(&self.objects, token));
        let listed = run.pass.listed() + page.items.len() as u64;
        let patches = page.items.into_iter().map(|object| self.objects.patch(object));
        let outcomes: Vec<_> = stream::iter(patches)
            .buffer_unordered(self.settings.pace.workers)
            .collect()
            .await;
        self.note(listed, remaining);
        run.page(outcomes, token)
    }

    /// Notes how far the pass is after a page.
    fn note(&mut self, listed: u64, remaining: Option<u64>) {
        let (since, before) = self.since;
        let (listed_since, elapsed) = (listed.saturating_sub(before), since.elapsed());
        let status = self.object.status.get_or_insert_default();
        status.total = Some(listed + remaining.unwrap_or_default());
        let rate = listed_since as f64 / elapsed.as_secs_f64().max(f64::EPSILON);
        status.objects_per_second = Some(rate as u64);
        let left = estimate(listed_since, remaining, elapsed).and_then(|estimate| estimate.left);
        status.pass_end_time = left.and_then(|left| Timestamp::now().checked_add(left).ok()).map(Time);
    }

    async fn find_cause(&self) -> String {
        let suspects = suspects(&self.cluster.first, &self.name).await;
        format!("{VERIFICATIONS_MAX} passes changed objects once more: {suspects} changes them at every write")
    }

    async fn save(&mut self, run: &Run) -> Result<(), Stopped> {
        self.object = save(self.cluster, self.object.clone(), run).await?;
        Ok(())
    }
}

/// Ends a migration whose objects are not gone over. `None` where it was deleted or has ended.
pub(super) async fn give_up(
    cluster: &Cluster,
    migration: &StorageVersionMigration,
    verdict: Verdict,
) -> Result<Option<Verdict>, ClusterError> {
    let ended = async {
        let mut object = current(cluster, migration).await?;
        let status = object.status.get_or_insert_default();
        let run = status.run();
        if status.progress() == Progress::Pending {
            let name = GroupResource::from(&object.spec.resource);
            let definition = cluster.definition(&name).await.ok().flatten();
            let defined = definition.as_ref().and_then(defined).map(|(_, defined)| defined);
            let definition = defined.map(|defined| DefinitionStatus::from(&defined.definition));
            object.status.get_or_insert_default().definition = definition;
        }
        finish(cluster, object, &run, verdict, None).await
    };
    match ended.await {
        Ok(verdict) => Ok(Some(verdict)),
        Err(Stopped::Taken) => Ok(None),
        Err(Stopped::Failed(error)) => Err(error),
    }
}

/// The migration as it is now.
async fn current(cluster: &Cluster, known: &StorageVersionMigration) -> Result<StorageVersionMigration, Stopped> {
    let name = known.name_any();
    let found = cluster.migration(&name).await;
    let read = |source| ClusterError::Read {
        what: "storageversionmigration",
        name,
        source,
    };
    let found = found.map_err(|source| Stopped::Failed(read(source)))?;
    let found = found.filter(|found| found.uid() == known.uid() && found.metadata.deletion_timestamp.is_none());
    let found = found.ok_or(Stopped::Taken)?;
    match found.status.as_ref().map(|status| status.progress()) {
        Some(Progress::Succeeded | Progress::Failed { .. }) => Err(Stopped::Taken),
        Some(Progress::Pending | Progress::Running) | None => Ok(found),
    }
}

/// Saves the verdict, with another message where there is a better one.
async fn finish(
    cluster: &Cluster,
    mut object: StorageVersionMigration,
    run: &Run,
    verdict: Verdict,
    better: Option<String>,
) -> Result<Verdict, Stopped> {
    let (kind, reason, message) = verdict.condition();
    let (name, message) = (object.name_any(), better.unwrap_or(message));
    let status = object.status.get_or_insert_default();
    (status.objects_per_second, status.pass_end_time) = (None, None);
    status.set_condition(kind, reason, message.clone(), Timestamp::now());
    save(cluster, object, run).await?;
    if verdict != Verdict::Succeeded {
        tracing::warn!(name, reason, message, "A storage version migration failed");
    }
    Ok(verdict)
}

/// A new cluster has a migration for each kind, all of which find nothing to do.
fn succeeded(name: &str, rewritten: u64) {
    match rewritten {
        0 => tracing::debug!(name, "Every object was stored in the target version"),
        _ => tracing::info!(name, rewritten, "Every object is stored in the target version"),
    }
}

async fn save(
    cluster: &Cluster,
    mut object: StorageVersionMigration,
    run: &Run,
) -> Result<StorageVersionMigration, Stopped> {
    object.status.get_or_insert_default().save(run);
    let name = object.name_any();
    let saved = cluster
        .migrations()
        .replace_status(&name, &PostParams::default(), &object)
        .await;
    saved.map_err(|error| match error {
        error if outcome(&error).is_some_and(Outcome::is_overtaken) => Stopped::Taken,
        source => Stopped::Failed(ClusterError::Write {
            what: "storageversionmigration",
            name,
            source,
        }),
    })
}
