//! The migrator at work: it follows all migrations, begins those that are due and stops those that were deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::health::Part;
use super::schedule::{Known, plan};
use super::{MigrationStrategy, Migrator};
use crate::causes::chain;
use crate::cluster::in_tree::{InTree, work_in_tree};
use crate::cluster::settings::{MigrationSettings, TAKEN_UP_WITHIN};
use crate::cluster::work::work;
use crate::in_tree;
use crate::run::Verdict;
use crate::wire::{GroupResource, StorageVersionMigration};

/// Before a migration goes on whose status could not be saved, or which another process has touched. Each further pause
/// is twice as long.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Longest pause of a migration.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(60);

/// The migrations of a cluster, and what runs of them here.
struct Runs<'a> {
    migrator: &'a Migrator,
    objects: BTreeMap<String, StorageVersionMigration>,
    /// Those of a list that is not complete yet.
    listed: BTreeMap<String, StorageVersionMigration>,
    running: BTreeMap<String, (GroupResource, CancellationToken)>,
    tasks: JoinSet<Ended>,
    /// How often in a row a migration broke off here.
    broken_off: BTreeMap<String, u32>,
    /// Those that go on after a pause.
    pausing: BTreeSet<String>,
    pauses: JoinSet<String>,
}

/// A run that ended: its uid, and its verdict if it has one.
type Ended = (String, Option<Verdict>);

/// Works until stopped. What is under way then ends where it is.
pub(super) async fn follow(migrator: &Migrator, stop: &CancellationToken) {
    let events = watcher(migrator.cluster.migrations(), Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut runs = Runs {
        migrator,
        objects: BTreeMap::new(),
        listed: BTreeMap::new(),
        running: BTreeMap::new(),
        tasks: JoinSet::new(),
        broken_off: BTreeMap::new(),
        pausing: BTreeSet::new(),
        pauses: JoinSet::new(),
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(event) = events.next() => match event {
                Ok(event) => {
                    migrator.part_failures.end(Part::Migrations);
                    runs.note(event);
                }
                Err(error) => migrator.part_failures.begin(Part::Migrations, chain(&error)),
            },
            Some(ended) = runs.tasks.join_next() => match ended {
                Ok(ended) => runs.ended(ended),
                Err(error) => tracing::error!(%error, "A migration broke off"),
            },
            Some(Ok(uid)) = runs.pauses.join_next() => {
                runs.pausing.remove(&uid);
            }
        }
        runs.follow_plan(stop);
        migrator
            .metrics
            .running
            .set(i64::try_from(runs.running.len()).unwrap_or(i64::MAX));
    }
    while runs.tasks.join_next().await.is_some() {}
    migrator.metrics.running.set(0);
}

impl Runs<'_> {
    fn note(&mut self, event: Event<StorageVersionMigration>) {
        let entry = |object: StorageVersionMigration| (object.uid().unwrap_or_default(), object);
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => self.listed.extend([entry(object)]),
            Event::InitDone => self.objects = std::mem::take(&mut self.listed),
            Event::Apply(object) => self.objects.extend([entry(object)]),
            Event::Delete(object) => {
                self.objects.remove(&entry(object).0);
            }
        }
    }

    fn ended(&mut self, (uid, verdict): Ended) {
        self.running.remove(&uid);
        if verdict.is_some() {
            self.objects.remove(&uid);
            self.broken_off.remove(&uid);
            self.migrator.changed.notify_one();
            return;
        }
        if !self.objects.contains_key(&uid) {
            self.broken_off.remove(&uid);
            return;
        }
        let times = self.broken_off.entry(uid.clone()).or_default();
        let pause = pause(*times);
        *times = times.saturating_add(1);
        self.pausing.insert(uid.clone());
        self.pauses.spawn(async move {
            sleep(pause).await;
            uid
        });
    }

    fn follow_plan(&mut self, stop: &CancellationToken) {
        let known: BTreeMap<String, Known> = self
            .objects
            .iter()
            .filter(|(_, object)| object.metadata.deletion_timestamp.is_none())
            .map(|(uid, object)| (uid.clone(), Known::from(object)))
            .collect();
        let running = self.running.iter();
        let running = running
            .map(|(uid, (resource, _))| (uid.clone(), resource.clone()))
            .collect();
        let plan = plan(&known, &running, &self.pausing, self.migrator.options.parallel);
        for uid in plan.stop {
            // A run that has ended is not in the list either, and stopping it means nothing.
            if let Some((resource, stop)) = self.running.get(&uid)
                && !stop.is_cancelled()
            {
                tracing::info!(%resource, "A storage version migration was deleted and stops");
                stop.cancel();
            }
        }
        for uid in plan.start {
            if let Some(object) = self.objects.get(&uid).cloned() {
                let resource = Known::from(&object).resource;
                let stop = stop.child_token();
                self.running.insert(uid.clone(), (resource, stop.clone()));
                self.tasks.spawn(self.migrator.run_one(uid, object, stop));
            }
        }
    }
}

/// Of a migration that broke off so often before.
fn pause(before: u32) -> Duration {
    AGAIN_AFTER
        .saturating_mul(2_u32.saturating_pow(before))
        .min(AGAIN_AFTER_MAX)
}

impl Migrator {
    fn migration_settings(&self, stop: CancellationToken) -> MigrationSettings {
        MigrationSettings {
            pace: self.options.pace,
            rate: self.options.rate.clone(),
            settle: self.options.settings.settle,
            taken_up_within: TAKEN_UP_WITHIN,
            metrics: self.metrics.clone(),
            stop,
        }
    }

    /// One migration, by itself.
    fn run_one(
        &self,
        uid: String,
        object: StorageVersionMigration,
        stop: CancellationToken,
    ) -> impl Future<Output = Ended> + Send + use<> {
        let (cluster, settings, strategy) = (
            self.cluster.clone(),
            self.migration_settings(stop.clone()),
            self.options.strategy,
        );
        async move {
            let name = object.name_any();
            let worked = match strategy {
                MigrationStrategy::Own => work(&cluster, object, settings).await,
                MigrationStrategy::InTree => {
                    let worked = work_in_tree(&cluster, object, settings).await;
                    worked.map(|ended| ended.and_then(|ended| report(&name, ended)))
                }
            };
            match worked {
                Ok(Some(verdict)) => return (uid, Some(verdict)),
                Ok(None) => {}
                Err(error) => tracing::warn!(name, error = chain(&error), "A storage version migration pauses"),
            }
            (uid, None)
        }
    }
}

/// Tells what Kubernetes' own migrator made of it, and returns the verdict of ours.
fn report(name: &str, ended: InTree) -> Option<Verdict> {
    if let in_tree::Ended::Failed { why } = &ended.ended {
        tracing::warn!(name, why, "Kubernetes' own migrator failed");
    }
    if !ended.put_back.narrowed.is_empty() {
        tracing::warn!(
            name,
            put_back = %ended.put_back,
            "Kubernetes' own migrator narrowed status.storedVersions too early"
        );
    }
    ended.verdict
}
