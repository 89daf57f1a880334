//! Storage versions: `kindex migrator` answers the conversion webhook and migrates stored objects. `kindex up` migrates
//! those of the embedded cluster, which converts in process.

mod certificate;

mod storage;

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::platform::Platform;
use kindex_migrator::metrics::Metrics;
use kindex_model::kind::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use certificate::{Certificate, CertificateArgs};
use storage::{Storage, StorageArgs, UpStorageArgs};

use super::service::{Announcement, Context, Running, Service};
use crate::health::{self, Health};

/// Migrate stored objects to the storage version of their kind, and answer kube-apiserver's conversion webhook.
#[derive(Clone, Debug, Args)]
#[command(after_help = MIGRATOR_EXAMPLES)]
pub(super) struct MigratorArgs {
    /// Address of /convert; port 0 takes a free one.
    #[arg(long, env = "KINDEX_LISTEN", value_name = "ADDR", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,

    /// Of the webhook.
    #[command(flatten)]
    certificate: CertificateArgs,

    /// What is migrated, and how fast.
    #[command(flatten)]
    storage: StorageArgs,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8085"
    )]
    health_addr: SocketAddr,
}

const MIGRATOR_EXAMPLES: &str = "\
Examples:
  kindex migrator --tls-cert tls.crt --tls-key tls.key
  kindex migrator --tls-secret kindex/webhook --webhook-address kindex/kindex-migrator
  kindex migrator --tls-cert tls.crt --tls-key tls.key --resource models.michelangelo.api --rate 50
  kindex migrator --tls-cert tls.crt --tls-key tls.key --webhook-only";

/// A migrator whose address is taken.
pub(super) struct Migrator {
    registry: Registry,
    /// What is counted, and where it is shown.
    metrics: (Metrics, prometheus::Registry),
    /// In a process of its own.
    webhook: Option<Webhook>,
    /// On a cluster.
    storage: Option<Storage>,
}

/// The conversion webhook.
struct Webhook {
    socket: TcpListener,
    certificate: Certificate,
}

impl Service for Migrator {
    const NAME: &'static str = "migrator";

    type Args = MigratorArgs;
    type UpArgs = UpStorageArgs;

    fn health_addr(args: &MigratorArgs) -> SocketAddr {
        args.health_addr
    }

    async fn for_command(platform: &Platform, args: MigratorArgs) -> CommandResult<Self> {
        let registry = &platform.registry;
        let shown = prometheus::Registry::new();
        let metrics = Metrics::new(&shown);
        let client = match args.certificate.is_kept() {
            true => Some(args.storage.client().await?),
            false => None,
        };
        let certificate = Certificate::new(registry, args.certificate, client).await?;
        Ok(Self {
            registry: *registry,
            storage: Storage::for_command(registry, &args.storage, &metrics).await?,
            metrics: (metrics, shown),
            webhook: Some(Webhook {
                certificate,
                socket: health::bind(args.listen, "--listen").await?,
            }),
        })
    }

    async fn for_up(context: &Context<'_>, args: UpStorageArgs) -> CommandResult<Option<Self>> {
        // Elsewhere, `kindex migrator` may be at work.
        if !context.access.is_own() {
            return Ok(None);
        }
        let metrics = Metrics::new(&context.metrics);
        let storage = Storage::for_up(&context.platform.registry, &context.access, &args, &metrics)?;
        Ok(Some(Self {
            registry: context.platform.registry,
            metrics: (metrics, context.metrics.clone()),
            webhook: None,
            storage: Some(storage),
        }))
    }

    fn announcement(&self) -> CommandResult<Option<Announcement>> {
        let Some(webhook) = &self.webhook else {
            return Ok(None);
        };
        let address = webhook.socket.local_addr().map_err(CommandError::failure)?;
        let url = format!("https://{address}/convert");
        let step = format!("{url} answers conversion webhooks");
        Ok(Some(Announcement { url, step }))
    }

    fn start(self, stop: CancellationToken) -> CommandResult<Running> {
        let tasks = TaskTracker::new();
        let (metrics, shown) = self.metrics;
        if let Some(Webhook { socket, certificate }) = self.webhook {
            let tls = certificate.start(&tasks, &stop);
            let served = kindex_migrator::serve_counted(socket, Some(tls), self.registry, metrics, stop.clone());
            tasks.spawn(served);
        }
        let health = match self.storage {
            Some(storage) => storage.start(&tasks, &stop),
            None => Arc::new(AlwaysReady),
        };
        tasks.close();
        Ok(Running {
            metrics: shown,
            health: Some(health),
            until_stopped: Box::pin(async move { tasks.wait().await }),
            failure: None,
        })
    }
}

/// It depends on nothing else.
struct AlwaysReady;

impl Health for AlwaysReady {
    fn not_ready(&self) -> Vec<String> {
        Vec::new()
    }
}
