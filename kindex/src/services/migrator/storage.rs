//! The part of the migrator that works on a cluster: its flags, and how trigger and migrator start, under a lease where
//! there may be several of them.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use clap::Args;
use kindex_commands::client::{self, Access};
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::install::manifests;
use kindex_migrator::cluster::settings::{Pace, WriteRate};
use kindex_migrator::metrics::Metrics;
use kindex_migrator::service::{MigrationStrategy, Migrator, Options};
use kindex_migrator::trigger::Settings;
use kindex_migrator::wire::GroupResource;
use kindex_model::kind::Registry;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::health::Health;
use crate::replicas::{self, LeaseArgs};
use crate::services::leadership::{Leadership, Worker};
use crate::unknown_versions;

/// What the migrator calls itself.
const AGENT: &str = concat!("kindex-migrator/", env!("CARGO_PKG_VERSION"));
/// What begins the names of its leases.
const LEASES: &str = "kindex-migrator";
/// Objects of a page, after which progress is saved and a deleted migration stops.
const PAGE_OBJECTS: u32 = 500;
/// Writes a second of `kindex up`, which has other work to do.
const UP_RATE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");
/// Stands for every resource of discovery.
const ALL: &str = "all";
/// How long a migration that failed stands, as long as nothing changes.
const RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// How storage versions are migrated.
#[derive(Clone, Debug, Args)]
pub(super) struct StorageArgs {
    /// Answer the conversion webhook alone: nothing is migrated, and with --tls-cert no cluster is asked for anything.
    /// With --tls-secret, the Secret and the CRDs are kept up to date all the same.
    #[arg(long, env = "KINDEX_WEBHOOK_ONLY")]
    webhook_only: bool,

    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,

    /// Migrate this resource, or `all` that the cluster has; default: the kinds of crds.toml. Repeatable.
    #[arg(long = "resource", value_name = "RESOURCE.GROUP", value_delimiter = ',')]
    resources: Vec<String>,

    /// Note which versions are stored, and leave starting migrations to people.
    #[arg(long, env = "KINDEX_NO_TRIGGER")]
    no_trigger: bool,

    /// Seconds between two rounds of the trigger. Changes of CRDs are seen at once.
    #[arg(
        long,
        env = "KINDEX_PERIOD_SECONDS",
        value_name = "SECONDS",
        default_value = "600",
        value_parser = above_zero::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    period: NonZeroU32,

    /// Address of one more API server of the cluster, which is asked what it stores. Repeatable.
    #[arg(long = "api-server", value_name = "URL", value_delimiter = ',')]
    api_servers: Vec<Uri>,

    /// Seconds for which API servers that disagreed must agree before a migration begins.
    #[arg(
        long,
        env = "KINDEX_SETTLE_SECONDS",
        value_name = "SECONDS",
        default_value = "60",
        allow_negative_numbers = true
    )]
    settle: u32,

    /// Let Kubernetes' own migrator (storagemigration.k8s.io) go over the objects first. Its success counts once a
    /// verification of Kindex's own has succeeded.
    #[arg(long, env = "KINDEX_IN_TREE")]
    in_tree: bool,

    /// Migrations at a time, of different resources.
    #[arg(
        long,
        env = "KINDEX_PARALLEL",
        value_name = "COUNT",
        default_value = "2",
        value_parser = above_zero::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    parallel: NonZeroUsize,

    /// Objects of a migration that are written at a time.
    #[arg(
        long,
        env = "KINDEX_WORKERS",
        value_name = "COUNT",
        default_value = "8",
        value_parser = above_zero::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    workers: NonZeroUsize,

    /// Writes a second, of all migrations together; default: as many as the API server answers.
    #[arg(
        long,
        env = "KINDEX_RATE",
        value_name = "WRITES",
        value_parser = above_zero::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    rate: Option<NonZeroU32>,

    /// Of several replicas, one migrates.
    #[command(flatten)]
    lease: LeaseArgs,
}

impl StorageArgs {
    /// A client of the cluster.
    ///
    /// # Errors
    /// Where no cluster is configured.
    pub(super) async fn client(&self) -> CommandResult<Client> {
        let access = client::named(self.kubeconfig.as_deref()).await?;
        access
            .client_of(AGENT)
            .map_err(|error| CommandError::usage(chain(&error)))
    }
}

/// Flags of `kindex up`.
#[derive(Clone, Debug, Args)]
pub(in crate::services) struct UpStorageArgs {
    /// Note which storage versions are stored in the embedded cluster, and leave starting migrations to people.
    #[arg(long, env = "KINDEX_NO_TRIGGER")]
    no_trigger: bool,
}

/// Trigger and migrator that do nothing yet.
pub(super) struct Storage {
    migrator: Arc<Migrator>,
    /// Where the lease is; `None` for a cluster of this process.
    lease: Option<(Access, LeaseArgs)>,
}

