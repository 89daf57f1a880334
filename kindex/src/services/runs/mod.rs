//! Runs of training jobs: `kindex runs serve`, a part of `kindex up`, and the commands about what is kept.

mod key;

mod rules;

mod questions;

mod commands;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::platform::Platform;
use kindex_runs::domain::system_clock;
use kindex_runs::front::Cors;
use kindex_runs::service::{Options, Service as RunsService, ServiceError};
use kindex_runs::store::{Durability, Settings};
use kindex_runs::validate::Oversized;
use kindex_serve::listen::Tls;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(super) use commands::RunsCommand;

use rules::RuleArgs;

use super::service::{Announcement, Context, Running, Service};
use crate::health::{self, Health};
use crate::traces;

/// Where runs are kept unless a flag says otherwise: where `kindex up` keeps them.
const DATA_DIR: &str = ".kindex/runs";
const MIB: usize = 1024 * 1024;

/// What an answer survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DurabilityArg {
    /// The end of the process.
    Normal,
    /// A power failure too; each group of batches waits for the disk.
    Full,
}

/// What becomes of a batch that is over its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OversizedArg {
    /// Its first points are stored, the rest is dropped with a warning.
    Truncate,
    /// It is refused.
    Reject,
}

/// Serve runs of training jobs: metrics, parameters, tags and artifacts, over gRPC and REST.
#[derive(Clone, Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(super) struct ServeArgs {
    /// Directory of the runs, the API keys, the secrets and the artifacts; made when absent.
    #[arg(long, env = "KINDEX_RUNS_DATA_DIR", value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,

    /// File of an API key with the scope admin. It is made a key at the first start; later ones leave it as it is.
    #[arg(long, env = "KINDEX_RUNS_ADMIN_KEY_FILE", value_name = "FILE")]
    admin_key_file: Option<PathBuf>,

    /// File of the secrets that sign resume tokens and addresses of artifacts, one a line, the newest first; default:
    /// `secrets` in the directory, which is made.
    #[arg(long, env = "KINDEX_RUNS_SECRETS_FILE", value_name = "FILE")]
    secrets_file: Option<PathBuf>,

    /// Address of gRPC; port 0 takes a free one. Takes REST as well.
    #[arg(
        long,
        env = "KINDEX_RUNS_GRPC_ADDR",
        value_name = "ADDR",
        default_value = "127.0.0.1:50051"
    )]
    grpc_addr: SocketAddr,

    /// Addresses of REST, with commas between them; port 0 takes a free one. Take gRPC as well.
    #[arg(
        long,
        env = "KINDEX_RUNS_REST_ADDR",
        value_name = "ADDR",
        default_value = "127.0.0.1:3002"
    )]
    #[arg(value_delimiter = ',')]
    rest_addr: Vec<SocketAddr>,

    /// What acknowledged data survives.
    #[arg(long, env = "KINDEX_RUNS_DURABILITY", value_enum, default_value = "normal")]
    durability: DurabilityArg,

    #[command(flatten)]
    rules: RuleArgs,

    /// How to handle a batch with more than 10,000 points or 1 MiB.
    #[arg(long, env = "KINDEX_RUNS_OVERSIZED_BATCH", value_enum, default_value = "truncate")]
    oversized_batch: OversizedArg,

    /// Origins whose pages may ask, such as https://runs.example.com, with commas between them; `*` for all.
    #[arg(long, env = "KINDEX_RUNS_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    cors_origin: Vec<String>,

    /// Where clients reach REST, for the addresses of artifacts; default: the last address of REST.
    #[arg(long, env = "KINDEX_RUNS_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,

    /// Serve HTTPS with this certificate, and those that lead from it to a root; read again when it changes.
    #[arg(long, env = "KINDEX_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate.
    #[arg(long, env = "KINDEX_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Let keys and data pass unencrypted to an address that other machines reach.
    #[arg(long, env = "KINDEX_RUNS_ALLOW_PLAINTEXT", conflicts_with = "tls_cert")]
    allow_plaintext: bool,

    /// Connections of each address at once; who comes later waits.
    #[arg(long, env = "KINDEX_MAX_CONNECTIONS", value_name = "N", default_value = "16384")]
    max_connections: NonZeroUsize,

    /// Memory for the bodies of requests, half of it for one caller; more are answered 429.
    #[arg(long, env = "KINDEX_MAX_BODY_MIB", value_name = "MIB", default_value = "32")]
    #[arg(value_parser = clap::value_parser!(u32).range(16..))]
    max_body_mib: u32,

    /// Minimum rate of a request body after its first 10 s, in bytes a second.
    #[arg(long, env = "KINDEX_MIN_BODY_RATE", value_name = "BYTES", default_value = "1024")]
    min_body_rate: NonZeroU32,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8086"
    )]
    health_addr: SocketAddr,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  kindex runs serve
  kindex runs serve --data-dir /var/lib/kindex/runs --durability full
  kindex runs key create --user ana --project vision --scopes ingest,query
  kindex runs serve --grpc-addr 0.0.0.0:50051 --rest-addr 0.0.0.0:3002 --tls-cert tls.crt --tls-key tls.key";

