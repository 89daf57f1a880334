//! `kindex versions start` and `stop`: migrations that people ask for.

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_kube_client::{Outcome, outcome};
use kindex_migrator::cluster::manual::{self, StartOutcome};
use kindex_migrator::cluster::survey::under_way;
use kindex_migrator::cluster::{Cluster, ClusterError};
use kindex_migrator::migration::Progress;
use kindex_migrator::wire::{GroupResource, StorageVersionMigration, StorageVersionMigrationStatus};
use kindex_model::kind::{Kind, Registry};
use kindex_store::progress::Progress as _;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tokio::time::{Instant, sleep};

use super::sources::resource;
use crate::cli::{ClusterArgs, StartMigrationArgs, StopMigrationArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::progress::Bar;
use crate::target::kind_of;
use crate::{say, sides};

/// How often a migration is looked at while somebody waits.
const PERIOD: Duration = Duration::from_millis(500);
/// How long a migration may wait for a migrator until it is said.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(10);
/// How long a cluster that does not answer is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// How long after the end of a migration another one may take its place: they are not exchanged in one step.
const REPLACED_WITHIN: Duration = Duration::from_secs(3);
/// Refused objects that are printed.
const REFUSED_PRINTED: usize = 10;

/// Asks for a migration, and waits for its end where that is wished.
pub(super) async fn start(registry: &Registry, args: &StartMigrationArgs) -> CommandResult {
    let kind = kind_of(registry, &args.kind)?;
    let cluster = open(&args.cluster).await?;
    let started = manual::start(&cluster, &resource(kind))
        .await
        .map_err(|error| failed(&error))?;
    let migration = match started {
        StartOutcome::Created(migration) => {
            say::note(format_args!("migration {} is asked for", migration.name_any()));
            migration
        }
        StartOutcome::UnderWay(migration) => {
            say::note(format_args!("migration {} is under way already", migration.name_any()));
            migration
        }
        StartOutcome::Unserved => {
            return Err(
                CommandError::failure(format_args!("the cluster does not list {}", resource(kind)))
                    .hint("is its CustomResourceDefinition installed, and is a version of it served?"),
            );
        }
    };
    if !args.wait {
        return Ok(());
    }
    let deadline = args
        .timeout
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let bar = Bar::new();
    let ended = Waiting::of(&cluster, resource(kind), &migration, &bar)
        .end(deadline)
        .await;
    bar.end();
    judge(kind, &ended?)
}

/// Stops what has not ended.
pub(super) async fn stop(registry: &Registry, args: &StopMigrationArgs) -> CommandResult {
    let kind = kind_of(registry, &args.kind)?;
    let cluster = open(&args.cluster).await?;
    let stopped = manual::stop(&cluster, &resource(kind))
        .await
        .map_err(|error| failed(&error))?;
    match stopped.as_slice() {
        [] => say::line(format_args!("{}: no migration is under way", kind.name)),
        names => say::line(format_args!("{}: {} is stopped", kind.name, names.join(", "))),
    }
}

async fn open(args: &ClusterArgs) -> CommandResult<Cluster> {
    let access = sides::cluster_at(args.kubeconfig.as_deref(), &args.data_dir).await?;
    let access = sides::answering(access).await?;
    Ok(Cluster::new(access.client, Vec::new()))
}

fn failed(error: &ClusterError) -> CommandError {
    let failure = CommandError::failure(chain(error));
    match said(error) {
        Some(Outcome::Unserved) => failure.hint(
            "does the cluster serve the resources of migration.k8s.io? `kindex migrator` installs them; else the \
                 account may lack `get` on the non-resource URLs /apis and /apis/*",
        ),
        Some(Outcome::Unauthorized | Outcome::Forbidden) => {
            failure.hint("docs/src/how-to/drop-a-version.md lists the permissions that each command needs")
        }
        Some(_) => failure.hint("this is what the API server said; its log may say more"),
        None => failure.hint("does the cluster run, and is it the one of --kubeconfig?"),
    }
}

/// What the API server's answer means; `None` where there is none.
fn said(error: &ClusterError) -> Option<Outcome> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(outcome) = error.downcast_ref::<kube::Error>().and_then(outcome) {
            return Some(outcome);
        }
        cause = error.source();
    }
    None
}

/// Whether the same question may be answered later: nobody answered, or somebody who cannot now.
fn is_transient(error: &ClusterError) -> bool {
    said(error).is_none_or(Outcome::is_transient)
}

/// Somebody waits for the end of a migration, or of the one that took its place.
struct Waiting<'a> {
    cluster: &'a Cluster,
    resource: GroupResource,
    /// Name and uid.
    migration: (String, Option<String>),
    bar: &'a Bar,
    /// Notes that were printed, each of them once.
    printed: BTreeSet<&'static str>,
}

impl<'a> Waiting<'a> {
    fn of(cluster: &'a Cluster, resource: GroupResource, migration: &StorageVersionMigration, bar: &'a Bar) -> Self {
        Self {
            cluster,
            resource,
            migration: (migration.name_any(), migration.uid()),
            bar,
            printed: BTreeSet::new(),
        }
    }

