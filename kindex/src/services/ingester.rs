//! The ingester: started as the configuration says, kept, and answered for. It runs alone as `kindex ingester`, and
//! with a cluster beside it in `kindex up`.

mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kindex_commands::client::{self, Access};
use kindex_commands::config::{Config, MetadataStorageChoice};
use kindex_commands::data_dir::DataDir;
use kindex_commands::database::OpenedStorage;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::one_cluster::{self, CheckedCluster, FollowArg};
use kindex_commands::platform::Platform;
use kindex_commands::{config_file, database};
use kindex_model::kind::{Kind, Registry};
use kindex_runtime::Sharding;
use kindex_runtime::settings::Settings;
use kindex_store::{Address, MetadataStorage, PoolConfig};
use tokio_util::sync::CancellationToken;

use super::service::{Running, Service};
use crate::health::Health;
use crate::orphans::{Allowance, OrphansArg};
use crate::replicas::ReplicasArgs;
use crate::{replicas, unknown_versions};

/// What the ingester calls itself: our servers keep places for it.
const AGENT: &str = concat!("kindex-ingester/", env!("CARGO_PKG_VERSION"));

/// What begins the names of its leases.
const LEASES: &str = "kindex-ingester";

/// Run the ingester alone, against a cluster and a database of yours.
#[derive(Clone, Debug, Args)]
#[command(after_help = INGESTER_EXAMPLES)]
pub(super) struct IngesterArgs {
    /// The configuration file (metadataStorage, mysql, sqlite and ingester stanzas).
    #[arg(long, env = "KINDEX_CONFIG", value_name = "FILE")]
    config: PathBuf,

    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,

    /// Rows that may be closed this once.
    #[command(flatten)]
    orphans: OrphansArg,

    /// Whose objects the database shall have.
    #[command(flatten)]
    follow: FollowArg,

    /// One of several replicas.
    #[command(flatten)]
    replicas: ReplicasArgs,

    /// Address of /healthz, /readyz and /metrics.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8083"
    )]
    health_addr: SocketAddr,
}

const INGESTER_EXAMPLES: &str = "\
Examples:
  kindex ingester --config /etc/kindex/config.yaml
  kindex ingester --config /etc/kindex/config.yaml --leader-elect
  kindex ingester --config /etc/kindex/config.yaml --shards 4";

/// What the command line and the configuration file ask for together.
pub(crate) struct Setup {
    config: Config,
    storage: MetadataStorageChoice,
    /// Where the file does not say whether objects are given our finalizer.
    adopt_finalizers: bool,
    orphans: Allowance,
    /// The uid of the cluster that the database may be handed over to.
    follow: Option<String>,
}

impl Setup {
    /// `kindex ingester`: the file alone.
    fn from_file(registry: &Registry, path: &Path, orphans: &OrphansArg, follow: FollowArg) -> CommandResult<Self> {
        let config = config_file::read(registry, path)?;
        let storage = config.metadata_storage_choice();
        Ok(Self {
            config,
            storage,
            adopt_finalizers: false,
            orphans: Allowance::new(registry, &orphans.allow_orphans)?,
            follow: follow.follow_cluster,
        })
    }

    /// `kindex up`: without a file, a SQLite database in the data directory and the
    /// finalizer on every object; `--database` overrides the file.
    pub(crate) fn for_up(
        registry: &Registry,
        file: Option<&Path>,
        database: Option<&str>,
        orphans: &OrphansArg,
        follow: FollowArg,
        data_dir: &DataDir,
    ) -> CommandResult<Self> {
        let config = match file {
            Some(path) => config_file::read(registry, path)?,
            None => Config::default(),
        };
        let orphans = Allowance::new(registry, &orphans.allow_orphans)?;
        let address = match (database, file) {
            (Some(address), _) => address.to_owned(),
            (None, None) => data_dir.default_database(),
            (None, Some(_)) => {
                let storage = config.metadata_storage_choice();
                return Ok(Self {
                    storage,
                    config,
                    adopt_finalizers: true,
                    orphans,
                    follow: follow.follow_cluster,
                });
            }
        };
        let address: Address = database::parse(&address)?;
        let storage = MetadataStorageChoice::On {
            address,
            pool: PoolConfig::default(),
        };
        Ok(Self {
            config,
            storage,
            adopt_finalizers: true,
            orphans,
            follow: follow.follow_cluster,
        })
    }