/// The runs service in `kindex up`.
#[derive(Clone, Debug, Args)]
pub(super) struct UpRunsArgs {
    /// Address of runs over gRPC; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_RUNS_GRPC_ADDR",
        value_name = "ADDR",
        default_value = "127.0.0.1:50051"
    )]
    runs_grpc_addr: SocketAddr,

    /// Addresses of runs over REST, with commas between them; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_RUNS_REST_ADDR",
        value_name = "ADDR",
        default_value = "127.0.0.1:3002"
    )]
    #[arg(value_delimiter = ',')]
    runs_rest_addr: Vec<SocketAddr>,
}

/// A runs service whose addresses are taken.
pub(super) struct Runs {
    service: RunsService,
    grpc: SocketAddr,
    rest: SocketAddr,
    scheme: &'static str,
    /// Not a part of `kindex up`.
    is_alone: bool,
    metrics: prometheus::Registry,
}

impl Service for Runs {
    const NAME: &'static str = "runs";

    type Args = ServeArgs;
    type UpArgs = UpRunsArgs;

    fn health_addr(args: &ServeArgs) -> SocketAddr {
        args.health_addr
    }

    async fn for_command(_platform: &Platform, args: ServeArgs) -> CommandResult<Self> {
        let tls = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::read(certificate, key, None).map_err(|error| CommandError::usage(chain(&error)))?)
            }
            _ => None,
        };
        check_plaintext(&args, tls.is_some())?;
        let mut listeners = vec![health::bind(args.grpc_addr, "--grpc-addr").await?];
        for address in &args.rest_addr {
            listeners.push(health::bind(*address, "--rest-addr").await?);
        }
        if let Some(file) = &args.admin_key_file {
            key::ensure_admin(&args.data_dir, file).await?;
        }
        let metrics = prometheus::Registry::new();
        let options = Options {
            secrets: args.secrets_file,
            store: Settings {
                durability: match args.durability {
                    DurabilityArg::Normal => Durability::Normal,
                    DurabilityArg::Full => Durability::Full,
                },
                ..args.rules.settings()
            },
            oversized: match args.oversized_batch {
                OversizedArg::Truncate => Oversized::Cut,
                OversizedArg::Reject => Oversized::Refused,
            },
            cors: Cors::new(args.cors_origin),
            public_url: args.public_url,
            tls,
            connections: args.max_connections.get(),
            body_bytes: bytes(args.max_body_mib),
            body_rate_min: args.min_body_rate,
            ..options(args.data_dir, metrics)
        };
        let alone = Self::open(options, listeners).await?;
        Ok(Self {
            is_alone: true,
            ..alone
        })
    }

    async fn for_up(context: &Context<'_>, args: UpRunsArgs) -> CommandResult<Option<Self>> {
        let Some(data_dir) = &context.data_dir else {
            return Ok(None);
        };
        refuse_network(&args)?;
        let mut listeners = vec![health::bind(args.runs_grpc_addr, "--runs-grpc-addr").await?];
        for address in &args.runs_rest_addr {
            listeners.push(health::bind(*address, "--runs-rest-addr").await?);
        }
        let options = options(data_dir.runs(), context.metrics.clone());
        Self::open(options, listeners).await.map(Some)
    }

    fn announcement(&self) -> CommandResult<Option<Announcement>> {
        let (scheme, rest) = (self.scheme, self.rest);
        let url = format!("{scheme}://{rest} (REST) and {} (gRPC)", self.grpc);
        let step = match self.is_alone {
            true => format!("runs are served at {url}"),
            false => format!("curl -d '{{\"project\":\"demo\"}}' {scheme}://{rest}/api/v1/runs    # opens a run"),
        };
        Ok(Some(Announcement { url, step }))
    }

    fn start(self, stop: CancellationToken) -> CommandResult<Running> {
        Ok(Running {
            metrics: self.metrics,
            health: Some(Arc::new(Writes(self.service.store().health()))),
            until_stopped: Box::pin(self.service.serve(stop)),
            failure: None,
        })
    }
}

