//! What the servers of a process may take, as the command line says it.

use std::num::{NonZeroU32, NonZeroUsize};

use clap::Args;
use kindex_serve::BodyPace;
use kindex_serve::watches::WatchLimits;

/// Where the limits stand in the help.
const LIMITS: &str = "Limits of the API server";
const LIMITS_OF_BOTH: &str = "Limits of the API server, and as many of the embedded cluster";

/// The limits of the API server.
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