    /// Refuses a database that has the objects of another cluster, and a cluster and a database that store a version
    /// which nobody declares.
    pub(crate) async fn check_sides(&self, registry: &Registry, access: &Access) -> CommandResult {
        let follow = self.follow.as_deref();
        one_cluster::refuse_configured(registry, &access.client, &self.storage, follow).await?;
        unknown_versions::refuse_configured(registry, &access.client, &self.storage).await
    }

    /// Whether both conditions for it hold.
    pub(crate) fn has_database(&self) -> bool {
        matches!(self.storage, MetadataStorageChoice::On { .. })
    }

    /// The database for people, without a password.
    pub(crate) fn shown_database(&self) -> String {
        match &self.storage {
            MetadataStorageChoice::Off { reason } => reason.clone(),
            MetadataStorageChoice::On { address, .. } => address.to_string(),
        }
    }
}

/// A running ingester, or the reason why there is none.
pub(crate) enum Ingestion {
    /// Both conditions hold.
    On {
        /// The controllers.
        ingester: kindex_runtime::Ingester,
        /// Their database.
        store: Arc<dyn MetadataStorage>,
    },
    /// A condition does not hold.
    Off {
        /// Which one.
        reason: String,
        /// Nothing is counted.
        metrics: prometheus::Registry,
    },
}

impl Ingestion {
    /// Starts one controller for each kind that is this replica's, or none.
    ///
    /// # Errors
    /// A database address that cannot be used; a database that is down is no error.
    pub(crate) fn start(
        registry: &Registry,
        setup: &Setup,
        access: &Access,
        sharding: Sharding,
    ) -> CommandResult<Self> {
        let (address, pool) = match &setup.storage {
            MetadataStorageChoice::Off { reason } => {
                tracing::info!(reason, "Metadata storage not configured, skipping ingester setup");
                return Ok(Self::Off {
                    reason: reason.clone(),
                    metrics: prometheus::Registry::new(),
                });
            }
            MetadataStorageChoice::On { address, pool } => (address, pool),
        };
        tracing::info!(database = %address, "Metadata storage enabled");
        let unusable = |error: &dyn std::error::Error| CommandError::usage(chain(error));
        let store = kindex_store::open(address, *registry, pool).map_err(|error| unusable(&error))?;
        let cluster = access.of(AGENT).map_err(|error| unusable(&error))?;
        let cluster = CheckedCluster::new(cluster, store.clone(), address.to_string());
        let settings = |kind: &Kind| Settings {
            orphans_allowed: setup.orphans.of(kind),
            ..settings::of_kind(&setup.config, kind, setup.adopt_finalizers)
        };
        let ingester = kindex_runtime::Ingester::start(*registry, Arc::new(cluster), store.clone(), sharding, settings);
        Ok(Self::On { ingester, store })
    }

    /// Waits until the database has all tables, its first failure is known, or this limit is over.
    pub(crate) async fn wait_for_database(&self, limit: Duration) {
        if let Self::On { ingester, .. } = self {
            // Many tables, or a lock of others, take longer: no reason not to serve.
            let _late = tokio::time::timeout(limit, ingester.first_attempt()).await;
        }
    }

    /// The database, or why there is none, for the services of `kindex up`.
    pub(crate) fn storage(&self) -> OpenedStorage {
        match self {
            Self::On { store, .. } => OpenedStorage::On(store.clone()),
            Self::Off { reason, .. } => OpenedStorage::Off(reason.clone()),
        }
    }