    /// Follows it to its end.
    async fn end(mut self, deadline: Option<Instant>) -> CommandResult<StorageVersionMigrationStatus> {
        let begun = Instant::now();
        self.bar.begin("waiting for a migrator", None);
        self.say("waiting until it has ended; `kindex versions` says how far it is");
        let mut state = BarState::default();
        let mut silent_since = None;
        let mut gone_since = None;
        loop {
            let now = Instant::now();
            match self.look().await {
                Err(error) if is_transient(&error) && !is_over(&mut silent_since, now, ANSWER_WITHIN) => {
                    self.say("the cluster does not answer; trying again for two minutes");
                }
                Err(error) => return Err(failed(&error)),
                Ok(None) if is_over(&mut gone_since, now, REPLACED_WITHIN) => return Err(deleted(&self.migration.0)),
                Ok(None) => silent_since = None,
                Ok(Some(migration)) => {
                    (silent_since, gone_since) = (None, None);
                    let status = migration.status.clone().unwrap_or_default();
                    match status.progress() {
                        Progress::Succeeded | Progress::Failed { .. } => return Ok(status),
                        Progress::Pending if begun.elapsed() > TAKEN_UP_WITHIN => {
                            self.say(
                                "no migrator has begun: does `kindex migrator` or `kindex up` run on this cluster?",
                            );
                        }
                        Progress::Pending => {}
                        Progress::Running => state.follow(&migration, self.bar),
                    }
                }
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(late(&self.migration.0));
            }
            sleep(PERIOD).await;
        }
    }

    /// The migration as it is now. Where another start, or the trigger, removed it for a new one, it is that one from
    /// now on.
    async fn look(&mut self) -> Result<Option<StorageVersionMigration>, ClusterError> {
        let (name, uid) = &self.migration;
        let found = manual::look_at(self.cluster, name).await?;
        if let Some(migration) = found.filter(|found| found.uid() == *uid) {
            return Ok(Some(migration));
        }
        let newest = newest(self.cluster, &self.resource).await?;
        if let Some(migration) = &newest {
            let name = migration.name_any();
            say::note(format_args!("migration {} gave way to {name}", self.migration.0));
            self.migration = (name, migration.uid());
        }
        Ok(newest)
    }

    /// Says something once: beside the bar, or where nobody sees that in a line of its own.
    fn say(&mut self, note: &'static str) {
        if !self.printed.insert(note) {
            return;
        }
        match self.bar.is_seen() {
            true => self.bar.note(note),
            false => say::note(note),
        }
    }
}

/// Whether something has been so for longer than that; it begins now where it was not.
fn is_over(since: &mut Option<Instant>, now: Instant, limit: Duration) -> bool {
    now.duration_since(*since.get_or_insert(now)) > limit
}

async fn newest(cluster: &Cluster, resource: &GroupResource) -> Result<Option<StorageVersionMigration>, ClusterError> {
    let api: Api<StorageVersionMigration> = Api::all(cluster.first().clone());
    let listed = api.list(&ListParams::default()).await;
    let mut migrations = listed
        .map_err(|source| ClusterError::List {
            what: "storageversionmigrations",
            source,
        })?
        .items;
    migrations.retain(|one| {
        let of = &one.spec.resource;
        (&of.group, &of.resource) == (&resource.group, &resource.resource)
    });
    Ok(migrations.into_iter().max_by_key(ResourceExt::creation_timestamp))
}

fn deleted(name: &str) -> CommandError {
    CommandError::failure(format_args!("migration {name} was deleted before it ended"))
        .hint("somebody stopped it, or the stored version changed; `kindex versions` says how it stands")
}

fn late(name: &str) -> CommandError {
    CommandError::failure(format_args!("migration {name} has not ended in time"))
        .hint("it goes on; `kindex versions` says how far it is")
}

/// What the bar shows.
#[derive(Default)]
struct BarState {
    /// Pass and length of the bar.
    pass: Option<(u32, u64)>,
    done: u64,
}

impl BarState {
    fn follow(&mut self, migration: &StorageVersionMigration, bar: &Bar) {
        let Some(under_way) = under_way(migration, jiff::Timestamp::now()) else {
            return;
        };
        let Some(estimate) = under_way.estimate else { return };
        let pass = (under_way.passes, estimate.total);
        if self.pass != Some(pass) || under_way.done < self.done {
            let part = if pass.0 == 0 { "rewriting" } else { "verifying" };
            bar.begin(part, Some(pass.1));
            (self.pass, self.done) = (Some(pass), 0);
        }
        bar.advance(under_way.done - self.done);
        self.done = under_way.done;
    }
}

/// A migration that failed is a failure.
fn judge(kind: &Kind, status: &StorageVersionMigrationStatus) -> CommandResult {
    let run = status.run();
    let holds = status.true_condition();
    let (reason, message) = holds.map_or(("", ""), |condition| (&condition.reason, &condition.message));
    if status.progress() == Progress::Succeeded {
        let (objects, rewritten) = (status.total.unwrap_or_default(), run.all_passes().rewritten);
        return say::line(format_args!(
            "{}: {message}, {objects} objects, {rewritten} rewritten",
            kind.name
        ));
    }
    for refused in run.refused.iter().take(REFUSED_PRINTED) {
        say::note(format_args!("{}: {}", refused.object, refused.why));
    }
    let more = usize::try_from(run.pass.refused)
        .unwrap_or(usize::MAX)
        .saturating_sub(REFUSED_PRINTED);
    if more > 0 {
        say::note(format_args!("and {more} more objects"));
    }
    Err(CommandError::failure(format_args!(
        "the migration of {} failed: {reason}: {message}",
        kind.name
    ))
    .hint("let what refuses them allow them, or change the objects, and start again"))
}
