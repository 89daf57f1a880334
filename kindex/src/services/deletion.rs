//! The deletion graph: `kindex deletion` lets objects go after those that refer to them, and takes along what cascades.
//! `kindex up --deletion` does so in the embedded cluster.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::figures::Figures;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::service::{Deletion as Graph, Options};
use kindex_model::kind::Registry;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::service::{Context, Running, Service};
use super::turn::{Turn, Worker};
use crate::client::{self, Access};
use crate::error::{CommandError, CommandResult, chain};
use crate::health::Health;
use crate::replicas::{self, LeaseArgs};
use crate::unknown_versions;

/// What the graph calls itself.
const AGENT: &str = concat!("kindex-deletion/", env!("CARGO_PKG_VERSION"));
/// What begins the names of its leases.
const LEASES: &str = "kindex-deletion";

/// Delete objects after those that refer to them, as `references` in crds.toml says, and with what cascades.
#[derive(Clone, Debug, Args)]
#[command(after_help = DELETION_EXAMPLES)]
pub(super) struct DeletionArgs {
    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,

    /// When an object counts as blocked.
    #[command(flatten)]
    patience: PatienceArgs,

    /// Of several replicas, one works.
    #[command(flatten)]
    lease: LeaseArgs,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8086"
    )]
    health_addr: SocketAddr,
}

const DELETION_EXAMPLES: &str = "\
Examples:
  kindex deletion
  kindex deletion --kubeconfig cluster.yaml --blocked-after 300";

/// How long others may be waited for.
#[derive(Clone, Debug, Args)]
pub(super) struct PatienceArgs {
    /// Seconds for which a deletion waits for the same objects before an event names them.
    #[arg(
        long,
        env = "KINDEX_BLOCKED_AFTER_SECONDS",
        value_name = "SECONDS",
        default_value = "30"
    )]
    blocked_after: NonZeroU32,
}

/// Flags of `kindex up`.
#[derive(Clone, Debug, Args)]
pub(in crate::services) struct UpDeletionArgs {
    /// In the embedded cluster, delete objects after those that refer to them, as `references` in crds.toml says, and
    /// with what cascades.
    #[arg(long, env = "KINDEX_DELETION")]
    deletion: bool,

    /// When an object counts as blocked.
    #[command(flatten)]
    patience: PatienceArgs,
}

/// A graph that does nothing yet.
pub(super) struct Deletion {
    graph: Arc<Graph>,
    figures: prometheus::Registry,
    /// Where the lease is; `None` for a cluster of this process.
    lease: Option<(Access, LeaseArgs)>,
}

impl Deletion {
    fn new(
        kinds: Kinds,
        client: Client,
        patience: &PatienceArgs,
        figures: prometheus::Registry,
        lease: Option<(Access, LeaseArgs)>,
    ) -> Self {
        let options = Options {
            patience: Duration::from_secs(patience.blocked_after.get().into()),
        };
        let graph = Graph::new(Cluster::new(client, kinds), options, Figures::new(&figures));
        Self {
            graph: Arc::new(graph),
            figures,
            lease,
        }
    }
}

impl Service for Deletion {
    const NAME: &'static str = "deletion";

    type Args = DeletionArgs;
    type UpArgs = UpDeletionArgs;

    fn health_addr(args: &DeletionArgs) -> SocketAddr {
        args.health_addr
    }

    async fn alone(registry: &Registry, args: DeletionArgs) -> CommandResult<Self> {
        let kinds = kinds(registry)?;
        let access = client::named(args.kubeconfig.as_deref()).await?;
        let client = client_of(&access)?;
        unknown_versions::refuse(registry, &client, None).await?;
        let lease = Some((access, args.lease));
        Ok(Self::new(
            kinds,
            client,
            &args.patience,
            prometheus::Registry::new(),
            lease,
        ))
    }

    async fn beside(context: &Context<'_>, args: UpDeletionArgs) -> CommandResult<Option<Self>> {
        // Elsewhere, `kindex deletion` may be at work.
        if !args.deletion || !context.access.is_own() {
            return Ok(None);
        }
        let kinds = kinds(context.registry)?;
        let client = client_of(&context.access)?;
        let deletion = Self::new(kinds, client, &args.patience, context.figures.clone(), None);
        Ok(Some(deletion))
    }

    fn start(self, stop: CancellationToken) -> CommandResult<Running> {
        let tasks = TaskTracker::new();
        let health = Arc::new(Held(self.graph.clone()));
        let graph = self.graph;
        match self.lease {
            None => {
                tasks.spawn(async move { graph.run(&stop).await });
            }
            Some((access, lease)) => {
                let drained = CancellationToken::new();
                let (turn, work) = Turn::of(graph, drained.clone());
                tasks.spawn(work);
                tasks.spawn(async move {
                    let (config, timing) = replicas::config(&lease, &access, LEASES);
                    kindex_runtime::replicas::run(&config, &turn, timing, &stop).await;
                    drained.cancel();
                });
            }
        }
        tasks.close();
        Ok(Running {
            figures: self.figures,
            health: Some(health),
            until_stopped: Box::pin(async move { tasks.wait().await }),
        })
    }
}

impl Worker for Graph {
    async fn run(&self, stop: &CancellationToken) {
        Self::run(self, stop).await;
    }
}

/// What keeps the graph from its work.
struct Held(Arc<Graph>);

impl Health for Held {
    fn not_ready(&self) -> Vec<String> {
        self.0.not_ready()
    }
}

fn kinds(registry: &Registry) -> CommandResult<Kinds> {
    let kinds = Kinds::of(registry).map_err(CommandError::usage)?;
    match kinds.is_empty() {
        true => Err(
            CommandError::usage("no kind has a reference that its deletion waits for")
                .hint("declare one in crds.toml, with on_delete or owned"),
        ),
        false => Ok(kinds),
    }
}

fn client_of(access: &Access) -> CommandResult<Client> {
    let client = access.client_of(AGENT);
    client.map_err(|error| CommandError::usage(chain(&error)))
}
