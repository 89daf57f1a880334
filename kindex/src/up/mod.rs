//! `kindex up`: cluster, CRDs, ingester, database and the services beside them in one process.

mod report;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kindex_cluster::{Cluster, ClusterOptions, Limits, kubeconfig};
use kindex_commands::client::{self, Access};
use kindex_commands::data_dir::DataDir;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::install::{self, ClusterOwner};
use kindex_commands::platform::Platform;
use kindex_commands::{interrupt, migrate, sql_only};
use kindex_model::kind::Registry;
use kindex_runtime::Sharding;
use kindex_serve::listen::ConnectionLimits;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::UpArgs;
use crate::health;
use crate::services::Context;
use crate::services::ingester::{Ingestion, Setup};
use crate::{samples, settled};

/// How long the services wait for the tables of a new database, which the ingester creates.
const SCHEMA_WAIT: Duration = Duration::from_secs(15);

/// Runs until Ctrl-C, or with `--once` until SQL holds what the cluster holds.
pub(crate) async fn run(platform: &Platform, args: &UpArgs) -> CommandResult {
    let owner = match args.kubeconfig {
        Some(_) => ClusterOwner::User,
        None => ClusterOwner::Kindex,
    };
    check(platform, args, owner)?;
    let data_dir = DataDir::create(&args.data_dir.data_dir)?;
    let _claim = uses(args).then(|| data_dir.claim()).transpose()?;
    data_dir.close_to_others()?;
    let setup = Setup::for_up(
        &platform.registry,
        args.config.as_deref(),
        args.database.database.as_deref(),
        &args.orphans,
        args.follow.clone(),
        &data_dir,
    )?;
    if args.database.database.is_none() && args.config.is_none() {
        migrate::embedded(&platform.registry, &data_dir).await?;
    }
    let health_listener = health::bind(args.health_addr, "--health-addr").await?;
    let health_addr = health_listener.local_addr().map_err(CommandError::failure)?;
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();

    let cluster = match &args.kubeconfig {
        Some(path) => RunCluster::yours(path).await?,
        None => RunCluster::embedded(&platform.registry, args, &data_dir, &stop, &tasks).await?,
    };
    setup.check_sides(&platform.registry, &cluster.access).await?;
    install::crds(&cluster.access.client, &platform.registry, owner).await?;
    let interrupt = interrupt::wait();
    let ingestion = Arc::new(Ingestion::start(
        &platform.registry,
        &setup,
        &cluster.ingester,
        Sharding::Alone,
    )?);
    ingestion.wait_for_database(SCHEMA_WAIT).await;
    let context = context(platform, args, &cluster, &ingestion, &data_dir).await?;
    let mut health: health::Parts = vec![ingestion.clone()];
    let mut announced = Vec::new();
    for part in args.services.bind(&context).await? {
        announced.extend(part.announcement.map(|announcement| (part.name, announcement)));
        let running = (part.start)(stop.clone())?;
        health.extend(running.health);
        tasks.spawn(running.until_stopped);
    }
    tasks.spawn(health::serve(
        health_listener,
        health,
        ingestion.metrics_registry(),
        stop.clone(),
    ));
    report::announce(platform, args, &cluster, &setup, health_addr, &announced)?;

    let done = tokio::select! {
        done = work(&context, args, &cluster, &ingestion) => done,
        () = interrupt => Ok(()),
    };
    ingestion.stop().await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    done
}

/// What the services of a run work on.
async fn context<'a>(
    platform: &'a Platform,
    args: &UpArgs,
    cluster: &RunCluster,
    ingestion: &Ingestion,
    data_dir: &DataDir,
) -> CommandResult<Context<'a>> {
    let storage = ingestion.storage();
    Ok(Context {
        platform,
        access: cluster.access.clone(),
        sql_only: storage.sql_only_api(&platform.registry).await?,
        storage,
        metrics: ingestion.metrics_registry(),
        limits: args.limits.clone(),
        data_dir: Some(data_dir.clone()),
    })
}

