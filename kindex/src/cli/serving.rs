//! What can be typed for the API server.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kindex_serve::BodyPace;
use kindex_serve::watches::WatchLimits;

/// How the API server is reached.
#[derive(Clone, Debug, Args)]
pub struct ListenArgs {
    /// Address of the API server over cluster and SQL; port 0 takes a free one.
    #[arg(long, env = "KINDEX_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:6482")]
    pub listen: SocketAddr,

    /// Serve HTTPS with this certificate, and those that lead from it to a root; read again when it changes.
    #[arg(long, env = "KINDEX_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The key of the certificate.
    #[arg(long, env = "KINDEX_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// With whose rights the server acts; default: `caller` for `kindex api`, `server` for `kindex up`.
    #[arg(long, env = "KINDEX_RIGHTS", value_enum)]
    pub rights: Option<Whose>,

    /// Limits of the server.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Where the limits stand in the help.
const LIMITS: &str = "Limits of the API server";
const LIMITS_OF_BOTH: &str = "Limits of the API server, and as many of the embedded cluster";

/// What the API server bears.
#[derive(Clone, Debug, Args)]
pub struct LimitArgs {
    /// Connections at once; who comes later waits.
    #[arg(long, help_heading = LIMITS, env = "KINDEX_MAX_CONNECTIONS", value_name = "N", default_value = "16384")]
    pub max_connections: NonZeroUsize,

    /// Reading requests at once; others wait up to 10 s for a place, and are answered 429 then.
    #[arg(long, help_heading = LIMITS, env = "KINDEX_MAX_READS", value_name = "N", default_value = "400")]
    pub max_reads: NonZeroUsize,

    /// Changing requests at once; others wait up to 10 s for a place, and are answered 429 then.
    #[arg(long, help_heading = LIMITS, env = "KINDEX_MAX_CHANGES", value_name = "N", default_value = "200")]
    pub max_changes: NonZeroUsize,

    /// Requests a second of one token, or of one address without; more are answered 429. Default: no limit.
    #[arg(long, help_heading = LIMITS, env = "KINDEX_REQUESTS_PER_SECOND", value_name = "N")]
    pub requests_per_second: Option<NonZeroU32>,

    /// Watches at once; more are answered 429.
    #[arg(long, help_heading = LIMITS_OF_BOTH, env = "KINDEX_MAX_WATCHES", value_name = "N", default_value = "10000")]
    pub max_watches: NonZeroUsize,

    /// Memory for events that the clients of watches have not read; beyond it the slowest watch ends.
    #[arg(long, help_heading = LIMITS_OF_BOTH, env = "KINDEX_MAX_WATCH_MIB", value_name = "MIB", default_value = "64")]
    pub max_watch_mib: NonZeroU32,

    /// Memory for the bodies of requests, half of it for one caller; more are answered 429.
    #[arg(long, help_heading = LIMITS_OF_BOTH, env = "KINDEX_MAX_BODY_MIB", value_name = "MIB", default_value = "128")]
    #[arg(value_parser = clap::value_parser!(u32).range(BODY_MIB_MIN..))]
    pub max_body_mib: u32,

    /// Minimum rate of a request body after its first 10 s, in bytes a second. A slower one gets 408.
    #[arg(long, help_heading = LIMITS_OF_BOTH, env = "KINDEX_MIN_BODY_RATE", value_name = "BYTES", default_value = "1024")]
    pub min_body_rate: NonZeroU32,
}

/// The largest body fits in half of it, as it is read: its memory grows by doubling.
const BODY_MIB_MIN: i64 = 16;

impl LimitArgs {
    /// What watches may take, where the rest is as `usual`.
    pub(crate) fn watches(&self, usual: WatchLimits) -> WatchLimits {
        WatchLimits {
            watches: self.max_watches.get(),
            bytes: bytes(self.max_watch_mib.get()),
            ..usual
        }
    }

    /// How fast bodies have to come.
    pub(crate) fn body_pace(&self) -> BodyPace {
        BodyPace {
            bytes_per_second: self.min_body_rate,
            ..BodyPace::default()
        }
    }

    /// What bodies may take.
    pub(crate) fn body_bytes(&self) -> usize {
        bytes(self.max_body_mib)
    }
}

fn bytes(mib: u32) -> usize {
    usize::try_from(u64::from(mib) * 1024 * 1024).unwrap_or(usize::MAX)
}

/// With whose rights something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Whose {
    /// Those of whoever asks: by bearer token, checked with the cluster.
    Caller,
    /// Those of the server, whoever asks: for a loopback address alone.
    Server,
}

/// Flags of `kindex api`.
#[derive(Clone, Debug, Args)]
#[command(after_help = API_EXAMPLES)]
pub struct ApiArgs {
    /// Where to listen, and for whom.
    #[command(flatten)]
    pub listen: ListenArgs,

    /// The configuration file; its metadataStorage, mysql and sqlite stanzas say where rows are.
    #[arg(
        long,
        env = "KINDEX_CONFIG",
        value_name = "FILE",
        required_unless_present = "database"
    )]
    pub config: Option<PathBuf>,

    /// `sqlite:PATH` or `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, instead of what the file says.
    #[arg(long, env = "KINDEX_DATABASE", value_name = "ADDRESS", hide_env_values = true)]
    pub database: Option<String>,

    /// Serve the kinds in groups `archive.<group>` as well, for kube-apiserver, which then says who asks.
    #[arg(long, env = "KINDEX_AGGREGATED", requires = "tls_cert")]
    pub aggregated: bool,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8084"
    )]
    pub health_addr: SocketAddr,

    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
}

const API_EXAMPLES: &str = "\
Examples:
  kindex api --config kindex.yaml --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key
  kindex api --rights server --kubeconfig ~/.kube/config --database mysql://kindex@db/michelangelo
  kubectl --server http://127.0.0.1:6482 get models -A";
