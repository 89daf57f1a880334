//! The API server over a cluster and a database: `kindex api`, and a part of `kindex up`.

mod graph;

mod readiness;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use clap::{Args, ValueEnum};
use futures::future::BoxFuture;
use kindex_api::grpc;
use kindex_api::metrics::Metrics;
use kindex_api::operations::{Operations, RightsOf};
use kindex_api::rest::Rest;
use kindex_api::server::{self, Limits};
use kindex_commands::client;
use kindex_commands::database::OpenedStorage;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::platform::Platform;
use kindex_commands::{database, one_cluster};
use kindex_serve::listen::{ConnectionLimits, FrontProxy, Tls};
use kindex_serve::watches::WatchLimits;
use kindex_store::database_gauges::DatabaseGauges;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use graph::{Graph, GraphArgs, UpGraph};
use readiness::Readiness;

use super::service::{Announcement, Context, Running, Service};
use crate::front_proxy::Source;
use crate::health::{self, Health};
use crate::limits::LimitArgs;
use crate::{front_proxy, unknown_versions};

/// How often the files of certificate and key are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How the API server is reached.
#[derive(Clone, Debug, Args)]
pub(super) struct ListenArgs {
    /// Address of the API server over cluster and SQL; port 0 takes a free one.
    #[arg(long, env = "KINDEX_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:6482")]
    listen: SocketAddr,

    /// Serve HTTPS with this certificate, and those that lead from it to a root; read again when it changes.
    #[arg(long, env = "KINDEX_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate.
    #[arg(long, env = "KINDEX_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// With whose rights the server acts; default: `caller` for `kindex api`, `server` for `kindex up`.
    #[arg(long, env = "KINDEX_RIGHTS", value_enum)]
    rights: Option<Rights>,
}

/// With whose rights something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rights {
    /// Those of whoever asks: by bearer token, checked with the cluster.
    Caller,
    /// Those of the server, whoever asks: for a loopback address alone.
    Server,
}

/// Serve the Kubernetes API over cluster and SQL: live and archived objects as one.
#[derive(Clone, Debug, Args)]
#[command(after_help = API_EXAMPLES)]
pub(super) struct ApiArgs {
    /// Where to listen, and for whom.
    #[command(flatten)]
    listen: ListenArgs,

    /// Limits of the server.
    #[command(flatten)]
    limits: LimitArgs,

    /// The configuration file; its metadataStorage, mysql and sqlite stanzas say where rows are.
    #[arg(
        long,
        env = "KINDEX_CONFIG",
        value_name = "FILE",
        required_unless_present = "database"
    )]
    config: Option<PathBuf>,

    /// `sqlite:PATH` or `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, instead of what the file says.
    #[arg(long, env = "KINDEX_DATABASE", value_name = "ADDRESS", hide_env_values = true)]
    database: Option<String>,

    /// Who deletes archived objects that others may name, and where these are.
    #[command(flatten)]
    graph: GraphArgs,

    /// Serve the kinds in groups `archive.<group>` as well, for kube-apiserver, which then says who asks.
    #[arg(long, env = "KINDEX_AGGREGATED", requires = "tls_cert")]
    aggregated: bool,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8084"
    )]
    health_addr: SocketAddr,

    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
}

/// Flags of `kindex up`.
#[derive(Clone, Debug, Args)]
pub(super) struct UpApiArgs {
    /// Where to listen, and for whom.
    #[command(flatten)]
    listen: ListenArgs,

    /// Who deletes archived objects that others may name, and where these are.
    #[command(flatten)]
    graph: UpGraph,
}

const API_EXAMPLES: &str = "\
Examples:
  kindex api --config kindex.yaml --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key
  kindex api --rights server --kubeconfig ~/.kube/config --database mysql://kindex@db/michelangelo
  kindex api --config kindex.yaml --service region=https://region.example.com:6443
  kubectl --server http://127.0.0.1:6482 get models -A";

/// An API server where it runs.
pub(super) struct Api {
    process: Process,
    /// Ends once cluster and database of a process of its own do not belong together.
    failure: Option<BoxFuture<'static, CommandError>>,
    server: Server,
    storage: OpenedStorage,
    metrics: prometheus::Registry,
    /// The kind that examples name.
    example: &'static str,
}

/// An API server whose address is taken.
struct Server {
    listener: TcpListener,
    operations: Arc<Operations>,
    metrics: Metrics,
    limits: Limits,
    router: Router,
    tls: Option<Tls>,
}

/// Where an API server runs.
enum Process {
    /// In a process of its own, whose database it closes.
    Standalone {
        /// What the cluster says of the front proxy, where requests come through one.
        source: Option<Box<Source>>,
    },
    /// Beside an ingester, which answers for cluster and database.
    WithIngester,
}

