//! Starts the ingester as the configuration says, keeps it, and answers for it.
//! `kindex ingester` is this alone; `kindex up` puts a cluster beside it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kindex_model::kind::{Kind, Registry};
use kindex_runtime::settings::Settings;
use kindex_runtime::{Division, Ingester};
use kindex_store::{Address, MetadataStorage, PoolConfig};
use tokio_util::sync::CancellationToken;

use crate::cli::{IngesterArgs, UpArgs};
use crate::client::{self, Access};
use crate::config::{Config, MetadataStorageChoice};
use crate::data_dir::DataDir;
use crate::database::Rows;
use crate::error::{CommandError, CommandResult, chain};
use crate::health::{self, Health};
use crate::orphans::Allowance;
use crate::{database, interrupt, replicas};

/// What the ingester calls itself: our servers keep places for it.
const AGENT: &str = concat!("kindex-ingester/", env!("CARGO_PKG_VERSION"));

/// What the command line and the configuration file ask for together.
pub(crate) struct Setup {
    config: Config,
    storage: MetadataStorageChoice,
    /// Where the file does not say whether objects are given our finalizer.
    adopt_finalizers: bool,
    orphans: Allowance,
}

impl Setup {
    /// `kindex ingester`: the file alone.
    pub(crate) fn from_file(registry: &Registry, args: &IngesterArgs) -> CommandResult<Self> {
        let path = &args.config;
        let config = read(registry, path)?;
        let storage = config.metadata_storage_choice();
        Ok(Self {
            config,
            storage,
            adopt_finalizers: false,
            orphans: Allowance::new(registry, &args.orphans.allow_orphans)?,
        })
    }

    /// `kindex up`: without a file, a SQLite database in the data directory and every
    /// object guarded; `--database` goes over the file.
    pub(crate) fn for_up(registry: &Registry, args: &UpArgs, data_dir: &DataDir) -> CommandResult<Self> {
        let config = match &args.config {
            Some(path) => read(registry, path)?,
            None => Config::default(),
        };
        let orphans = Allowance::new(registry, &args.orphans.allow_orphans)?;
        let address = match (&args.database.database, &args.config) {
            (Some(address), _) => address.clone(),
            (None, None) => data_dir.default_database(),
            (None, Some(_)) => {
                let storage = config.metadata_storage_choice();
                return Ok(Self {
                    storage,
                    config,
                    adopt_finalizers: true,
                    orphans,
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
        })
    }

    /// Whether both gates are open.
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

/// The configuration file, with every mistake in it as one usage error.
pub(crate) fn read(registry: &Registry, path: &Path) -> CommandResult<Config> {
    let wrong = |error: &dyn std::error::Error| {
        CommandError::usage(format_args!("{}: {}", path.display(), chain(error)))
            .hint("docs/src/reference/configuration.md lists every key")
    };
    let unread = |error: &std::io::Error| {
        CommandError::usage(format_args!("{}: {error}", path.display()))
            .hint("--config or KINDEX_CONFIG names a file that can be read")
    };
    let text = std::fs::read_to_string(path).map_err(|error| unread(&error))?;
    let mut config = Config::parse(&text, registry).map_err(|error| wrong(&error))?;
    config.read_credentials().map_err(|error| wrong(&error))?;
    Ok(config)
}

/// A running ingester, or the reason why there is none.
pub(crate) enum Ingestion {
    /// Both gates are open.
    On {
        /// The controllers.
        ingester: Ingester,
        /// Their database.
        store: Arc<dyn MetadataStorage>,
    },
    /// A gate is closed.
    Off {
        /// Which one.
        reason: String,
        /// Nothing is counted.
        figures: prometheus::Registry,
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
        division: Division,
    ) -> CommandResult<Self> {
        let (address, pool) = match &setup.storage {
            MetadataStorageChoice::Off { reason } => {
                tracing::info!(reason, "Metadata storage not configured, skipping ingester setup");
                return Ok(Self::Off {
                    reason: reason.clone(),
                    figures: prometheus::Registry::new(),
                });
            }
            MetadataStorageChoice::On { address, pool } => (address, pool),
        };
        tracing::info!(database = %address, "Metadata storage enabled");
        let unusable = |error: &dyn std::error::Error| CommandError::usage(chain(error));
        let store = kindex_store::open(address, *registry, pool).map_err(|error| unusable(&error))?;
        let cluster = access.of(AGENT).map_err(|error| unusable(&error))?;
        let settings = |kind: &Kind| Settings {
            orphans_allowed: setup.orphans.of(kind),
            ..setup.config.settings(kind, setup.adopt_finalizers)
        };
        let ingester = Ingester::start(*registry, Arc::new(cluster), store.clone(), division, settings);
        Ok(Self::On { ingester, store })
    }

    /// Where rows are, for an API server beside it.
    pub(crate) fn rows(&self) -> Rows {
        match self {
            Self::On { store, .. } => Rows::Stored(store.clone()),
            Self::Off { reason, .. } => Rows::Off(reason.clone()),
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
            .map(|kind| format!("{}: {}, {} pending", kind.kind, kind.phase, kind.pending - kind.held))
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
            .hint("see docs/src/reference/configuration.md for the two gates")
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

    fn figures(&self) -> prometheus::Registry {
        match self {
            Self::Off { figures, .. } => figures.clone(),
            Self::On { ingester, .. } => ingester.figures().clone(),
        }
    }
}

/// The role alone: no CRDs are installed, nothing is applied.
pub(crate) async fn run(registry: &Registry, args: &IngesterArgs) -> CommandResult {
    let setup = Setup::from_file(registry, args)?;
    let access = match &args.kubeconfig {
        Some(path) => client::from_file(path).await?,
        None => client::from_environment().await?,
    };
    let listener = health::bind(args.health_addr, "--health-addr").await?;
    let division = replicas::division(&args.replicas);
    let ingestion = Arc::new(Ingestion::start(registry, &setup, &access, division)?);
    let stop = CancellationToken::new();
    let served = tokio::spawn(health::serve(listener, ingestion.clone(), stop.clone()));
    let leaving = CancellationToken::new();
    let shared = async {
        if let (Division::Shards(_), Ingestion::On { ingester, .. }) = (division, &*ingestion) {
            let (place, timing) = replicas::place(&args.replicas, &access);
            kindex_runtime::replicas::run(&place, ingester, timing, &leaving).await;
        }
    };
    let interrupted = async {
        interrupt::wait().await;
        leaving.cancel();
    };
    tokio::join!(shared, interrupted);
    ingestion.stop().await;
    stop.cancel();
    served.await.map_err(CommandError::failure)
}