impl Storage {
    /// As the flags say; `None` where the webhook is all.
    pub(super) async fn for_command(
        registry: &Registry,
        args: &StorageArgs,
        metrics: &Metrics,
    ) -> CommandResult<Option<Self>> {
        if args.webhook_only {
            return Ok(None);
        }
        let access = client::named(args.kubeconfig.as_deref()).await?;
        let unusable = |error: kube::Error| CommandError::usage(chain(&error));
        let others = args.api_servers.iter();
        let others: Result<_, _> = others.map(|address| access.client_at(address.clone(), AGENT)).collect();
        let first = access.client_of(AGENT).map_err(unusable)?;
        unknown_versions::refuse(registry, &first, None).await?;
        let options = Options {
            wanted: wanted(registry, &args.resources)?,
            settings: Settings {
                period: Duration::from_secs(args.period.get().into()),
                settle: Duration::from_secs(args.settle.into()),
                retry: RETRY_AFTER,
                launch: !args.no_trigger,
            },
            pace: Pace {
                page: PAGE_OBJECTS,
                workers: args.workers.get(),
            },
            rate: args.rate.map_or_else(WriteRate::unlimited, WriteRate::per_second),
            parallel: args.parallel.get(),
            strategy: match args.in_tree {
                true => MigrationStrategy::InTree,
                false => MigrationStrategy::Own,
            },
            manifests: manifests(),
        };
        let cluster = Cluster::new(first, others.map_err(unusable)?);
        Ok(Some(Self {
            migrator: Arc::new(Migrator::new(cluster, options, metrics.clone())),
            lease: Some((access, args.lease.clone())),
        }))
    }

    /// On the cluster of this process.
    pub(super) fn for_up(
        registry: &Registry,
        access: &Access,
        args: &UpStorageArgs,
        metrics: &Metrics,
    ) -> CommandResult<Self> {
        let client = access.client_of(AGENT);
        let client = client.map_err(|error| CommandError::usage(chain(&error)))?;
        let options = Options {
            wanted: kinds(registry),
            settings: Settings {
                period: Duration::from_secs(600),
                settle: Duration::ZERO,
                retry: RETRY_AFTER,
                launch: !args.no_trigger,
            },
            pace: Pace {
                page: PAGE_OBJECTS,
                workers: 4,
            },
            rate: WriteRate::per_second(UP_RATE),
            parallel: 1,
            strategy: MigrationStrategy::Own,
            manifests: manifests(),
        };
        let cluster = Cluster::new(client, Vec::new());
        Ok(Self {
            migrator: Arc::new(Migrator::new(cluster, options, metrics.clone())),
            lease: None,
        })
    }

    /// Works until stopped. Returns what tells how it does.
    pub(super) fn start(self, tasks: &TaskTracker, stop: &CancellationToken) -> Arc<dyn Health> {
        let (migrator, stop) = (self.migrator, stop.clone());
        let health = Arc::new(MigratorHealth(migrator.clone()));
        match self.lease {
            None => {
                tasks.spawn(async move { migrator.run(&stop).await });
            }
            Some((access, lease)) => {
                let drained = CancellationToken::new();
                let (leadership, work) = Leadership::of(migrator, drained.clone());
                tasks.spawn(work);
                tasks.spawn(async move {
                    let (config, timing) = replicas::config(&lease, &access, LEASES);
                    kindex_runtime::replicas::run(&config, &leadership, timing, &stop).await;
                    drained.cancel();
                });
            }
        }
        health
    }
}

impl Worker for Migrator {
    async fn run(&self, stop: &CancellationToken) {
        Self::run(self, stop).await;
    }
}

/// What keeps the migrator from its work.
struct MigratorHealth(Arc<Migrator>);

impl Health for MigratorHealth {
    fn not_ready(&self) -> Vec<String> {
        self.0.not_ready()
    }
}

/// A number of a flag for which 0 has no meaning.
fn above_zero<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "not a whole number above 0")
}

/// The resources that are named, or the kinds; none where all are meant.
fn wanted(registry: &Registry, named: &[String]) -> CommandResult<BTreeSet<GroupResource>> {
    if named.is_empty() {
        return Ok(kinds(registry));
    }
    if named.iter().any(|name| name == ALL) {
        return match named {
            [_] => Ok(BTreeSet::new()),
            _ => {
                Err(CommandError::usage("--resource all beside other resources")
                    .hint("name the resources, or all of them"))
            }
        };
    }
    let resource = |name: &String| {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        if resource.is_empty() {
            let error = CommandError::usage(format_args!("--resource {name}: no resource"));
            return Err(error.hint("write its plural name and its group: models.michelangelo.api"));
        }
        Ok(GroupResource {
            group: group.to_owned(),
            resource: resource.to_owned(),
        })
    };
    named.iter().map(resource).collect()
}

fn kinds(registry: &Registry) -> BTreeSet<GroupResource> {
    let kinds = registry.cluster_kinds();
    let resource = kinds.map(|kind| GroupResource {
        group: kind.group.to_owned(),
        resource: kind.plural.to_owned(),
    });
    resource.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(named: &[&str]) -> CommandResult<Vec<String>> {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let wanted = wanted(&kindex_generated::registry(), &named)?;
        Ok(wanted.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn without_a_name_the_kinds_are_meant_and_all_means_no_list() {
        let kinds = of(&[]).expect("kinds");
        assert_eq!(kinds.len(), kindex_generated::registry().kinds.len());
        assert!(kinds.contains(&"models.michelangelo.api".to_owned()));
        assert_eq!(of(&[ALL]).expect("all"), [""; 0]);
    }

    #[test]
    fn zero_and_less_is_refused_in_words() {
        assert_eq!(above_zero::<NonZeroU32>("7"), Ok(NonZeroU32::new(7).expect("not zero")));
        for wrong in ["0", "-1", "1.5", "many", ""] {
            assert_eq!(above_zero::<NonZeroU32>(wrong), Err("not a whole number above 0"));
        }
    }

    #[test]
    fn a_resource_is_named_with_its_group_and_a_core_one_without() {
        let named = of(&["pods", "deployments.apps", "pets.zoo.example.com"]).expect("resources");
        assert_eq!(named, ["pods", "deployments.apps", "pets.zoo.example.com"]);
        assert!(of(&[ALL, "pods"]).is_err());
        assert!(of(&[".apps"]).is_err());
    }
}