impl Process {
    /// Where the flags do not say.
    fn usual_rights(&self) -> Rights {
        match self {
            Self::Standalone { .. } => Rights::Caller,
            Self::WithIngester => Rights::Server,
        }
    }
}

impl Api {
    async fn bind(
        context: &Context<'_>,
        args: &ListenArgs,
        process: Process,
        graph: Graph,
        front_proxy: Option<FrontProxy>,
    ) -> CommandResult<Self> {
        let rights = args.rights.unwrap_or(process.usual_rights());
        let operations = operations(context, rights)?;
        let outside = context.platform.cleanups.all().map(|(kind, _)| kind);
        let operations = operations.with_graph(graph.is_at_work).with_peers(graph.peers);
        let operations = operations.with_outside(outside);
        Ok(Self {
            process,
            failure: None,
            server: Server::bind(context, args, rights, operations, front_proxy).await?,
            storage: context.storage.clone(),
            metrics: context.metrics.clone(),
            example: context
                .platform
                .registry
                .kinds
                .first()
                .map_or("KIND", |kind| kind.plural),
        })
    }
}

impl Server {
    /// Takes the address.
    async fn bind(
        context: &Context<'_>,
        args: &ListenArgs,
        rights: Rights,
        operations: Operations,
        front_proxy: Option<FrontProxy>,
    ) -> CommandResult<Self> {
        let tls = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::read(certificate, key, front_proxy).map_err(|error| CommandError::usage(chain(&error)))?)
            }
            _ => None,
        };
        check_exposure(args, rights, tls.is_some())?;
        let metrics = Metrics::new(&context.metrics);
        let watches = context.limits.watches(WatchLimits::default());
        let operations = operations.with_metrics(metrics.clone()).with_watch_limits(watches);
        let operations = Arc::new(operations);
        let rest = Rest::new(operations.clone()).router();
        let router = grpc::beside(rest, operations.clone())
            .await
            .map_err(CommandError::failure)?;
        Ok(Self {
            listener: health::bind(args.listen, "--listen").await?,
            operations,
            metrics,
            limits: limits(&context.limits),
            router,
            tls,
        })
    }

    /// For `kubectl --server`.
    fn url(&self) -> CommandResult<String> {
        let address = self.listener.local_addr().map_err(CommandError::failure)?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{address}"))
    }

    /// Serves until stopped.
    fn start(self, tasks: &TaskTracker, stop: &CancellationToken) {
        if let Some(tls) = &self.tls {
            tasks.spawn(tls.clone().follow(LOOK_EVERY, stop.clone()));
        }
        tasks.spawn(server::serve(
            self.listener,
            self.router,
            self.operations,
            self.tls,
            self.limits,
            self.metrics,
            stop.clone(),
        ));
    }

    /// What a process of its own does beside: asks cluster and database whether they answer, and the cluster for its
    /// front proxy.
    fn look_after(
        &self,
        storage: &OpenedStorage,
        source: Option<Box<Source>>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Readiness> {
        let readiness = Arc::new(Readiness::of(storage));
        let probe = readiness.clone().follow(self.operations.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(probe));
        if let (Some(source), Some(tls)) = (source, self.tls.clone()) {
            let followed = source.follow(front_proxy::LOOK_EVERY, move |next| tls.take_front_proxy(next));
            tasks.spawn(stop.clone().run_until_cancelled_owned(followed));
        }
        readiness
    }
}

impl Service for Api {
    const NAME: &'static str = "api";

    type Args = ApiArgs;
    type UpArgs = UpApiArgs;

    fn health_addr(args: &ApiArgs) -> SocketAddr {
        args.health_addr
    }

    async fn for_command(platform: &Platform, args: ApiArgs) -> CommandResult<Self> {
        let registry = &platform.registry;
        let graph = args.graph.graph(registry)?;
        let storage = database::open_storage(registry, args.database.as_deref(), args.config.as_deref())?;
        let mut context = Context {
            platform,
            storage: storage
                .ok_or_else(|| CommandError::usage("no database").hint("name one with --database or --config"))?,
            sql_only: None,
            access: client::named(args.kubeconfig.as_deref()).await?,
            metrics: prometheus::Registry::new(),
            limits: args.limits.clone(),
            data_dir: None,
        };
        let store = match &context.storage {
            OpenedStorage::On(store) => Some(store.as_ref()),
            OpenedStorage::Off(_) => None,
        };
        let mut failure = None;
        if let OpenedStorage::On(store) = &context.storage {
            let shown = database::shown(registry, args.database.as_deref(), args.config.as_deref(), "")?;
            let client = context.access.client.clone();
            failure = Some(one_cluster::watch_for_other_cluster(client, store.clone(), shown).await?);
        }
        unknown_versions::refuse(registry, &context.access.client, store).await?;
        if let OpenedStorage::On(store) = &context.storage {
            store.outage().log_changes();
            let shown = context.metrics.register(Box::new(DatabaseGauges::new(store.clone())));
            shown.expect("nothing is registered yet");
        }
        let (front_proxy, source) = match (args.aggregated, args.listen.rights) {
            (false, _) => (None, None),
            (true, Some(Rights::Server)) => {
                let error = CommandError::usage("--aggregated requires --rights caller");
                return Err(error.hint("leave out --rights server"));
            }
            (true, _) => {
                let (front_proxy, source) = front_proxy::read(&context.access.client).await?;
                (Some(front_proxy), Some(Box::new(source)))
            }
        };
        context.sql_only = context.storage.sql_only_api(registry).await?;
        let process = Process::Standalone { source };
        let bound = Self::bind(&context, &args.listen, process, graph, front_proxy).await?;
        Ok(Self { failure, ..bound })
    }