    /// The database.
    pub(crate) fn store(&self) -> Option<&Arc<dyn MetadataStorage>> {
        match self {
            Self::On { store, .. } => Some(store),
            Self::Off { .. } => None,
        }
    }

    /// What is received and not yet settled, a line for each kind that has any.
    pub(crate) fn pending(&self) -> Vec<String> {
        let Self::On { ingester, .. } = self else {
            return Vec::new();
        };
        let status = ingester.status();
        let behind = status.kinds.iter().filter(|kind| !kind.is_caught_up());
        behind
            .map(|kind| {
                format!(
                    "{}: {}, {} pending",
                    kind.kind,
                    kind.phase,
                    kind.pending - kind.held - kind.without_crd
                )
            })
            .collect()
    }

    /// Mean time from an event to its row, for a kind.
    pub(crate) fn mean_lag(&self, name: &str) -> Option<Duration> {
        let Self::On { ingester, .. } = self else { return None };
        let (_, metrics) = ingester.metrics().find(|(kind, _)| kind.name == name)?;
        metrics.mean_lag()
    }

    /// For who needs rows and has none.
    pub(crate) fn off_error(&self) -> CommandError {
        CommandError::usage(format_args!("the ingester is off: {}", self.not_ready().join(", ")))
            .hint("docs/src/reference/configuration.md says when it runs")
    }

    /// What is counted; the same registry at every call.
    pub(crate) fn metrics_registry(&self) -> prometheus::Registry {
        match self {
            Self::Off { metrics, .. } => metrics.clone(),
            Self::On { ingester, .. } => ingester.metrics_registry().clone(),
        }
    }

    /// Lets what is under way end, then closes the database.
    pub(crate) async fn stop(&self) {
        if let Self::On { ingester, store } = self {
            ingester.shutdown().await;
            store.close().await;
        }
    }
}

impl Health for Ingestion {
    fn not_ready(&self) -> Vec<String> {
        match self {
            Self::Off { reason, .. } => vec![reason.clone()],
            Self::On { ingester, .. } => ingester.status().not_ready(),
        }
    }
}

/// The service alone: no CRDs are installed, nothing is applied. `kindex up` starts an [`Ingestion`] itself, and waits
/// for it.
pub(super) struct Ingester {
    registry: Registry,
    setup: Setup,
    access: Access,
    replicas: ReplicasArgs,
}

impl Service for Ingester {
    const NAME: &'static str = "ingester";

    type Args = IngesterArgs;
    type UpArgs = ();

    fn health_addr(args: &IngesterArgs) -> SocketAddr {
        args.health_addr
    }

    async fn for_command(platform: &Platform, args: IngesterArgs) -> CommandResult<Self> {
        let registry = &platform.registry;
        let setup = Setup::from_file(registry, &args.config, &args.orphans, args.follow)?;
        let access = client::named(args.kubeconfig.as_deref()).await?;
        setup.check_sides(registry, &access).await?;
        Ok(Self {
            registry: *registry,
            setup,
            access,
            replicas: args.replicas,
        })
    }

    fn start(self, stop: CancellationToken) -> CommandResult<Running> {
        let sharding = replicas::sharding(&self.replicas);
        let ingestion = Arc::new(Ingestion::start(&self.registry, &self.setup, &self.access, sharding)?);
        Ok(Running {
            metrics: ingestion.metrics_registry(),
            health: Some(ingestion.clone()),
            until_stopped: Box::pin(async move {
                if let (Sharding::Shards(_), Ingestion::On { ingester, .. }) = (sharding, &*ingestion) {
                    let (config, timing) = replicas::config(&self.replicas.lease, &self.access, LEASES);
                    kindex_runtime::replicas::run(&config, ingester, timing, &stop).await;
                } else {
                    stop.cancelled().await;
                }
                ingestion.stop().await;
            }),
            // Its cluster is checked: what another one answers does not count.
            failure: None,
        })
    }
}
