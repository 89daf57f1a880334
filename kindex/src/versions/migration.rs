//! `kindex versions start` and `stop`: migrations that people ask for.

use std::time::Duration;

use kindex_migrator::cluster::ask::{self, Asked};
use kindex_migrator::cluster::survey::under_way;
use kindex_migrator::cluster::{Cluster, ClusterError};
use kindex_migrator::migration::Progress;
use kindex_migrator::wire::{StorageVersionMigration, StorageVersionMigrationStatus};
use kindex_model::kind::{Kind, Registry};
use kindex_store::progress::Progress as _;
use kube::ResourceExt as _;
use tokio::time::{Instant, sleep};

use super::asked::resource;
use crate::cli::{ClusterArgs, StartMigrationArgs, StopMigrationArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::progress::Bar;
use crate::target::kind_of;
use crate::{say, sides};

/// How often a migration is looked at while somebody waits.
const PERIOD: Duration = Duration::from_millis(500);
/// How long a migration may wait for a migrator until it is said.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(10);
/// Refused objects that are printed.
const REFUSED_PRINTED: usize = 10;

/// Asks for a migration, and waits for its end where that is wished.
pub(super) async fn start(registry: &Registry, args: &StartMigrationArgs) -> CommandResult {
    let kind = kind_of(registry, &args.kind)?;
    let cluster = open(&args.cluster).await?;
    let asked = ask::start(&cluster, &resource(kind))
        .await
        .map_err(|error| failed(&error))?;
    let migration = match asked {
        Asked::Created(migration) => {
            say::note(format_args!("migration {} is asked for", migration.name_any()));
            migration
        }
        Asked::UnderWay(migration) => {
            say::note(format_args!("migration {} is under way already", migration.name_any()));
            migration
        }
        Asked::Unserved => {
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
    let ended = wait(&cluster, &migration.name_any(), deadline, &bar).await;
    bar.end();
    judge(kind, &ended?)
}

/// Stops what has not ended.
pub(super) async fn stop(registry: &Registry, args: &StopMigrationArgs) -> CommandResult {
    let kind = kind_of(registry, &args.kind)?;
    let cluster = open(&args.cluster).await?;
    let stopped = ask::stop(&cluster, &resource(kind))
        .await
        .map_err(|error| failed(&error))?;
    match stopped.as_slice() {
        [] => say::line(format_args!("{}: no migration is under way", kind.name)),
        names => say::line(format_args!("{}: {} is stopped", kind.name, names.join(", "))),
    }
}

async fn open(args: &ClusterArgs) -> CommandResult<Cluster> {
    let access = sides::cluster_at(args.kubeconfig.as_deref(), &args.data_dir).await?;
    Ok(Cluster::new(access.client, Vec::new()))
}

fn failed(error: &ClusterError) -> CommandError {
    CommandError::failure(chain(error))
        .hint("does the cluster have the resources of migration.k8s.io? `kindex migrator` installs them")
}

/// Follows a migration to its end.
async fn wait(
    cluster: &Cluster,
    name: &str,
    deadline: Option<Instant>,
    bar: &Bar,
) -> CommandResult<StorageVersionMigrationStatus> {
    let begun = Instant::now();
    bar.begin("waiting for a migrator", None);
    let mut shown = Shown::default();
    loop {
        let migration = ask::look_at(cluster, name).await.map_err(|error| failed(&error))?;
        let Some(migration) = migration else {
            return Err(
                CommandError::failure(format_args!("migration {name} was deleted before it ended"))
                    .hint("somebody stopped it, or the stored version changed; `kindex versions` says how it stands"),
            );
        };
        let status = migration.status.clone().unwrap_or_default();
        match status.progress() {
            Progress::Succeeded | Progress::Failed { .. } => return Ok(status),
            Progress::Pending if begun.elapsed() > TAKEN_UP_WITHIN => {
                bar.note("does `kindex migrator` or `kindex up` run on this cluster?");
            }
            Progress::Pending => {}
            Progress::Running => shown.follow(&migration, bar),
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(
                CommandError::failure(format_args!("migration {name} has not ended in time"))
                    .hint("it goes on; `kindex versions` says how far it is"),
            );
        }
        sleep(PERIOD).await;
    }
}

/// What the bar shows.
#[derive(Default)]
struct Shown {
    /// Pass and length of the bar.
    pass: Option<(u32, u64)>,
    done: u64,
}

impl Shown {
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
    let holds = status.conditions.iter().find(|condition| condition.status == "True");
    let (reason, message) = holds.map_or(("", ""), |condition| (&condition.reason, &condition.message));
    if status.progress() == Progress::Succeeded {
        let objects = status.total.unwrap_or_default();
        return say::line(format_args!("{}: {message}, {objects} objects", kind.name));
    }
    let run = status.run();
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