impl Runs {
    async fn open(options: Options, listeners: Vec<TcpListener>) -> CommandResult<Self> {
        let at = |listener: Option<&TcpListener>| {
            let address = listener.map(TcpListener::local_addr).transpose();
            address.map_err(CommandError::failure)
        };
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let grpc = at(listeners.first())?.unwrap_or(unknown);
        let rest = at(listeners.last())?.unwrap_or(unknown);
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let metrics = options.registry.clone();
        let folder = options.folder.clone();
        let service = RunsService::open(options, listeners).await;
        Ok(Self {
            service: service.map_err(|error| refused(&error, &folder))?,
            grpc,
            rest,
            scheme,
            is_alone: false,
            metrics,
        })
    }
}

/// What holds unless flags say otherwise.
fn options(folder: PathBuf, registry: prometheus::Registry) -> Options {
    Options {
        folder,
        secrets: None,
        store: Settings::default(),
        oversized: Oversized::Cut,
        cors: Cors::default(),
        public_url: None,
        tls: None,
        connections: 16_384,
        body_bytes: 32 * MIB,
        body_rate_min: NonZeroU32::new(1024).expect("more than 0"),
        clock: system_clock(),
        registry,
        join: traces::join(),
    }
}

fn bytes(mib: u32) -> usize {
    usize::try_from(mib).map_or(usize::MAX, |mib| mib.saturating_mul(MIB))
}

fn refused(error: &ServiceError, folder: &Path) -> CommandError {
    match error {
        ServiceError::Open(_) => CommandError::usage(chain(error)).hint(format_args!(
            "make a key first: kindex runs key create --data-dir {} --user NAME --scopes admin; or listen on a \
             loopback address",
            folder.display()
        )),
        ServiceError::Folder { .. }
        | ServiceError::Secrets { .. }
        | ServiceError::Keys(_)
        | ServiceError::Store(_)
        | ServiceError::Grpc(_) => CommandError::failure(chain(error)).hint(format_args!(
            "is another kindex using {}, and may you write to it? --data-dir names another directory",
            folder.display()
        )),
    }
}

/// Keys pass in the clear without a certificate.
fn check_plaintext(args: &ServeArgs, has_tls: bool) -> CommandResult {
    let mut addresses = args.rest_addr.iter().chain([&args.grpc_addr]);
    match addresses.find(|address| !address.ip().is_loopback()) {
        Some(address) if !has_tls && !args.allow_plaintext => Err(CommandError::usage(format_args!(
            "no certificate for {address}: keys and data would pass in the clear"
        ))
        .hint("give --tls-cert and --tls-key, set --allow-plaintext, or listen on a loopback address")),
        Some(_) | None => Ok(()),
    }
}

/// What is tried out at home stays there.
fn refuse_network(args: &UpRunsArgs) -> CommandResult {
    let mut addresses = args.runs_rest_addr.iter().chain([&args.runs_grpc_addr]);
    match addresses.find(|address| !address.ip().is_loopback()) {
        Some(address) => Err(CommandError::usage(format_args!(
            "{address}: other machines could reach the runs of `kindex up`"
        ))
        .hint("use a loopback address, or run `kindex runs serve`, which takes keys and a certificate")),
        None => Ok(()),
    }
}

/// It does its work while it can store what it is sent.
struct Writes(watch::Receiver<Option<String>>);

impl Health for Writes {
    fn not_ready(&self) -> Vec<String> {
        self.0.borrow().iter().map(|why| format!("runs: {why}")).collect()
    }
}
