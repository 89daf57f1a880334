//! The deletion graph: `kindex deletion` lets objects go after those that refer to them, and deletes with them what
//! cascades. `kindex up` does so in the embedded cluster. Both know what is archived where they have a database, and
//! feed NATS with the events of objects where they are told to. The two kinds of work do not wait for each other and
//! have a lease each.

mod notify;

mod args;

mod feed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kindex_commands::client::{self, Access};
use kindex_commands::database::{self, OpenedStorage, Store};
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::install::ClusterOwner;
use kindex_commands::platform::Platform;
use kindex_commands::{one_cluster, sql_only};
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion as Graph, Options};
use kindex_deletion::web::WebNotices;
use kindex_deletion::web::server::Server;
use kindex_nats::Feeders;
use kindex_store::database_gauges::DatabaseGauges;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use args::{DeletionArgs, UpDeletionArgs, WaitArgs};

use super::leadership::{Leadership, Worker};
use super::service::{Context, Running, Service};
use crate::health::Health;
use crate::replicas::{self, LeaseArgs};
use crate::unknown_versions;

/// What the graph calls itself.
const AGENT: &str = concat!("kindex-deletion/", env!("CARGO_PKG_VERSION"));
/// How `kindex deletion` gets the database without which it does not begin.
const NAME_A_DATABASE: &str =
    "name it in the configuration file of --config, with metadataStorage on, or with --database";
/// The same of `kindex up`, which has one unless its file says otherwise.
const SWITCH_IT_ON: &str = "switch metadataStorage on in the configuration file of --config, or name a database with \
                            --database; with --deletion=false, objects go in any order";
/// What begins the names of the graph's leases, and of the feeder's.
const LEASES: &str = "kindex-deletion";
const FEEDER_LEASES: &str = "kindex-nats-feeder";

/// A graph and a feeder that do nothing yet.
pub(super) struct Deletion {
    /// `None` where objects go in any order.
    graph: Option<Arc<Graph>>,
    /// `None` where nobody is told of events.
    feeders: Option<Arc<Feeders>>,
    metrics: prometheus::Registry,
    /// A process of its own; `None` beside an ingester.
    process: Option<Process>,
    /// Ends once cluster and database of a process of its own do not belong together.
    failure: Option<BoxFuture<'static, CommandError>>,
}

/// What a process of its own has.
struct Process {
    access: Access,
    lease: LeaseArgs,
    /// The database, where it was told one.
    store: Option<Store>,
}

impl Service for Deletion {
    const NAME: &'static str = "deletion";

    type Args = DeletionArgs;
    type UpArgs = UpDeletionArgs;

    fn health_addr(args: &DeletionArgs) -> SocketAddr {
        args.health_addr
    }

    async fn for_command(platform: &Platform, args: DeletionArgs) -> CommandResult<Self> {
        check(platform)?;
        let server = args.notify.server().await?;
        let registry = &platform.registry;
        let metrics = prometheus::Registry::new();
        let storage = database::open_storage(registry, args.database.as_deref(), args.config.as_deref())?;
        let feeders = feed::feeders(registry, &args.feed, &args.peers, storage.as_ref(), &metrics).await?;
        let kinds = Kinds::of(registry);
        let events = feed::events(&args.feed, &args.peers).await?;
        let peers = args.peers.peers(registry, &kinds, &events)?;
        if kinds.is_empty() && (feeders.is_none() || server.is_some()) {
            return Err(nothing_to_do());
        }
        let access = client::named(args.kubeconfig.as_deref()).await?;
        let client = client_of(&access)?;
        let store = match storage {
            Some(OpenedStorage::On(store)) => Some(store),
            Some(OpenedStorage::Off(_)) | None => None,
        };
        let mut failure = None;
        if let Some(store) = &store {
            let shown = database::shown(registry, args.database.as_deref(), args.config.as_deref(), "")?;
            failure = Some(one_cluster::watch_for_other_cluster(client.clone(), store.clone(), shown).await?);
        }
        unknown_versions::refuse(registry, &client, store.as_deref()).await?;
        if let Some(store) = &store {
            store.outage().log_changes();
            let shown = metrics.register(Box::new(DatabaseGauges::new(store.clone())));
            shown.expect("nothing of a database is registered yet");
        }
        let graph = if kinds.is_empty() {
            None
        } else {
            check_database(&kinds, store.as_ref(), NAME_A_DATABASE)?;
            let own = match &store {
                Some(store) => sql_only::client(registry, store.clone()).await?,
                None => None,
            };
            let cluster = cluster(client, platform, kinds, store.as_ref(), own).beside(peers);
            Some(graph(cluster, server, &args.waits, &metrics))
        };
        Ok(Self {
            graph,
            feeders,
            metrics,
            process: Some(Process {
                access,
                lease: args.lease,
                store,
            }),
            failure,
        })
    }