    async fn for_up(context: &Context<'_>, args: UpApiArgs) -> CommandResult<Option<Self>> {
        let graph = args.graph.graph(&context.platform.registry, context.access.is_own())?;
        let bound = Self::bind(context, &args.listen, Process::WithIngester, graph, None);
        bound.await.map(Some)
    }

    fn announcement(&self) -> CommandResult<Option<Announcement>> {
        let (url, example) = (self.server.url()?, self.example);
        let step = match (&self.process, &self.storage) {
            (Process::Standalone { .. }, _) => format!("kubectl --server {url} get {example}"),
            (Process::WithIngester, OpenedStorage::Off(_)) => format!("kubectl --server {url} get {example} -A"),
            (Process::WithIngester, OpenedStorage::On(_)) => {
                format!("kubectl --server {url} get {example} -A    # live and archived as one")
            }
        };
        Ok(Some(Announcement { url, step }))
    }

    fn start(self, stop: CancellationToken) -> CommandResult<Running> {
        let tasks = TaskTracker::new();
        let (health, own): (Option<Arc<dyn Health>>, _) = match self.process {
            Process::Standalone { source } => {
                let readiness = self.server.look_after(&self.storage, source, &tasks, &stop);
                (Some(readiness), Some(self.storage))
            }
            Process::WithIngester => (None, None),
        };
        self.server.start(&tasks, &stop);
        Ok(Running {
            metrics: self.metrics,
            health,
            until_stopped: Box::pin(async move {
                stop.cancelled().await;
                tasks.close();
                tasks.wait().await;
                if let Some(OpenedStorage::On(store)) = own {
                    store.close().await;
                }
            }),
            failure: self.failure,
        })
    }
}

/// The verbs over cluster and database.
fn operations(context: &Context<'_>, rights: Rights) -> CommandResult<Operations> {
    let rights = match rights {
        Rights::Caller => RightsOf::Caller,
        Rights::Server => RightsOf::Server,
    };
    let cluster = context.access.cluster_access();
    let operations = match &context.storage {
        OpenedStorage::On(store) => {
            let operations = Operations::new(context.platform.registry, cluster, store.clone(), rights);
            let operations = operations.map_err(|error| CommandError::usage(chain(&error)))?;
            return Ok(match &context.sql_only {
                Some(api) => operations.with_sql_only(api.clone()),
                None => operations,
            });
        }
        OpenedStorage::Off(reason) => {
            tracing::info!(
                reason,
                "Metadata storage is off: the API server passes requests on, and deletions are Kubernetes' own"
            );
            Operations::without_storage(context.platform.registry, cluster, reason, rights)
        }
    };
    operations.map_err(|error| CommandError::usage(chain(&error)))
}

fn limits(args: &LimitArgs) -> Limits {
    Limits {
        connections: ConnectionLimits {
            most: args.max_connections.get(),
            body: args.body_pace(),
            ..ConnectionLimits::default()
        },
        reads: args.max_reads.get(),
        changes: args.max_changes.get(),
        requests_per_second: args.requests_per_second,
        body_bytes: args.body_bytes(),
        ..Limits::default()
    }
}

/// Refuses what would hand out rights, or tokens, to a whole network.
fn check_exposure(args: &ListenArgs, rights: Rights, has_keys: bool) -> CommandResult {
    if args.listen.ip().is_loopback() {
        return Ok(());
    }
    let address = args.listen;
    match rights {
        Rights::Server => Err(CommandError::usage(format_args!(
            "--rights server at {address}: everybody who reaches it could do what the server may do"
        ))
        .hint("listen on a loopback address, or let each caller act with their own rights: --rights caller")),
        Rights::Caller if !has_keys => Err(CommandError::usage(format_args!(
            "no certificate for {address}: tokens would pass in the clear"
        ))
        .hint("give --tls-cert and --tls-key, or listen on a loopback address")),
        Rights::Caller => Ok(()),
    }
}