/// Refuses what the flags have wrong, whatever they meet.
fn check(platform: &Platform, args: &UpArgs, owner: ClusterOwner) -> CommandResult {
    check_exposure(args)?;
    args.services.check(platform, owner)
}

/// Refuses to open the embedded cluster to a network unasked.
fn check_exposure(args: &UpArgs) -> CommandResult {
    let is_open = args.kubeconfig.is_none() && !args.api_addr.ip().is_loopback();
    if !is_open || args.allow_remote_clients {
        return Ok(());
    }
    Err(CommandError::usage(format_args!(
        "--api-addr {}: other machines could reach the embedded cluster, whose token passes unencrypted",
        args.api_addr
    ))
    .hint("use a loopback address such as 127.0.0.1:6480, or set --allow-remote-clients"))
}

/// Whether anything of this run is in its data directory.
fn uses(args: &UpArgs) -> bool {
    args.kubeconfig.is_none() || (args.database.database.is_none() && args.config.is_none())
}

async fn work(context: &Context<'_>, args: &UpArgs, cluster: &RunCluster, ingestion: &Ingestion) -> CommandResult {
    let (platform, limit) = (context.platform, Duration::from_secs(args.timeout));
    if args.samples {
        let (client, sql_only) = (&cluster.access.client, context.sql_only.as_ref());
        samples::apply(client, sql_only, &platform.registry, platform.samples).await?;
    }
    if args.samples || args.once {
        let settled = settled::wait(&platform.registry, &cluster.access.client, ingestion, limit).await?;
        report::settled(&settled)?;
    }
    if args.once {
        report::afterwards(platform, args, cluster)
    } else {
        std::future::pending().await
    }
}

/// The cluster of a run.
struct RunCluster {
    access: Access,
    /// The same for the ingester, who has places of its own in the embedded cluster.
    ingester: Access,
    /// For people: where it is.
    server: String,
    kubeconfig: std::path::PathBuf,
}

impl RunCluster {
    async fn yours(path: &Path) -> CommandResult<Self> {
        let access = client::from_file(path).await?;
        Ok(Self {
            ingester: access.clone(),
            access,
            server: "the one of your kubeconfig".to_owned(),
            kubeconfig: path.to_owned(),
        })
    }

    async fn embedded(
        registry: &Registry,
        args: &UpArgs,
        data_dir: &DataDir,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> CommandResult<Self> {
        let listener = health::bind(args.api_addr, "--api-addr").await?;
        let address = listener.local_addr().map_err(CommandError::failure)?;
        let database = data_dir.cluster_db();
        let token = data_dir.cluster_token()?;
        let usual = Limits::default();
        let limits = &args.limits;
        let options = ClusterOptions {
            path: Some(database.clone()),
            token: Some(token.clone()),
            converter: Some(Arc::new(sql_only::Versions(*registry))),
            limits: Limits {
                connections: ConnectionLimits {
                    body: limits.body_pace(),
                    ..usual.connections
                },
                body_bytes: limits.body_bytes(),
                watches: limits.watches(usual.watches),
                ..usual
            },
            ..ClusterOptions::default()
        };
        let cluster = Cluster::with_options(options).await.map_err(|error| {
            CommandError::failure(format_args!("{}: {}", database.display(), chain(&error)))
                .hint("is it a cluster of `kindex up`, and may you write to it? --data-dir names another directory")
        })?;
        let own = cluster.in_process(address);
        let path = data_dir.write_kubeconfig(&kubeconfig(address, &token))?;
        let stopped = stop.clone().cancelled_owned();
        tasks.spawn(async move {
            if let Err(error) = cluster.serve(listener, stopped).await {
                tracing::error!(error = chain(&error), "The embedded cluster has stopped");
            }
        });
        // The file is for others: what belongs to this process asks the cluster without a connection.
        let access = client::from_file(&path).await?.in_process(own.clone());
        Ok(Self {
            ingester: access.in_process(own.of_the_ingester()),
            access,
            server: format!("http://{address}"),
            kubeconfig: path,
        })
    }
}