    fn check(platform: &Platform, owner: ClusterOwner, args: &UpDeletionArgs) -> CommandResult {
        args.check(&platform.registry, owner)
    }

    async fn for_up(context: &Context<'_>, args: UpDeletionArgs) -> CommandResult<Option<Self>> {
        check(context.platform)?;
        let registry = &context.platform.registry;
        let feeders = feed::feeders(
            registry,
            &args.feed,
            &args.peers,
            Some(&context.storage),
            &context.metrics,
        )
        .await?;
        let kinds = Kinds::of(registry);
        // Elsewhere, `kindex deletion` may be at work.
        let graph = if args.has_graph(&kinds) && context.access.is_own() {
            if kinds.is_empty() {
                return Err(nothing_to_do());
            }
            let events = feed::events(&args.feed, &args.peers).await?;
            let peers = args.peers.peers(registry, &kinds, &events)?;
            let store = match &context.storage {
                OpenedStorage::On(store) => Some(store),
                OpenedStorage::Off(_) => None,
            };
            check_database(&kinds, store, SWITCH_IT_ON)?;
            let client = client_of(&context.access)?;
            let server = args.notify.server().await?;
            let own = context.sql_only.clone();
            let cluster = cluster(client, context.platform, kinds, store, own).beside(peers);
            Some(graph(cluster, server, &args.waits, &context.metrics))
        } else {
            None
        };
        let is_asked_for = graph.is_some() || feeders.is_some();
        Ok(is_asked_for.then(|| Self {
            graph,
            feeders,
            metrics: context.metrics.clone(),
            process: None,
            failure: None,
        }))
    }

    fn start(self, stop: CancellationToken) -> CommandResult<Running> {
        let tasks = TaskTracker::new();
        let process = self.process.as_ref();
        let health = Arc::new(DeletionHealth {
            graph: self.graph.clone(),
            feeders: self.feeders.clone(),
        });
        if let Some(graph) = self.graph {
            spawn(graph, LEASES, process, &tasks, &stop);
        }
        if let Some(feeders) = self.feeders {
            spawn(feeders, FEEDER_LEASES, process, &tasks, &stop);
        }
        tasks.close();
        let store = self.process.and_then(|process| process.store);
        Ok(Running {
            metrics: self.metrics,
            health: Some(health),
            until_stopped: Box::pin(async move {
                tasks.wait().await;
                if let Some(store) = store {
                    store.close().await;
                }
            }),
            failure: self.failure,
        })
    }
}

/// At work until stopped: of several processes, in the one with the lease.
fn spawn<W: Worker>(
    worker: Arc<W>,
    leases: &str,
    process: Option<&Process>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let stop = stop.clone();
    let Some(process) = process else {
        tasks.spawn(async move { worker.run(&stop).await });
        return;
    };
    let (config, timing) = replicas::config(&process.lease, &process.access, leases);
    let drained = CancellationToken::new();
    let (leadership, work) = Leadership::of(worker, drained.clone());
    tasks.spawn(work);
    tasks.spawn(async move {
        kindex_runtime::replicas::run(&config, &leadership, timing, &stop).await;
        drained.cancel();
    });
}

impl Worker for Graph {
    async fn run(&self, stop: &CancellationToken) {
        Self::run(self, stop).await;
    }
}

impl Worker for Feeders {
    async fn run(&self, stop: &CancellationToken) {
        Self::run(self, stop).await;
    }
}

/// What keeps the two from their work.
struct DeletionHealth {
    graph: Option<Arc<Graph>>,
    feeders: Option<Arc<Feeders>>,
}

impl Health for DeletionHealth {
    fn not_ready(&self) -> Vec<String> {
        let graph = self.graph.iter().flat_map(|graph| graph.not_ready());
        let feeders = self.feeders.iter().flat_map(|feeders| feeders.not_ready());
        graph.chain(feeders).collect()
    }
}

/// The cluster, with what removes what its objects have outside. A database has what is archived of it; the objects of
/// SQL-only kinds are behind a client of their own.
fn cluster(client: Client, platform: &Platform, kinds: Kinds, store: Option<&Store>, own: Option<Client>) -> Cluster {
    let own = own.map(|own| sql_only::named(own, AGENT));
    let client = sql_only::over(client, own, &platform.registry);
    let cluster = Cluster::new(client, kinds.clone()).with_cleanups(&platform.cleanups);
    let Some(store) = store else {
        tracing::info!("Without a database, objects that are archived are not deleted with what they refer to");
        return cluster;
    };
    let archive = SqlArchive::new(store.clone(), platform.registry, kinds);
    cluster.with_archive(Arc::new(archive.with_cleanups(&platform.cleanups)))
}

/// Refuses kinds that are only in SQL without a database: what waits for them would wait for ever.
fn check_database(kinds: &Kinds, store: Option<&Store>, hint: &str) -> CommandResult {
    let in_sql = kinds.all().find(|kind| !kind.cluster);
    let Some(kind) = in_sql.filter(|_| store.is_none()) else {
        return Ok(());
    };
    let error = CommandError::usage(format_args!(
        "the order of deletions includes kind {}, whose objects are only in SQL, and there is no database",
        kind.name
    ));
    Err(error.hint(hint))
}

fn graph(cluster: Cluster, server: Option<Server>, waits: &WaitArgs, metrics: &prometheus::Registry) -> Arc<Graph> {
    let options = Options {
        blocked_after: Duration::from_secs(waits.blocked_after.get().into()),
    };
    let metrics = Metrics::new(metrics);
    let cluster = match server {
        Some(server) => cluster.notifying(WebNotices::new(server, &metrics)),
        None => cluster,
    };
    Arc::new(Graph::new(cluster, options, metrics))
}

fn check(platform: &Platform) -> CommandResult<()> {
    let checked = platform.cleanups.check(&platform.registry);
    checked.map_err(|invalid| CommandError::usage(invalid).hint(invalid.hint()))
}

fn nothing_to_do() -> CommandError {
    CommandError::usage("no kind has a reference that its deletion waits for")
        .hint("declare one in crds.toml, with on_delete or owned")
}

fn client_of(access: &Access) -> CommandResult<Client> {
    let client = access.client_of(AGENT);
    client.map_err(|error| CommandError::usage(chain(&error)))
}

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::model;
    use kindex_model::kind::{Kind, Registry};

    use super::*;

    static OF_CLUSTERS: [&Kind; 1] = [&model::KIND];
    static OF_SQL: [&Kind; 1] = [&Kind {
        cluster: false,
        ..model::KIND
    }];

    fn refused(kinds: &'static [&'static Kind], hint: &str) -> Option<String> {
        let kinds = Kinds::of(&Registry {
            kinds,
            ..Registry::EMPTY
        });
        assert!(!kinds.is_empty(), "models wait for their families");
        let checked = check_database(&kinds, None, hint);
        checked.err().map(|error| error.to_string())
    }

    /// As if the graph began and never found their objects, or every graph needed a database.
    #[test]
    fn without_a_database_a_graph_of_sql_only_kinds_is_refused() {
        for hint in [NAME_A_DATABASE, SWITCH_IT_ON] {
            let error = refused(&OF_SQL, hint).expect("refused");
            assert!(error.contains("includes kind Model") && error.contains(hint), "{error}");
            assert_eq!(refused(&OF_CLUSTERS, hint), None);
        }
    }
}
